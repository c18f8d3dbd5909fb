package auth

import (
	"context"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// The limits of one-time links.
const (
	LinkLife  = time.Minute
	maxLinks  = 1000
	userLinks = 10 // of one caller; a new one replaces the oldest
)

// links are the codes of one-time links. They are in memory only: a restart of the server ends them.
type links struct {
	mu    sync.Mutex
	codes map[Digest]link
}

// link is what a code opens.
type link struct {
	by    gozzard.Caller
	made  time.Time
	until time.Time // end of what the caller came with; zero: no end
}

// NewLink makes the code of a link that opens the console once, within LinkLife, as the caller. The session ends with the
// token that the caller came with, also when that is revoked: a stolen token does not live longer by it.
func (a *Accounts) NewLink(by gozzard.Caller) (code string, expires time.Time, err error) {
	now := a.now()
	l := link{by: by, made: now}
	if by.Session != "" {
		t, ok := a.directory.tokenOf(by.Session)
		if !ok {
			return "", now, a.directory.refuse("user_token", gozzard.ErrUnauthenticated, "the token is not valid")
		}
		l.until = t.end(a.age())
	}
	if !Alone(by) {
		l.by = gozzard.Caller{App: by.App, User: by.User, Asserted: true}
	}

	code = NewSecret()
	if !a.links.add(Hash(code), l, now) {
		return "", now, &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: LinkLife,
			Message: "too many links to the console are open: try again in a minute"}
	}
	return code, now.Add(LinkLife), nil
}

// EnterLink opens a session of the console by the code of a link, and uses the code up.
func (a *Accounts) EnterLink(ctx context.Context, code string) (s Session, err error) {
	l, ok := a.links.take(Hash(code), a.now())
	if !ok {
		return s, a.directory.refuse("console_link", gozzard.ErrUnauthenticated,
			"the link was used before, or is older than a minute: make a new one with \"gozzard console\"")
	}

	a.writing.Lock()
	defer a.writing.Unlock()
	from, ok := a.directory.tokenOf(l.by.Session)
	if a.directory.RightsOf(l.by) == nil || l.by.Session != "" && !ok {
		return s, a.directory.refuse("console_link", gozzard.ErrUnauthenticated,
			"the account that made the link is not valid any more")
	}

	t := Token{User: l.by.User, Kind: KindConsoleLink, Note: "console, by a link", Expires: l.until, Groups: from.Groups,
		OpenedBy: from.ID}
	if !Alone(l.by) {
		t.App = l.by.App
	}
	s.Secret, s.Token, err = a.session(ctx, t, nil)
	return s, err
}

// tokenOf finds a token by its id.
func (b *Directory) tokenOf(id string) (Token, bool) {
	b.mu.RLock()
	d, ok := b.ids[id]
	t := b.tokens[d]
	b.mu.RUnlock()
	return t, ok && !t.expired(b.o.Now(), b.o.MaxTokenAge)
}

// add keeps a code. It reports false if there are too many.
func (l *links) add(code Digest, what link, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.codes == nil {
		l.codes = map[Digest]link{}
	}

	own, oldest := 0, Digest{}
	for d, have := range l.codes {
		switch {
		case now.Sub(have.made) >= LinkLife:
			delete(l.codes, d)
		case have.by.App == what.by.App && have.by.User == what.by.User:
			if own++; own == 1 || have.made.Before(l.codes[oldest].made) {
				oldest = d
			}
		}
	}

	if own >= userLinks {
		delete(l.codes, oldest)
	}
	if len(l.codes) >= maxLinks {
		return false
	}
	l.codes[code] = what
	return true
}

// take removes a code and reports whether it was valid.
func (l *links) take(code Digest, now time.Time) (link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what, ok := l.codes[code]
	delete(l.codes, code)
	return what, ok && now.Sub(what.made) < LinkLife
}
