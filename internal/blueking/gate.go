package blueking

import (
	"context"
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// Gate stands before all doors and limits how often somebody may ask. It travels in the context of a request, because who asks is only known inside;
// what it refuses is worded by the door.
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
func guarded(r *http.Request, identify func() (auth.App, error)) error {
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
