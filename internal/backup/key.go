package backup

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
)

const (
	// Work is the cost of each guess of a passphrase, as a power of two: about one second and 256 MiB. A file with a
	// higher cost is not from this program and is rejected.
	Work = 18

	minPassphrase = 16
	maxKeyText    = 64 << 10
	maxRecipients = 16
)

type (
	// Recipient is a public key or passphrase that a backup is encrypted with.
	Recipient = age.Recipient

	// Identity is a secret key or passphrase that opens a backup.
	Identity = age.Identity
)

// NewIdentity creates a key pair. The secret key opens backups; the public key, the recipient, is enough to create
// them.
func NewIdentity() (secret, recipient string, err error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", fmt.Errorf("cannot create a key for backups: %w", err)
	}
	return id.String(), id.Recipient().String(), nil
}

// ParseRecipients parses public keys (age1…) that a backup is encrypted with.
func ParseRecipients(words []string) ([]age.Recipient, error) {
	if len(words) == 0 || len(words) > maxRecipients {
		return nil, fmt.Errorf("1 to %d recipients are required, there are %d", maxRecipients, len(words))
	}

	var all []age.Recipient
	for _, w := range words {
		w = strings.TrimSpace(w)
		if strings.HasPrefix(w, "AGE-SECRET-KEY-") {
			return nil, errors.New("this is the secret key of a recipient: give the public one, " +
				"which begins with age1, and keep the secret one off the server")
		}

		one, err := age.ParseRecipients(strings.NewReader(w))
		if err != nil || len(one) != 1 || strings.ContainsAny(w, "\r\n") {
			return nil, fmt.Errorf("%.100q is not a recipient such as gozzard backup keygen prints (age1…)", w)
		}
		all = append(all, one...)
	}

	return all, nil
}

// Passphrase returns the recipient for a passphrase. work is Work except in tests.
func Passphrase(text []byte, work int) ([]age.Recipient, error) {
	pass, err := passphrase(text)
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(pass)
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(work)
	return []age.Recipient{r}, nil
}

// ParseIdentities parses the secret keys in the text of a key file, as gozzard backup keygen or age-keygen writes it.
func ParseIdentities(text []byte) ([]age.Identity, error) {
	if len(text) > maxKeyText {
		return nil, errors.New("it is too large for a key file")
	}
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the library's error may quote a line of the file, which would be the key
		return nil, errors.New("it is not a file of secret keys such as gozzard backup keygen writes")
	}
	return ids, nil
}

// PassphraseIdentity returns the identity that opens what Passphrase encrypted.
func PassphraseIdentity(text []byte) ([]age.Identity, error) {
	pass, err := passphrase(text)
	if err != nil {
		return nil, err
	}
	id, err := age.NewScryptIdentity(pass)
	if err != nil {
		return nil, err
	}
	id.SetMaxWorkFactor(Work)
	return []age.Identity{id}, nil
}

func passphrase(text []byte) (string, error) {
	if len(text) > maxKeyText {
		return "", errors.New("it is too large for a passphrase")
	}
	pass := strings.TrimRight(string(text), "\r\n")
	if len(pass) < minPassphrase {
		return "", fmt.Errorf("a passphrase of %d characters can be guessed, at least %d are required",
			len(pass), minPassphrase)
	}
	return pass, nil
}
