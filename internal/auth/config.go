package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/gozzard/gozzard"
)

// Config is everything the book is made of. It holds digests only, so reading it gives nobody a secret; it still belongs in a file of mode 0600,
// because who may edit it decides who may ask.
type Config struct {
	Apps   []App   `json:"apps" yaml:"apps"`
	Tokens []Token `json:"tokens,omitempty" yaml:"tokens,omitempty"`
}

// App is a program that calls.
type App struct {
	Code    string   `json:"code" yaml:"code"`
	Secrets []Digest `json:"secrets" yaml:"secrets"` // one, or two while a secret is being replaced
	// AssertsUsers puts the app on the white list: it may name the user it acts for without that user's token.
	AssertsUsers bool `json:"asserts_users,omitempty" yaml:"asserts_users,omitempty"`
	// MissingOpTypeMeansStart is for one old client that leaves out an op_type of 0. Off, a forgotten field never starts a fleet.
	MissingOpTypeMeansStart bool `json:"missing_op_type_means_start,omitempty" yaml:"missing_op_type_means_start,omitempty"`
}

// Token is the login of one user.
type Token struct {
	User   string `json:"user" yaml:"user"`
	Digest Digest `json:"sha256" yaml:"sha256"`
}

// Digest is the SHA-256 of a secret. A plain hash is enough because secrets are 256 random bits (NewSecret): there is nothing to guess.
type Digest [sha256.Size]byte

// Hash gives the digest to store for a secret.
func Hash(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// NewSecret draws a secret of 256 random bits for an app or a token.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// MarshalText writes the digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("not a SHA-256 digest: want %d hexadecimal digits", 2*len(d)) // the text may be a secret put in the wrong place
	}
	copy(d[:], b)
	return nil
}

// IsZero reports whether no digest is set.
func (d Digest) IsZero() bool { return d == Digest{} }

// Validate reports the first thing that would make the configuration mean something else than it says.
func (c Config) Validate() error {
	apps := make(map[string]bool, len(c.Apps))
	for i, a := range c.Apps {
		if err := a.validate(); err != nil {
			return fmt.Errorf("apps[%d]: %w", i, err)
		}
		if apps[a.Code] {
			return fmt.Errorf("apps[%d]: code %q is used twice", i, a.Code)
		}
		apps[a.Code] = true
	}
	tokens := make(map[Digest]bool, len(c.Tokens))
	for i, t := range c.Tokens {
		switch err := gozzard.ValidateName(t.User); {
		case err != nil:
			return fmt.Errorf("tokens[%d].user: %w", i, err)
		case t.Digest.IsZero():
			return fmt.Errorf("tokens[%d].sha256: required", i)
		case tokens[t.Digest]:
			return fmt.Errorf("tokens[%d].sha256: the same token is given twice", i)
		}
		tokens[t.Digest] = true
	}
	return nil
}

func (a App) validate() error {
	if err := gozzard.ValidateName(a.Code); err != nil {
		return fmt.Errorf("code: %w", err)
	}
	if n := len(a.Secrets); n < 1 || n > maxSecrets {
		return fmt.Errorf("secrets: has %d digests, want 1 or %d", n, maxSecrets)
	}
	for i, d := range a.Secrets {
		if d.IsZero() {
			return fmt.Errorf("secrets[%d]: required", i)
		}
	}
	return nil
}
