package enrol

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// The defaults and limits of tokens.
const (
	DefaultTTL = time.Hour
	MaxTTL     = 30 * 24 * time.Hour
	MaxUses    = 100_000
	maxNets    = 64
)

// The versions of tokens: of hosts, of servers, and of relays.
const (
	tokenVersion  = "gz1"
	serverVersion = "gzs1"
	relayVersion  = "gzr1"
)

// Token enrols hosts or a relay, or gives the keys to a server. A person copies its text from the server to a host:
// gz1.<id>.<secret>.<pin>, for servers gzs1, for relays gzr1. The pin identifies the authority of the server.
type Token struct {
	ID     string
	Secret string
	Pin    string
	Server bool // it is for a server, not for hosts
	Relay  bool // it is for a relay, not for hosts
}

func newToken(pin string) Token {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the program instead
	return Token{
		ID:     strings.ToLower(rand.Text()[:12]),
		Secret: base64.RawURLEncoding.EncodeToString(secret[:]),
		Pin:    pin,
	}
}

func (t Token) String() string {
	version := tokenVersion
	switch {
	case t.Server:
		version = serverVersion
	case t.Relay:
		version = relayVersion
	}
	return strings.Join([]string{version, t.ID, t.Secret, t.Pin}, ".")
}

// ParseToken parses the text of a token. Its errors never contain a part of the token.
func ParseToken(s string) (Token, error) {
	parts := strings.Split(strings.TrimSpace(s), ".")
	switch {
	case parts[0] == serverVersion:
		return Token{}, errors.New("this is a token for a server: it gives the keys of the installation to \"gozzard server join\". " +
			"For hosts make one with \"gozzard token create\"")
	case parts[0] == relayVersion:
		return Token{}, errors.New("this is a token for a relay, which joins with \"gozzard relay join\". " +
			"For hosts make one with \"gozzard token create\"")
	case len(parts) != 4 || parts[0] != tokenVersion:
		return Token{}, errors.New("this is not an enrolment token, which has the form gz1.ID.SECRET.PIN")
	}
	return parseParts(parts)
}

// ParseServerToken parses the text of a token for a server. Its errors never contain a part of the token.
func ParseServerToken(s string) (Token, error) {
	parts := strings.Split(strings.TrimSpace(s), ".")
	switch {
	case parts[0] == tokenVersion:
		return Token{}, errors.New("this is a token for hosts: make one for a server with \"gozzard servers token\"")
	case len(parts) != 4 || parts[0] != serverVersion:
		return Token{}, errors.New("this is not a token for a server, which has the form gzs1.ID.SECRET.PIN: make one with " +
			"\"gozzard servers token\"")
	}
	t, err := parseParts(parts)
	t.Server = true
	return t, err
}

// ParseRelayToken parses the text of a token for a relay. Its errors never contain a part of the token.
func ParseRelayToken(s string) (Token, error) {
	parts := strings.Split(strings.TrimSpace(s), ".")
	if len(parts) != 4 || parts[0] != relayVersion {
		return Token{}, errors.New("this is not a token for a relay, which has the form gzr1.ID.SECRET.PIN: make one with " +
			"\"gozzard relays token\"")
	}
	t, err := parseParts(parts)
	t.Relay = true
	return t, err
}

// parseParts parses what follows the version of a token.
func parseParts(parts []string) (Token, error) {
	t := Token{ID: parts[1], Secret: parts[2], Pin: parts[3]}
	if !validTokenID(t.ID) {
		return Token{}, errors.New("the enrolment token is damaged: its id has invalid characters")
	}

	for _, p := range []string{t.Secret, t.Pin} {
		if b, err := base64.RawURLEncoding.DecodeString(p); err != nil || len(b) != 32 {
			return Token{}, errors.New("the enrolment token is damaged: it was not copied completely")
		}
	}

	return t, nil
}

func validTokenID(id string) bool {
	return id != "" && len(id) <= 32 && !strings.ContainsFunc(id,
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// TokenRecord is what the server stores of a token: enough to check it, not enough to reconstruct it.
type TokenRecord struct {
	ID        string
	Digest    [sha256.Size]byte // of the secret
	Created   time.Time
	Expires   time.Time
	Uses      int // allowed
	Used      int
	Cloud     int             // cloud area of the hosts that it enrols
	Nets      []netip.Prefix  // of the hosts: they connect from there, and their addresses are in there; none: any
	Approve   bool            // the hosts wait for approval
	Agent     gozzard.AgentID // the only agent that it enrols; "": any agent that is not enrolled yet
	Revoked   bool
	CreatedBy string // app/user
}

// creator is the caller that created the token, without rights. Names of apps and users have no slash.
func (t *TokenRecord) creator() gozzard.Caller {
	app, user, _ := strings.Cut(t.CreatedBy, "/")
	return gozzard.Caller{App: app, User: user}
}

// errToken is the error for every invalid token. An unknown client cannot see whether its token is wrong, used up or
// expired; the cause is for the log.
func errToken(cause string) error {
	return &gozzard.Error{Kind: gozzard.ErrUnauthenticated,
		Message: "the enrolment token is not valid here: it is unknown, used up, expired, or not for this host. " +
			"A host that is a member already needs none; for another host make one with gozzard token create",
		Cause: errors.New(cause)}
}

// check returns why a token does not enrol a host now, nil if it does. The zero record stands for an unknown token: its
// check takes the same time and always fails.
func (t *TokenRecord) check(secret string, from netip.Addr, agent gozzard.AgentID, now time.Time) error {
	given := sha256.Sum256([]byte(secret))

	switch {
	case subtle.ConstantTimeCompare(given[:], t.Digest[:]) != 1 || t.ID == "":
		return errToken("no such token")
	case t.Revoked:
		return errToken("revoked")
	case !now.Before(t.Expires):
		return errToken("expired")
	case t.Used >= t.Uses:
		return errToken("used up")
	case !t.isInside(from):
		return errToken("from an address outside its networks")
	case t.Agent != "" && t.Agent != agent:
		return errToken("for another agent")
	}

	return nil
}

// isInside reports whether an address is in the networks of the token.
func (t *TokenRecord) isInside(ip netip.Addr) bool {
	return len(t.Nets) == 0 ||
		slices.ContainsFunc(t.Nets, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
}
