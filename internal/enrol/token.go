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

// Defaults and bounds of tokens.
const (
	DefaultTTL = time.Hour
	MaxTTL     = 30 * 24 * time.Hour
	MaxUses    = 100_000
	maxNets    = 64
)

const tokenVersion = "gz1"

// Token is what a person carries from the server to a host: gz1.<id>.<secret>.<pin>. The pin is that of the authority.
type Token struct {
	ID     string
	Secret string
	Pin    string
}

func newToken(pin string) Token {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the program instead
	return Token{ID: strings.ToLower(rand.Text()[:12]), Secret: base64.RawURLEncoding.EncodeToString(secret[:]),
		Pin: pin}
}

func (t Token) String() string {
	return strings.Join([]string{tokenVersion, t.ID, t.Secret, t.Pin}, ".")
}

// ParseToken reads the text of a token. No error repeats a part of it.
func ParseToken(s string) (Token, error) {
	parts := strings.Split(strings.TrimSpace(s), ".")
	if len(parts) != 4 || parts[0] != tokenVersion {
		return Token{}, errors.New("this is no enrolment token: it has the form gz1.ID.SECRET.PIN")
	}

	t := Token{ID: parts[1], Secret: parts[2], Pin: parts[3]}
	if !validTokenID(t.ID) {
		return Token{}, errors.New("the enrolment token is damaged: its id has characters that none has")
	}

	for _, p := range []string{t.Secret, t.Pin} {
		if b, err := base64.RawURLEncoding.DecodeString(p); err != nil || len(b) != 32 {
			return Token{}, errors.New("the enrolment token is damaged: it was not copied whole")
		}
	}

	return t, nil
}

func validTokenID(id string) bool {
	return id != "" && len(id) <= 32 && !strings.ContainsFunc(id,
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// TokenRecord is what the server keeps of a token: enough to know it when it is shown, nothing to make it from.
type TokenRecord struct {
	ID        string
	Digest    [sha256.Size]byte // of the secret
	Created   time.Time
	Expires   time.Time
	Uses      int // allowed
	Used      int
	Cloud     int             // of the hosts that it brings in
	Nets      []netip.Prefix  // where they must come from; none: anywhere
	Approve   bool            // they wait until somebody approves them
	Agent     gozzard.AgentID // the only one that it is for; "": hosts that were never enrolled
	Revoked   bool
	CreatedBy string
}

// errToken is all that a stranger learns: a token that is wrong, used up or over looks the same from outside.
func errToken(cause string) error {
	return &gozzard.Error{Kind: gozzard.ErrUnauthenticated,
		Message: "the enrolment token is not valid here: unknown, used up, over, or not for this host",
		Cause:   errors.New(cause)}
}

// admits decides whether a token lets a host in now. A record that does not exist is the zero one, which costs the
// same and admits nobody.
func (t *TokenRecord) admits(secret string, from netip.Addr, agent gozzard.AgentID, known bool, now time.Time) error {
	given := sha256.Sum256([]byte(secret))
	switch {
	case subtle.ConstantTimeCompare(given[:], t.Digest[:]) != 1 || t.ID == "":
		return errToken("no such token")
	case t.Revoked:
		return errToken("revoked")
	case !now.Before(t.Expires):
		return errToken("over")
	case t.Used >= t.Uses:
		return errToken("used up")
	case len(t.Nets) > 0 && !slices.ContainsFunc(t.Nets, func(n netip.Prefix) bool { return n.Contains(from.Unmap()) }):
		return errToken("from an address outside its networks")
	case t.Agent != "" && t.Agent != agent:
		return errToken("for another agent")
	case t.Agent == "" && known:
		return gozzard.Errorf(gozzard.ErrConflict,
			"agent %s is enrolled already; if it lost its key, an admin can let it in again with: gozzard token create --agent %s", agent, agent)
	}

	return nil
}
