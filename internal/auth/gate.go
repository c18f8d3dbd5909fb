package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/gozzard/gozzard"
)

// Gate limits how often a caller may send requests to any door. It is in the context of a request, because only the
// door identifies the caller. The door also writes the answer to a request that the gate rejects.
type Gate interface {
	// Enter is called before the credentials are read.
	Enter() error
	// Known is called when the app is identified.
	Known(app string) error
	// Failed is called when the credentials were wrong.
	Failed()
}

type gateKey struct{}

// WithGate adds a gate to the context of a request.
func WithGate(ctx context.Context, g Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// Guarded identifies the caller of a request by a function and reports the result to the gate.
func Guarded(r *http.Request, identify func() (App, error)) error {
	g, ok := r.Context().Value(gateKey{}).(Gate)
	if !ok {
		_, err := identify()
		return err
	}

	if err := g.Enter(); err != nil {
		return err
	}

	app, err := identify()
	switch {
	case err == nil:
		return g.Known(app.Code)
	case gozzard.KindOf(err) == gozzard.ErrUnauthenticated:
		g.Failed()
	}

	return err
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
