package signing

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const keyPrefix = "gzk1"

// KeyID identifies a key in envelopes, records and logs.
type KeyID [8]byte

func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// Key is a public key of a server and its epoch: its number in the order of that server's keys, counted from 1.
type Key struct {
	Epoch  uint64
	Public [ed25519.PublicKeySize]byte
}

// ID is the first 8 bytes of the SHA-256 of the public key.
func (k Key) ID() KeyID {
	sum := sha256.Sum256(k.Public[:])
	return KeyID(sum[:8])
}

// String is the text that ParseKey reads: one word without spaces. It is not secret, but it must not be changed by
// others: it decides which server an agent obeys.
func (k Key) String() string {
	return keyPrefix + "." + strconv.FormatUint(k.Epoch, 10) + "." + base64.RawURLEncoding.EncodeToString(k.Public[:])
}

// ParseKey accepts only what String writes.
func ParseKey(s string) (Key, error) {
	prefix, rest, _ := strings.Cut(s, ".")
	epoch, public, ok := strings.Cut(rest, ".")
	if prefix != keyPrefix || !ok {
		return Key{}, fmt.Errorf("server key is not of the form %s.<epoch>.<public key>", keyPrefix)
	}

	var k Key
	var err error
	if k.Epoch, err = strconv.ParseUint(epoch, 10, 63); err != nil || k.Epoch == 0 {
		return Key{}, errors.New("server key has no epoch")
	}

	raw, err := base64.RawURLEncoding.DecodeString(public)
	if err != nil || len(raw) != len(k.Public) {
		return Key{}, fmt.Errorf("server key has no public key of %d bytes", len(k.Public))
	}

	copy(k.Public[:], raw)
	if k.String() != s {
		return Key{}, errors.New("server key is not in its standard form")
	}

	return k, nil
}

func (k Key) verify(message, signature []byte) bool {
	return ed25519.Verify(k.Public[:], message, signature)
}
