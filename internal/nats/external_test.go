package nats

import (
	"log/slog"
	"strings"
	"testing"
)

// TestExternalAddresses: brokers beyond this machine need TLS, and no address has a password.
func TestExternalAddresses(t *testing.T) {
	for _, c := range []struct {
		urls string
		want string // of the error; "": none
	}{
		{"tls://nats1.example.com:4222,tls://10.0.0.2:4222", ""},
		{"nats://127.0.0.1:4222,nats://[::1]:4222,nats://localhost:4222", ""},
		{"nats://10.0.0.1:4222", "use tls://10.0.0.1:4222"},
		{"nats://127.0.0.1.example.com:4222", "beyond this machine"},
		{"tls://a:4222,nats://127.0.0.1:4222", "either all"},
		{"tls://user:secret@a:4222", "has a user or a password"},
		{"user:secret@a:4222", "not of the form"},
		{"tls://a", "not of the form"},
		{"tls://a:port", "not of the form"},
		{"http://a:4222", "not of the form"},
		{"", "not of the form"},
	} {
		_, err := checkExternal(strings.Split(c.urls, ","))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.urls, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

// TestExternalOptions: what cannot work is found before the server starts.
func TestExternalOptions(t *testing.T) {
	good := ExternalOptions{URLs: []string{"tls://a:1"}, Server: "a", Installation: "one", Log: slog.New(slog.DiscardHandler)}
	for what, change := range map[string]func(*ExternalOptions){
		"an id with a dot":           func(o *ExternalOptions) { o.Server = "a.b" },
		"an installation with a dot": func(o *ExternalOptions) { o.Installation = "one.>" },
		"no installation":            func(o *ExternalOptions) { o.Installation = "" },
		"a missing authority":        func(o *ExternalOptions) { o.CA = "/nowhere" },
		"a missing certificate":      func(o *ExternalOptions) { o.Cert, o.Key = "/nowhere", "/nowhere" },
		"certificates without TLS":   func(o *ExternalOptions) { o.URLs, o.CA = []string{"nats://127.0.0.1:1"}, "/nowhere" },
	} {
		o := good
		change(&o)
		if e, err := NewExternal(o); err == nil {
			e.Close()
			t.Errorf("%s is accepted", what)
		}
	}

	e, err := NewExternal(good)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Tell("", make([]byte, MaxMessage)); err == nil {
		t.Error("a message that is too large is taken")
	}

	// Nothing waits for a cluster that takes nothing, and what waits is bounded.
	taken := 0
	for range 2 * externalWaiting {
		if e.Tell("", make([]byte, MaxMessage/4)) == nil {
			taken++
		}
	}
	if taken == 0 || taken > externalBytes/(MaxMessage/4) || e.waiting.Load() > externalBytes {
		t.Errorf("%d messages wait, with %d bytes", taken, e.waiting.Load())
	}
}
