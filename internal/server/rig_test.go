package server

import (
	"context"
	"log/slog"
	"testing"

	"github.com/gozzard/gozzard"
)

var everybody = gozzard.Caller{App: "admin", User: "root", Rights: gozzard.Everything()}

// testOptions are those of a server on loopback without limits.
func testOptions(t *testing.T, data string) Options {
	return Options{Data: data, Listen: "127.0.0.1:0", Version: "test", Log: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { t.Errorf("fatal: %v", err) }}
}

// open opens a server on a data folder.
func open(t *testing.T, data string) *Server {
	t.Helper()
	s, err := New(t.Context(), testOptions(t, data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running opens a server with one app and runs it until the test ends.
func running(t *testing.T, o Options) *Server {
	t.Helper()
	o.FirstApp = FirstApp{"app", "secret"}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}
