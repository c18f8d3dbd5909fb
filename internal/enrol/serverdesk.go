package enrol

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// ServerJoinPath is the API path that a new server calls to get the keys.
const ServerJoinPath = "/api/v1/servers/join"

// The limits of tokens for servers. A token that has ended is remembered for a while, so that its owner learns why.
const (
	MaxServerTTL    = time.Hour
	maxServerTokens = 100
	endedFor        = 24 * time.Hour
)

// The words of the audit rows, followed by the id of the token. They are stored, so they cannot change.
const (
	auditServerToken = "server:token:"
	auditServerJoin  = "server:join:"
)

// ServerKeys are what the servers of one installation have in common beside the record.
type ServerKeys struct {
	Installation  string   `json:"installation"` // the id that the record has, too
	Authority     []byte   `json:"authority"`    // the key file of the authority
	NextAuthority []byte   `json:"next_authority,omitempty"`
	Signing       []byte   `json:"signing"`           // the file of the signing key
	Outside       []string `json:"outside,omitempty"` // keys of which the files have only the names: an external signer has them
}

// ServerJoinRequest is the request of a new server for the keys.
type ServerJoinRequest struct {
	Token  string `json:"token"`  // its id
	Public []byte `json:"public"` // X25519, made for this request
	Proof  []byte `json:"proof"`  // that the sender has the token
}

// ServerJoinAnswer has the keys, which only the sender of the request can decrypt.
type ServerJoinAnswer struct {
	Public []byte `json:"public"` // X25519, made for this answer
	Sealed []byte `json:"sealed"`
}

// ServerDeskOptions are the parts of a ServerDesk. All but Now are required.
type ServerDeskOptions struct {
	Pin    func() string                                   // of the authority
	Keys   func() (ServerKeys, error)                      // the present ones
	Rights func(creator gozzard.Caller) *gozzard.Rights    // the present ones; nil: none
	Note   func(ctx context.Context, act AuditEntry) error // writes an audit row
	Barred func() error                                    // why this server gives no keys now; nil: it does
	Now    func() time.Time
	Log    *slog.Logger
}

// ServerDesk gives the keys of an installation to new servers. Its tokens are in memory: they end with the server, and
// the record has nothing of them. It is safe for concurrent use.
type ServerDesk struct {
	o ServerDeskOptions

	mu     sync.Mutex
	tokens map[string]*serverToken
}

// serverToken is a token for one server.
type serverToken struct {
	key     joinKey
	expires time.Time
	creator gozzard.Caller
	used    time.Time // zero: not yet
	by      netip.Addr
}

// NewServerDesk makes a desk without tokens.
func NewServerDesk(o ServerDeskOptions) *ServerDesk {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &ServerDesk{o: o, tokens: map[string]*serverToken{}}
}

// CreateToken makes a token for one server. Its text cannot be read again later.
func (d *ServerDesk) CreateToken(ctx context.Context, caller gozzard.Caller, ttl time.Duration) (t Token, expires time.Time,
	err error) {
	if ttl <= 0 || ttl > MaxServerTTL {
		return t, expires, invalid("ttl", "must be above 0 and at most 1 hour")
	}
	if err := d.o.Barred(); err != nil {
		return t, expires, err
	}
	now := d.o.Now()
	if err := d.makeRoom(now); err != nil {
		return t, expires, err
	}
	expires = now.Add(ttl)
	t = newToken(d.o.Pin())
	t.Server = true

	// The row first: a token without one must not be given out.
	if err := d.o.Note(ctx, AuditEntry{At: now, Caller: caller, What: auditServerToken + t.ID}); err != nil {
		return t, expires, err
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[t.ID] = &serverToken{key: newJoinKey(t), expires: expires,
		creator: gozzard.Caller{App: caller.App, User: caller.User}}
	return t, expires, nil
}

// makeRoom forgets tokens that ended long ago, and fails if there are too many others. Callers at the same moment may pass
// the limit by their number.
func (d *ServerDesk) makeRoom(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.tokens, func(_ string, k *serverToken) bool { return now.After(k.expires.Add(endedFor)) })
	if len(d.tokens) >= maxServerTokens {
		return gozzard.Errorf(gozzard.ErrConflict, "this server has made %d tokens for servers in a day, which is "+
			"the limit: use one of them, or restart the server, which ends all of them", maxServerTokens)
	}
	return nil
}

// Give gives the keys to a server that proves to have a token.
func (d *ServerDesk) Give(ctx context.Context, from netip.Addr, req ServerJoinRequest) (out ServerJoinAnswer, err error) {
	if err := d.o.Barred(); err != nil {
		return out, err
	}
	t, err := d.take(from, req)
	if err != nil {
		return out, err
	}
	defer func() { // nothing was given
		if err != nil {
			d.mu.Lock()
			t.used = time.Time{}
			d.mu.Unlock()
		}
	}()

	// Seal the keys.
	keys, err := d.o.Keys()
	if err != nil {
		return out, fmt.Errorf("cannot read the keys: %w", err)
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return out, err
	}
	if out.Public, out.Sealed, err = t.key.seal(req.Token, req.Public, text); err != nil {
		return out, invalid("public", "is not an X25519 key")
	}

	// The row before the answer: keys never leave without one.
	act := AuditEntry{At: d.o.Now(), What: auditServerJoin + req.Token,
		Caller: gozzard.Caller{App: t.creator.App, User: t.creator.User}}
	if err := d.o.Note(ctx, act); err != nil {
		return ServerJoinAnswer{}, err
	}
	d.o.Log.Warn("another server got the keys of this installation", "token", req.Token, "from", from.String(),
		"creator", t.creator.App+"/"+t.creator.User)
	return out, nil
}

// errServerToken refuses one that has not proven to have a token.
func errServerToken(cause string) error {
	return &gozzard.Error{Kind: gozzard.ErrUnauthenticated,
		Message: "the token is not valid here: make one with \"gozzard servers token\" at this server, and use it there " +
			"before the server is restarted",
		Cause: errors.New(cause)}
}

// take checks a request and marks its token as used. One that has proven to have the token learns why it is refused.
func (d *ServerDesk) take(from netip.Addr, req ServerJoinRequest) (*serverToken, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tokens[req.Token]
	key := joinKey{}
	if t != nil {
		key = t.key
	} else {
		_, _ = rand.Read(key[:]) // never fails: it ends the program instead
	}

	now := d.o.Now()
	switch {
	case !hmac.Equal(key.proof(req.Token, req.Public), req.Proof) || t == nil:
		return nil, errServerToken("no such token")
	case !t.used.IsZero():
		return nil, gozzard.Errorf(gozzard.ErrUnauthenticated, "this token was used already, at %s from %s. If that was not your "+
			"server, the keys of the installation are stolen: rotate them with \"gozzard key rotate\"",
			t.used.UTC().Format(time.RFC3339), t.by)
	case !now.Before(t.expires):
		return nil, gozzard.Errorf(gozzard.ErrUnauthenticated, "this token expired at %s: make another one with "+
			"\"gozzard servers token\"", t.expires.UTC().Format(time.RFC3339))
	case !d.o.Rights(t.creator).All():
		return nil, gozzard.Errorf(gozzard.ErrUnauthenticated, "the creator of this token is not an admin of everything any more: "+
			"an admin can make another one with \"gozzard servers token\"")
	}
	t.used, t.by = now, from
	return t, nil
}
