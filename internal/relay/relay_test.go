package relay

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLearn: a relay completes addresses without a host, drops what is no address, and keeps its list when it learns
// nothing.
func TestLearn(t *testing.T) {
	s := &state{Servers: []string{"10.0.0.1:4250"}}
	if !s.learn([]string{":4250", "b.example:1", "no address", "10.0.0.9:4250"}, "10.0.0.9:8443") {
		t.Error("nothing was learned")
	}
	if want := []string{"10.0.0.9:4250", "b.example:1"}; !slices.Equal(s.Servers, want) {
		t.Errorf("got %q, want %q", s.Servers, want)
	}
	if s.learn(nil, "10.0.0.9:8443") || s.learn([]string{"b.example:1", ":4250"}, "10.0.0.9:1") {
		t.Error("something was learned")
	}
}

// TestOrder: every server comes, and the one that was lost comes last.
func TestOrder(t *testing.T) {
	r := &Relay{state: &state{Servers: []string{"a:1", "b:1", "c:1"}}}
	first := map[string]bool{}
	for range 200 {
		list := r.order("b:1")
		if len(list) != 3 || list[2] != "b:1" {
			t.Fatalf("got %q", list)
		}
		first[list[0]] = true
	}
	if len(first) != 2 {
		t.Errorf("first is always one of %v", first)
	}
	if list := r.order("d:1"); len(list) != 4 || list[3] != "d:1" {
		t.Errorf("a server that is not named any more is not the last resort: %q", list)
	}
	if list := r.order(""); len(list) != 3 {
		t.Errorf("got %q", list)
	}
}

// stuck takes nothing.
type stuck struct{ net.Conn }

// TestCopyEndsWhenStuck: a destination that takes nothing does not hold the copy for ever.
func TestCopyEndsWhenStuck(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	source, in := io.Pipe()
	defer in.Close()
	go func() { _, _ = in.Write([]byte("text")) }()

	soon := func(at time.Time) error {
		if !at.IsZero() {
			at = time.Now().Add(50 * time.Millisecond)
		}
		return near.SetWriteDeadline(at)
	}
	var timeout net.Error
	if err := copyChunks(stuck{near}, source, soon); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
}

// TestPlainName: an address for hosts is a name or an address, without a port.
func TestPlainName(t *testing.T) {
	for text, want := range map[string]bool{"relay7.plant.example.com": true, "host:1": false, "a b": false, "héé": false, "10.0.0.1": true} {
		if plainName(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestPresent: connections of hosts wait for the next server right after the loss of one, and not otherwise.
func TestPresent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p present
		never := make(chan struct{})
		get := func(done <-chan struct{}) (u *upstream, took time.Duration) {
			began := time.Now()
			return p.get(done), time.Since(began)
		}
		expect := func(what string, want *upstream, after time.Duration) {
			t.Helper()
			if u, took := get(never); u != want || took != after {
				t.Errorf("%s: %p after %s, want %p after %s", what, u, took, want, after)
			}
		}
		one, two := &upstream{at: "one"}, &upstream{at: "two"}
		expect("at the start", nil, 0)
		p.set(one)
		expect("with a server", one, 0)

		p.set(nil)
		expect("nothing comes", nil, holdFor)
		expect("lost for long", nil, 0)

		p.set(one)
		p.set(nil)
		go func() {
			time.Sleep(300 * time.Millisecond)
			p.set(two)
		}()
		expect("the next one comes", two, 300*time.Millisecond)

		p.set(nil)
		over := make(chan struct{})
		close(over)
		if u, took := get(over); u != nil || took != 0 {
			t.Errorf("the relay ends: %p after %s", u, took)
		}
	})
}
