package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/signing"
)

// keptJoin reads the secret that agents of this machine join with, made at the first start, and sees to it that its
// file also names the key by which they know the server: two words on one line.
func keptJoin(path string, key signing.Key) (string, error) {
	line, err := keptSecret(path)
	if err != nil {
		return "", err
	}
	secret, known, _ := strings.Cut(line, " ")
	if len(secret) < 32 {
		return "", fmt.Errorf("secret in %s has %d characters, at least 32 are needed; remove the file to have a new one made", path, len(secret))
	}
	if strings.TrimSpace(known) == key.String() {
		return secret, nil
	}
	return secret, atomicfile.Write(path, []byte(secret+" "+key.String()+"\n"))
}

// readJoin reads a join file that must exist.
func readJoin(path string) (secret string, key signing.Key, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", signing.Key{}, fmt.Errorf("cannot read the join secret: %w", err)
	}
	if err := atomicfile.Check(path); err != nil {
		return "", signing.Key{}, err
	}

	secret, word, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if word == "" {
		return "", signing.Key{},
			fmt.Errorf("%s does not name the server's key: it is of an older version; start the server, which completes it", path)
	}

	if key, err = signing.ParseKey(strings.TrimSpace(word)); err != nil {
		return "", signing.Key{}, fmt.Errorf("cannot use %s: %w", path, err)
	}

	return secret, key, nil
}

// openRing gives the keys that the agent of a state folder obeys. A join file names one; an agent that has been
// handed a newer one since stays with that, as copies of such files grow old.
func openRing(dir string, named signing.Key) (*signing.KeyRing, error) {
	ring, err := signing.OpenKeyRing(dir, nil)
	if err != nil {
		return nil, err
	}
	if named.Epoch > 0 && named.Epoch >= ring.Key().Epoch {
		if err := ring.Trust(named); err != nil {
			return nil, err
		}
	}

	if ring.Key().Epoch == 0 {
		return nil, errors.New("this host knows no key of its server")
	}

	return ring, nil
}
