package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// keptSecret reads a secret from a file that only its owner may read, and makes it at the first start.
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
	if len(secret) < 32 {
		return "", fmt.Errorf("secret in %s has %d characters, at least 32 are needed; remove the file to have a new one made", path, len(secret))
	}

	return secret, nil
}

func writePrivateJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return atomicfile.Write(path, append(b, '\n'))
}

// credentials is the file by which a caller finds and uses a server.
type credentials struct {
	URL      string `json:"url"`
	AppCode  string `json:"bk_app_code,omitempty"`
	Secret   string `json:"bk_app_secret,omitempty"`
	Username string `json:"bk_username,omitempty"`
	Token    string `json:"bk_token,omitempty"` // of a person, with an app or without
	// whom the server's certificate is from, in PEM; "": those that the system trusts
	CA string `json:"ca,omitempty"`
}
