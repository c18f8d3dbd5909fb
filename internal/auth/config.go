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
// two exceptions: the keys of apps that sign (App.SignKeys) and the secrets of second factors (User.Second). Its file
// still needs mode 0600, because a program that can change it can give itself access.
type Config struct {
	Apps    []App         `json:"apps" yaml:"apps"`
	Users   []User        `json:"users,omitempty" yaml:"users,omitempty"`
	Groups  []Group       `json:"groups,omitempty" yaml:"groups,omitempty"`
	Tokens  []Token       `json:"tokens,omitempty" yaml:"tokens,omitempty"`
	Deleted []DeletedUser `json:"deleted_users,omitempty" yaml:"deleted_users,omitempty"`

	Version int64 `json:"-" yaml:"-"` // how often the record changed them; set by Store.LoadAccounts
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
	// UnknownUsers says what people get through the app that the record does not know: true the rights of the app, false
	// nothing. nil is an app from a version that did not ask: it is treated as true until an admin decides.
	UnknownUsers *bool `json:"unknown_users,omitempty" yaml:"unknown_users,omitempty"`
	// Disabled rejects the app until it is enabled again.
	Disabled bool `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	// KnownBy are the users that were shown the secrets, in the order of Secrets; "" if that was not recorded.
	KnownBy []string `json:"known_by,omitempty" yaml:"known_by,omitempty"`
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
	// Second is the second factor of the password; nil: none.
	Second *SecondFactor `json:"second,omitempty" yaml:"second,omitempty"`
}

// Group holds grants for the people that the login provider counts among its members.
type Group struct {
	Name   string          `json:"name" yaml:"name"`
	Grants []gozzard.Grant `json:"grants" yaml:"grants"`
}

// DeletedUser is what remains of a deleted user: the name gets nothing, and is not given to another person by mistake.
type DeletedUser struct {
	Name string    `json:"name" yaml:"name"`
	At   time.Time `json:"at" yaml:"at"`
}

// TokenKind says where a token is accepted.
type TokenKind string

// The kinds of tokens. Tokens from before there were kinds have none: they are accepted in both places.
const (
	KindAlone    TokenKind = "alone"    // a personal token that is sent alone
	KindApp      TokenKind = "app"      // a personal token that one app sends beside its own credentials
	KindPassword TokenKind = "password" // a session by password; it is sent alone
	KindProvider TokenKind = "provider" // a session by the login provider; it is sent alone

	// Sessions of the console are in the cookie of a browser and are accepted nowhere else.
	KindConsole         TokenKind = "console"          // by password
	KindConsoleProvider TokenKind = "console_provider" // by the login provider
	KindConsoleLink     TokenKind = "console_link"     // by a one-time link
)

// console reports whether the token is a session of the console.
func (k TokenKind) console() bool {
	return k == KindConsole || k == KindConsoleProvider || k == KindConsoleLink
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
	Kind    TokenKind `json:"kind,omitempty" yaml:"kind,omitempty"`
	App     string    `json:"app,omitempty" yaml:"app,omitempty"`       // of KindApp: it is for; of KindConsoleLink: it acts as
	Groups  []string  `json:"groups,omitempty" yaml:"groups,omitempty"` // of the person at the provider, for a session
	// OpenedBy is the id of the token that made the link, of KindConsoleLink. The session ends with that token.
	OpenedBy string `json:"opened_by,omitempty" yaml:"opened_by,omitempty"`
}

// alone reports whether the token is accepted without an app.
func (t *Token) alone() bool { return t.Kind != KindApp && !t.Kind.console() }

// through reports whether the token is accepted beside the credentials of an app.
func (t *Token) through(app string) bool {
	return t.Kind == KindApp && t.App == app || t.Kind == "" && !t.Session
}

// end is when a token ends, if tokens may have an age; the zero time means never.
func (t *Token) end(age time.Duration) time.Time {
	if age <= 0 || t.Created.IsZero() {
		return t.Expires
	}
	if oldest := t.Created.Add(age); t.Expires.IsZero() || oldest.Before(t.Expires) {
		return oldest
	}
	return t.Expires
}

func (t *Token) expired(now time.Time, age time.Duration) bool {
	end := t.end(age)
	return !end.IsZero() && !now.Before(end)
}

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
