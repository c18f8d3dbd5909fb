package ratelimit_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/ratelimit"
)

// serve runs a handler behind a guard on a real listener.
func serve(t *testing.T, g *ratelimit.Guard, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: g.Handler(h), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(g.Listener(l)) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}

// TestTD1: the connections of one address are limited. One more is closed at once, until an earlier one ends.
func TestTD1Connections(t *testing.T) {
	addr := serve(t, ratelimit.New(ratelimit.Options{Connections: 3}), http.NotFoundHandler())
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}

	answers := func(c net.Conn) bool {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return false
		}
		n, _ := c.Read(make([]byte, 100))
		return n > 0
	}

	first := []net.Conn{dial(), dial(), dial()}
	for _, c := range first {
		if !answers(c) {
			t.Fatal("a connection within the limit is not served")
		}
	}

	if answers(dial()) {
		t.Fatal("a connection above the limit is served")
	}

	_ = first[0].Close()

	for end := time.Now().Add(20 * time.Second); !answers(dial()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no room was made")
		}
	}
}
