package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/signing"
)

// minSecret is how many characters a secret has at least.
const minSecret = 32

// keptSecret reads a secret from a file that only its owner may read. The first start makes it.
func keptSecret(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw) // never fails: it ends the program instead
		secret := hex.EncodeToString(raw)
		return secret, atomicfile.Write(path, []byte(secret+"\n"))
	}

	if err != nil {
		return "", fmt.Errorf("cannot read the secret: %w", err)
	}
	if err := atomicfile.Check(path); err != nil {
		return "", err
	}

	secret := strings.TrimSpace(string(b))
	return secret, checkSecret(path, secret)
}

func checkSecret(path, secret string) error {
	if len(secret) < minSecret {
		return fmt.Errorf("secret in %s has %d characters, at least %d are needed; remove the file to have a new one made",
			path, len(secret), minSecret)
	}
	return nil
}

// keptJoinFile reads the secret that agents of this machine join with. The first start makes it. The file also names
// the key by which agents know the server: two words on one line.
func keptJoinFile(path string, key signing.Key) (string, error) {
	line, err := keptSecret(path)
	if err != nil {
		return "", err
	}

	secret, known, _ := strings.Cut(line, " ")
	if err := checkSecret(path, secret); err != nil {
		return "", err
	}
	if strings.TrimSpace(known) == key.String() {
		return secret, nil
	}
	return secret, atomicfile.Write(path, []byte(secret+" "+key.String()+"\n"))
}
