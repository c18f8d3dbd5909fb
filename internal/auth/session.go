package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// DefaultIdle is how long a session of the console lasts without a request, on a server that does not say it.
const DefaultIdle = 2 * time.Hour

// Session is a session of the console, as its own browser sees it.
type Session struct {
	Secret string // the value of the cookie
	Token  Token
}

// CSRF is what every change of the session must carry in a header. A page of another site can make a browser send the
// cookie, but cannot read this value. It does not reveal the cookie, and the digest in the record does not reveal it.
func (s *Session) CSRF() string {
	mac := hmac.New(sha256.New, []byte(s.Secret))
	_, _ = mac.Write([]byte("gozzard console csrf")) // a hash never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Admits reports whether a request carries the right value of CSRF.
func (s *Session) Admits(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(s.CSRF()), []byte(csrf)) == 1
}

// OpenConsole identifies a user by password and code, and opens a session of the console.
func (a *Accounts) OpenConsole(ctx context.Context, name string, p Proof) (s Session, err error) {
	s.Secret, s.Token, err = a.login(ctx, p, Token{User: name, Kind: KindConsole, Note: "console, login by password"})
	return s, err
}

// OpenConsoleSubject is LoginSubject for a session of the console.
func (a *Accounts) OpenConsoleSubject(ctx context.Context, name, subject string, groups ...string) (s Session,
	err error) {
	s.Secret, s.Token, err = a.loginSubject(ctx, subject, groups,
		Token{User: name, Kind: KindConsoleProvider, Note: "console, login by provider"})
	return s, err
}

// ConsoleIdle is how long a session of the console lasts without a request.
func (a *Accounts) ConsoleIdle() time.Duration { return a.directory.o.ConsoleIdle }

// SessionsOf lists the sessions of the user of a session, with that one. A session that acts as an app sees only sessions
// of that app: an app that names a user is not that user.
func (a *Accounts) SessionsOf(s Session) []Token {
	return slices.DeleteFunc(a.Tokens(s.Token.User), func(t Token) bool { return !s.sees(&t) })
}

// sees reports whether a token of the same user is a session that this one may list and end.
func (s *Session) sees(t *Token) bool {
	return t.Session && (s.Token.App == "" || t.App == s.Token.App)
}

// EndOthers ends all sessions that SessionsOf lists but the given one.
func (a *Accounts) EndOthers(ctx context.Context, s Session) (ended int, err error) {
	a.writing.Lock()
	defer a.writing.Unlock()

	drop := a.digests(s.Token.User, func(t *Token) bool {
		return t.ID != s.Token.ID && s.sees(t)
	})
	if len(drop) == 0 {
		return 0, nil
	}

	// A session that one of them opened goes on by itself.
	change := Change{By: s.Token.opener(), Act: "session:end-others " + s.Token.User, DropTokens: drop}
	if own, ok := a.directory.tokenOf(s.Token.ID); ok && own.OpenedBy != "" {
		if from, ok := a.directory.tokenOf(own.OpenedBy); ok && slices.Contains(drop, from.Digest) {
			own.OpenedBy = ""
			change.Tokens = []Token{own}
		}
	}
	return len(drop), a.change(ctx, change)
}

// EndSession ends a session of the console.
func (a *Accounts) EndSession(ctx context.Context, s Session) error {
	return a.DropToken(ctx, s.Token.opener(), s.Token.User, s.Token.ID)
}

// opener is the caller that a session acts as.
func (t *Token) opener() gozzard.Caller {
	if t.App != "" {
		return gozzard.Caller{App: t.App, User: t.User, Asserted: true}
	}
	return themselves(t.User)
}

// CheckSession identifies the caller of a request by the cookie of the console. With use, the request counts as one of
// the person, so that the session does not become idle.
func (b *Directory) CheckSession(secret string, use bool) (Session, gozzard.Caller, error) {
	t, ok := b.token(secret)
	if !ok || !t.Kind.console() || b.idle(&t) {
		return Session{}, gozzard.Caller{}, b.refuse("session", gozzard.ErrUnauthenticated,
			"the session of the console has ended: sign in again")
	}
	if err := b.enabled(t.User); err != nil {
		return Session{}, gozzard.Caller{}, err
	}

	caller := t.opener()
	caller.Session = t.ID
	if caller.Rights = b.RightsOf(caller); caller.Rights == nil { // such as of an app that was removed or disabled
		return Session{}, gozzard.Caller{}, b.refuse("session", gozzard.ErrUnauthenticated,
			"the session of the console has no account any more: sign in again")
	}

	if use {
		b.used.note(t.Digest, b.o.Now())
	}
	t.Expires = t.end(b.o.MaxTokenAge)
	return Session{Secret: secret, Token: t}, caller, nil
}

// idle reports whether a session of the console had no request for too long. Times of requests are not recorded: after a
// restart of the server they begin again.
func (b *Directory) idle(t *Token) bool {
	if !t.Kind.console() {
		return false
	}
	last := b.used.of(t.Digest)
	for _, since := range []time.Time{t.Created, b.started} {
		if since.After(last) {
			last = since
		}
	}
	return b.o.Now().Sub(last) >= b.o.ConsoleIdle
}

// lastUse knows when sessions had their last request.
type lastUse struct {
	mu sync.Mutex
	at map[Digest]time.Time
}

func (l *lastUse) note(d Digest, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[Digest]time.Time{}
	}
	l.at[d] = at
}

func (l *lastUse) of(d Digest) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[d]
}

// keep forgets sessions that have ended.
func (l *lastUse) keep(open map[Digest]Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.at {
		if _, ok := open[d]; !ok {
			delete(l.at, d)
		}
	}
}
