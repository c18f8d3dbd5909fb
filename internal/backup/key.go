package backup

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
)

const (
	// Work is how hard each guess of a passphrase is made, as a power of two: about a second and 256 MiB. A file
	// that asks for more is not ours and is refused.
	Work = 18

	minPassphrase = 16
	maxKeyText    = 64 << 10
	maxRecipients = 16
)

// Recipient is somebody for whom a backup is encrypted, Identity is who can open it.
type (
	Recipient = age.Recipient
	Identity  = age.Identity
)

// NewIdentity makes a key pair: the text of the secret one, which takes backups out, and the public one, which is
// enough to make them.
func NewIdentity() (secret, recipient string, err error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", fmt.Errorf("cannot make a key for backups: %w", err)
	}
	return id.String(), id.Recipient().String(), nil
}

// ParseRecipients reads public keys (age1…), for whom a backup is encrypted.
func ParseRecipients(words []string) ([]age.Recipient, error) {
	if len(words) == 0 || len(words) > maxRecipients {
		return nil, fmt.Errorf("1 to %d recipients are needed, there are %d", maxRecipients, len(words))
	}

	var all []age.Recipient
	for _, w := range words {
		w = strings.TrimSpace(w)
		if strings.HasPrefix(w, "AGE-SECRET-KEY-") {
			return nil, errors.New("this is the secret key of a recipient: give the public one, which begins with age1, and keep the secret one off the server")
		}
		one, err := age.ParseRecipients(strings.NewReader(w))
		if err != nil || len(one) != 1 || strings.ContainsAny(w, "\r\n") {
			return nil, fmt.Errorf("%.100q is not a recipient such as gozzard backup keygen prints (age1…)", w)
		}
		all = append(all, one...)
	}

	return all, nil
}

// Passphrase is the recipient of who knows a text. work is Work but in tests.
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

// ParseIdentities reads secret keys from the text of a file that NewIdentity or age-keygen wrote.
func ParseIdentities(text []byte) ([]age.Identity, error) {
	if len(text) > maxKeyText {
		return nil, errors.New("it is too large for a file of keys")
	}
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the error may quote a line, and that would be the key
		return nil, errors.New("it is not a file of secret keys such as gozzard backup keygen writes")
	}
	return ids, nil
}

// PassphraseIdentity is the other side of Passphrase.
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
		return "", fmt.Errorf("a passphrase of %d characters can be guessed, at least %d are needed", len(pass),
			minPassphrase)
	}
	return pass, nil
}
