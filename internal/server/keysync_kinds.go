package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

// keyKind is a kind of key that servers give to each other. A key is named by its public part.
type keyKind interface {
	name() string // as people call it

	// notStored and notUsable refuse a rotation because of a server.
	notStored(server string) error
	notUsable(server, fault string) error

	// check rejects what is no public part.
	check(key string) error
	// has reports whether this server has stored a key. The error says why it cannot use it.
	has(key string) (bool, error)
	// file has the secret of a key that this server uses; nil: it uses another one.
	file(key string) ([]byte, error)
	// keep stores a key of another server.
	keep(key string, file []byte) error
}

// kindOf is the kind of a key.
func (k *keySync) kindOf(key string) keyKind {
	if strings.HasPrefix(key, authorityPrefix) {
		return authorityKind{k.s.trust.authority}
	}
	return signingKind{k.s.signer}
}

// signingKind are keys that sign commands.
type signingKind struct{ signer *signing.Signer }

func (signingKind) name() string { return "signing key" }

func (signingKind) notStored(server string) error {
	return gozzard.Errorf(gozzard.ErrConflict, "the signing key was not changed: server %s did not store the new key. If it has "+
		"ended, try again in 10 seconds. Else it is frozen, cut off or has an older version: see \"gozzard servers\", or stop it", server)
}

func (signingKind) notUsable(server, fault string) error {
	return gozzard.Errorf(gozzard.ErrConflict, "the signing key was not changed: server %s cannot use the new key: %s", server, fault)
}

func (signingKind) check(key string) error {
	_, err := signing.ParseKey(key)
	return err
}

func (s signingKind) has(text string) (bool, error) {
	key, err := signing.ParseKey(text)
	if err != nil {
		return false, err
	}
	own := s.signer.Key()
	if own != key && own.Epoch >= key.Epoch {
		return false, fmt.Errorf("it signs with key %s of epoch %d already", own.ID(), own.Epoch)
	}
	return own == key, nil
}

func (s signingKind) file(key string) ([]byte, error) {
	if s.signer.Key().String() != key {
		return nil, nil
	}
	return s.signer.File()
}

func (s signingKind) keep(text string, file []byte) error {
	key, err := signing.ParseKey(text)
	if err != nil {
		return err
	}
	return s.signer.Keep(key, file)
}

// authorityPrefix begins the name of an authority in messages. Its pin follows.
const authorityPrefix = "authority:"

// authorityKind are authorities, which sign certificates.
type authorityKind struct{ a *enrol.Authority }

func (authorityKind) name() string { return "authority" }

func (authorityKind) notStored(server string) error {
	return gozzard.Errorf(gozzard.ErrConflict, "the authority was not changed: server %s did not store the next one. If it has "+
		"ended, try again in 10 seconds. Else it is frozen, cut off or has an older version: see \"gozzard servers\", or stop it", server)
}

func (authorityKind) notUsable(server, fault string) error {
	return gozzard.Errorf(gozzard.ErrConflict, "the authority was not changed: server %s cannot use the next one: %s", server, fault)
}

func (authorityKind) check(key string) error {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key, authorityPrefix))
	if err != nil || len(b) != 32 {
		return errors.New("it is not the pin of an authority")
	}
	return nil
}

func (k authorityKind) has(key string) (bool, error) {
	return k.a.Has(strings.TrimPrefix(key, authorityPrefix)), nil
}

func (k authorityKind) file(key string) ([]byte, error) {
	file, err := k.a.FileOf(strings.TrimPrefix(key, authorityPrefix))
	if errors.Is(err, enrol.ErrNotKept) {
		return nil, nil
	}
	return file, err
}

func (k authorityKind) keep(key string, file []byte) error {
	return k.a.Keep(strings.TrimPrefix(key, authorityPrefix), file)
}
