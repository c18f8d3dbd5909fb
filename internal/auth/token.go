package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// MaxTokenAge is how long a new token may be valid.
func (a *Accounts) MaxTokenAge() time.Duration {
	if a.age() <= 0 {
		return MaxTokenLife
	}
	return a.age()
}

// age is how old tokens may become; not above 0 means that each token has only its own end.
func (a *Accounts) age() time.Duration { return a.directory.o.MaxTokenAge }

// datedTokens gives tokens of versions that recorded no times a time of their own, so that they end, and drops those
// that are too old.
func (a *Accounts) datedTokens(ctx context.Context, all []Token) error {
	change := Change{Act: "token:age", By: gozzard.Caller{App: "gozzard"}}
	for _, t := range all {
		if !t.end(0).Equal(t.end(a.age())) && !t.expired(a.now(), 0) {
			a.shortened++
		}
		if t.Created.IsZero() && !t.expired(a.now(), a.age()) {
			t.Created = a.now().UTC().Truncate(time.Millisecond)
			change.Tokens = append(change.Tokens, t)
		}
		if tooOld := t.expired(a.now(), a.age()) && !t.expired(a.now(), 0); tooOld {
			change.DropTokens = append(change.DropTokens, t.Digest)
		}
	}

	if len(change.Tokens)+len(change.DropTokens) == 0 {
		return nil
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.change(ctx, change)
}

// Shortened is the number of tokens of the record that end earlier than they say, by the highest age.
func (a *Accounts) Shortened() int { return a.shortened }

// overAge are the tokens that are too old. They are removed for good: a longer age does not bring them back.
func (a *Accounts) overAge() []Digest {
	now := a.now()
	return a.digestsOf(func(t *Token) bool { return t.expired(now, a.age()) })
}

// openedBy are the sessions that were opened by links of tokens.
func (a *Accounts) openedBy(tokens []Digest) (list []Digest) {
	b := a.directory
	b.mu.RLock()
	defer b.mu.RUnlock()
	ids := map[string]bool{}
	for _, d := range tokens {
		ids[b.tokens[d].ID] = true
	}
	for d, t := range b.tokens {
		if t.OpenedBy != "" && ids[t.OpenedBy] {
			list = append(list, d)
		}
	}
	return list
}

// digests are the tokens of a user that fit.
func (a *Accounts) digests(user string, fits func(*Token) bool) []Digest {
	return a.digestsOf(func(t *Token) bool { return t.User == user && fits(t) })
}

func (a *Accounts) digestsOf(fits func(*Token) bool) (list []Digest) {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	for d, t := range a.directory.tokens {
		if fits(&t) {
			list = append(list, d)
		}
	}
	return list
}

// Tokens lists the tokens of a user, the newest first, each with the end that the highest age gives it.
func (a *Accounts) Tokens(user string) []Token {
	now := a.now()
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	list := []Token{}
	for _, t := range a.directory.tokens {
		if t.User == user && !t.expired(now, a.age()) && !a.directory.idle(&t) {
			t.Expires = t.end(a.age())
			list = append(list, t)
		}
	}

	slices.SortFunc(list, func(x, y Token) int {
		if c := y.Created.Compare(x.Created); c != 0 {
			return c
		}
		return strings.Compare(x.ID, y.ID)
	})

	return list
}

// CreateToken makes a personal token that is sent alone, and returns its secret, which cannot be read again.
func (a *Accounts) CreateToken(ctx context.Context, by gozzard.Caller, user, note string,
	life time.Duration) (secret string, t Token, err error) {
	return a.createToken(ctx, by, Token{User: user, Note: note, Kind: KindAlone}, life)
}

// CreateAppToken makes a personal token that only one app can use, beside its own credentials.
func (a *Accounts) CreateAppToken(ctx context.Context, by gozzard.Caller, user, app, note string,
	life time.Duration) (secret string, t Token, err error) {
	return a.createToken(ctx, by, Token{User: user, Note: note, Kind: KindApp, App: app}, life)
}

func (a *Accounts) createToken(ctx context.Context, by gozzard.Caller, t Token, life time.Duration) (string, Token,
	error) {
	if life <= 0 || life > a.MaxTokenAge() {
		return "", t, gozzard.Errorf(gozzard.ErrInvalid, "a token of this server is valid for at most %s (--max-token-age)",
			days(a.MaxTokenAge()))
	}
	if len(t.Note) > maxNoteBytes {
		return "", t, gozzard.Errorf(gozzard.ErrInvalid, "a note has at most %d bytes", maxNoteBytes)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	// Find the user and the app.
	if u, ok := a.user(t.User); !ok {
		return "", t, notFound("user", t.User)
	} else if u.Disabled {
		return "", t, gozzard.Errorf(gozzard.ErrConflict, "user %s is disabled", t.User)
	}
	if _, ok := a.app(t.App); t.Kind == KindApp && !ok {
		return "", t, notFound("app", t.App)
	}

	// Limit the number of tokens.
	made := 0
	for _, have := range a.Tokens(t.User) {
		if !have.Session {
			made++
		}
	}

	if made >= maxUserTokens {
		return "", t, gozzard.Errorf(gozzard.ErrConflict, "the limit of %d tokens for user %s is reached: revoke one",
			maxUserTokens, t.User)
	}

	return a.putToken(ctx, by, "token:create "+t.User, t, life, Change{})
}

// days is a time in words.
func days(d time.Duration) string {
	if n := d / (24 * time.Hour); n*24*time.Hour == d {
		return fmt.Sprintf("%d days", n)
	}
	return d.String()
}

// The prefixes let people and scanners recognise a leaked token.
const (
	tokenPrefix   = "gzp_"
	consolePrefix = "gzc_" // of sessions of the console
)

// putToken completes a token and records it with a change. The caller holds writing.
func (a *Accounts) putToken(ctx context.Context, by gozzard.Caller, act string, t Token, life time.Duration,
	with Change) (string, Token, error) {
	secret := tokenPrefix + NewSecret()
	if t.Kind.console() {
		secret = consolePrefix + NewSecret()
	}
	t.ID, t.Digest, t.Created = newID(), Hash(secret), a.now().UTC().Truncate(time.Millisecond)
	t.Expires = t.Created.Add(life)
	with.By, with.Act, with.Tokens = by, act+" "+t.ID, []Token{t}
	if err := a.change(ctx, with); err != nil {
		return "", Token{}, err
	}
	t.Expires = t.end(a.age())
	return secret, t, nil
}

// DropToken revokes a token of a user by its id.
func (a *Accounts) DropToken(ctx context.Context, by gozzard.Caller, user, id string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	list := a.Tokens(user)
	i := slices.IndexFunc(list, func(t Token) bool { return t.ID == id })
	if i < 0 {
		return notFound("token", id)
	}
	return a.change(ctx, Change{By: by, Act: "token:revoke " + user + " " + id, DropTokens: []Digest{list[i].Digest}})
}
