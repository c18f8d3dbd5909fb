package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
)

// Config is everything that a Directory is made of. It has digests of secrets, so reading it reveals no secret, with
// one exception: the keys of apps that sign (App.SignKeys). Its file still needs mode 0600, because a program that
// can change it can give itself access.
type Config struct {
	Apps   []App   `json:"apps" yaml:"apps"`
	Users  []User  `json:"users,omitempty" yaml:"users,omitempty"`
	Tokens []Token `json:"tokens,omitempty" yaml:"tokens,omitempty"`
}

// App is a program with credentials.
type App struct {
	Code    string   `json:"code" yaml:"code"`
	Secrets []Digest `json:"secrets" yaml:"secrets"` // one, or two while a secret is being replaced
	// AssertsUsers puts the app on the white list: it may name the user it acts for without a token of that user.
	AssertsUsers bool `json:"asserts_users,omitempty" yaml:"asserts_users,omitempty"`
	// MissingActionMeansStart is for one old client that leaves the action out when it means start. Without it, a
	// forgotten field never starts a fleet.
	MissingActionMeansStart bool `json:"missing_op_type_means_start,omitempty" yaml:"missing_op_type_means_start,omitempty"`
	// Grants are what the app may see and do. No list at all means everything, because older versions had no grants;
	// an empty list means nothing.
	Grants []gozzard.Grant `json:"grants,omitzero" yaml:"grants,omitempty"`
	// SignKeys are the secrets themselves, in the order of Secrets, of an app that may prove itself by a signature: a
	// signature cannot be checked with a digest. Apps that do not sign have none.
	SignKeys []string `json:"sign_keys,omitempty" yaml:"sign_keys,omitempty"`
}

// Rights are what the app may see and do.
func (a *App) Rights() *gozzard.Rights {
	if a.Grants == nil {
		return gozzard.Everything()
	}
	return &gozzard.Rights{Grants: a.Grants}
}

// User is a person.
type User struct {
	Name string `json:"name" yaml:"name"`
	// the hash of the password; "" means that the user cannot log in by password
	Password string `json:"password,omitempty" yaml:"password,omitempty"`
	// the user's id at the login provider, set by the first login there
	Subject  string          `json:"subject,omitempty" yaml:"subject,omitempty"`
	Disabled bool            `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	Grants   []gozzard.Grant `json:"grants,omitempty" yaml:"grants,omitempty"`
}

// Token is a personal token or a session of one user.
type Token struct {
	User    string    `json:"user" yaml:"user"`
	Digest  Digest    `json:"sha256" yaml:"sha256"`
	ID      string    `json:"id,omitempty" yaml:"id,omitempty"` // to revoke it by
	Note    string    `json:"note,omitempty" yaml:"note,omitempty"`
	Session bool      `json:"session,omitempty" yaml:"session,omitempty"` // made by a login
	Created time.Time `json:"created,omitzero" yaml:"created,omitempty"`
	Expires time.Time `json:"expires,omitzero" yaml:"expires,omitempty"` // zero: never
}

func (t *Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Digest is the SHA-256 of a secret. A plain hash is enough: secrets are 256 random bits (NewSecret) and cannot be
// guessed.
type Digest [sha256.Size]byte

// Hash is the digest of a secret.
func Hash(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// NewSecret makes a secret of 256 random bits for an app or a token.
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
		// the text may be a secret in the wrong place, so the error does not show it
		return fmt.Errorf("not a SHA-256 digest: want %d hexadecimal digits", 2*len(d))
	}
	copy(d[:], b)
	return nil
}

// IsZero reports whether the digest is not set.
func (d Digest) IsZero() bool { return d == Digest{} }
