package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// serveHTTP serves until ctx ends, then lets requests under way finish for a moment.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second, // the guard bounds the time of bodies and answers
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()

	select {
	case err := <-done:
		return fmt.Errorf("cannot serve the API: %w", err)
	case <-ctx.Done():
	}

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()

	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // what is still open now is a client that does not read
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// door is an API that knows its own paths.
type door interface {
	http.Handler
	Owns(r *http.Request) bool
}

// doors sends each request to its API: ours by prefix, the others by who knows the path, and what nobody knows to
// the last. http.ServeMux is not used here: it answers double slashes with a redirect, and a redirect drops the
// body of a POST.
func doors(native http.Handler, others ...door) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if strings.HasPrefix(p, "/api/v1/") || p == "/healthz" || p == "/readyz" || p == "/metrics" {
			native.ServeHTTP(w, r)
			return
		}
		for i, d := range others {
			if i == len(others)-1 || d.Owns(r) {
				d.ServeHTTP(w, r)
				return
			}
		}
	})
}
