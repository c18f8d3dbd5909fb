package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/gozzard/gozzard"
)

// Gate stands before all doors and limits how often somebody may ask. It travels in the context of a request,
// because who asks is only known inside; what it refuses is worded by the door.
type Gate interface {
	// Enter is asked before any credential is looked at.
	Enter() error
	// Known is asked when the app has proven itself.
	Known(app string) error
	// Failed is told that it has not.
	Failed()
}

type gateKey struct{}

// WithGate puts a gate before the request of a context.
func WithGate(ctx context.Context, g Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// guarded finds out who sends a request, by identify, at the gate.
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

// Login proves a person in another way than by the credentials of a request, and counts the attempt at the same gate.
func Login(r *http.Request, prove func() (user string, err error)) error {
	return Guarded(r, func() (App, error) {
		user, err := prove()
		return App{Code: "login:" + user}, err
	})
}

// maxBearer bounds the token of a header; real ones have fewer than 100 bytes.
const maxBearer = 4096

// BearerToken is the token in the header Authorization, "" when there is none.
func BearerToken(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") || len(token) > maxBearer {
		return ""
	}
	return strings.TrimSpace(token)
}
