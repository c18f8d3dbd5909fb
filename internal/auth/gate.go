package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gozzard/gozzard"
)

// Gate limits how often a caller may send requests to any door. It is in the context of a request, because only the
// door identifies the caller. The door also writes the answer to a request that the gate rejects.
type Gate interface {
	// Known is called when the app is identified.
	Known(app string) error
	// Failed is called when the credentials were wrong. An error replaces the answer of the door.
	Failed(f Failure) error
	// Password is called before a password is checked, which is expensive. It waits when guesses come too fast. skip
	// says that the check would be for nothing.
	Password(ctx context.Context, f Failure) (skip bool, err error)
}

// Failure says whose credentials were wrong, as far as that is known.
type Failure struct {
	Name  string // such as app:shop; "" if the request named no app and no user
	Known bool   // an app or a user has this name

	// Proven says that the app sent its right secret, and only the token of its user was wrong.
	Proven bool

	// None says that there were no credentials at all, which is no guess.
	None bool
}

// failed is an error about wrong credentials that says whose they were.
type failed struct {
	error
	failure Failure
}

// Unwrap is the error without the name.
func (f *failed) Unwrap() error { return f.error }

// failedAs adds to an error whose credentials were wrong.
func failedAs(err error, f Failure) error { return &failed{error: err, failure: f} }

// failureOf is what an error says about whose credentials were wrong.
func failureOf(err error) Failure {
	var f *failed
	if errors.As(err, &f) {
		return f.failure
	}
	return Failure{}
}

type gateKey struct{}

// WithGate adds a gate to the context of a request.
func WithGate(ctx context.Context, g Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// gateOf is the gate of a request, nil if it has none.
func gateOf(ctx context.Context) Gate {
	g, _ := ctx.Value(gateKey{}).(Gate)
	return g
}

// Guarded identifies the caller of a request by a function and reports the result to the gate. Right credentials are
// always accepted, however many wrong ones came before.
func Guarded(r *http.Request, identify func() (App, error)) error {
	app, err := identify()
	if visits(r, err) {
		return gozzard.Refused(err, gozzard.Refusal{Visit: true})
	}

	g := gateOf(r.Context())
	switch {
	case g == nil:
		return err
	case err == nil:
		return g.Known(app.Code)
	case gozzard.KindOf(err) == gozzard.ErrUnauthenticated, gozzard.KindOf(err) == gozzard.ErrCodeRequired:
		if limited := g.Failed(failureOf(err)); limited != nil {
			return limited
		}
	}

	return err
}

// visits reports whether a request without any credentials only wanted to read. A browser sends such a request at every
// open of the console, before a person logs in: it is no failed login.
func visits(r *http.Request, err error) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	return read && failureOf(err).None && len(r.Header.Values("Authorization")) == 0
}

// Login identifies a user in another way than by the credentials of a request. The attempt counts at the same gate.
func Login(r *http.Request, prove func() (user string, err error)) error {
	return Guarded(r, func() (App, error) {
		user, err := prove()
		return App{Code: "login:" + user}, err
	})
}

// maxBearer limits the token in a header; real tokens have fewer than 100 bytes.
const maxBearer = 4096

// BearerToken is the token in the header Authorization, "" if there is none.
func BearerToken(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") || len(token) > maxBearer {
		return ""
	}
	return strings.TrimSpace(token)
}
