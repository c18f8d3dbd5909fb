package ratelimit_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// rig is a door behind a Guard, with a simulated clock.
type rig struct {
	t       *testing.T
	handler http.Handler
	mu      sync.Mutex
	now     time.Time
	refused []string
}

func newRig(t *testing.T, o ratelimit.Options) *rig {
	r := &rig{t: t, now: time.Unix(1_800_000_000, 0)}
	o.Now = func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }
	o.Refused = func(rule string) { r.mu.Lock(); defer r.mu.Unlock(); r.refused = append(r.refused, rule) }

	one := func(code string) auth.App {
		return auth.App{Code: code, Secrets: []auth.Digest{auth.Hash("s-" + code)}, AssertsUsers: true}
	}

	book, err := auth.New(auth.Config{Apps: []auth.App{one("a"), one("b")}})
	if err != nil {
		t.Fatal(err)
	}

	door := blueking.New(blueking.Door{
		Prefixes: []blueking.Prefix{{Path: "/bus", Family: "f"}, {Path: "/gate", Family: "f", Gateway: true}},
		Routes: []blueking.Route{{Name: "caller", Families: []string{"f"}, Access: blueking.AccessUser,
			MaxBody: blueking.MaxBody,
			Handle:  func(_ context.Context, c *blueking.Call) (any, error) { return c.Caller.App, nil }}},
		Auth: book, Log: slog.New(slog.DiscardHandler),
	})

	r.handler = ratelimit.New(o).Handler(door)
	return r
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// ask sends a call from an address and returns its code.
func (r *rig) ask(path, from, app, secret string, headers ...string) (code int, res *httptest.ResponseRecorder) {
	r.t.Helper()
	body := fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":"u"}`, app, secret)
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.RemoteAddr = net.JoinHostPort(from, "999")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}

	res = httptest.NewRecorder()
	r.handler.ServeHTTP(res, req)
	var e blueking.Envelope
	if err := json.Unmarshal(res.Body.Bytes(), &e); err != nil {
		r.t.Fatalf("%v in %s", err, res.Body)
	}

	return e.Code, res
}

var manyGuesses = flag.Int("guard.guesses", 20_000, "guesses of TestTS2ManyGuesses; the threat table has 100000")

// TestTD2RateOfAnApp: an app that asks too often is rejected for a while; another one is not.
func TestTD2RateOfAnApp(t *testing.T) {
	r := newRig(t, ratelimit.Options{AppRate: 10, AppBurst: 20})
	ok := 0
	for range 100 {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "s-a"); code == 0 {
			ok++
		} else if code != blueking.CodeRateLimited {
			t.Fatalf("code %d", code)
		}
	}

	if ok != 20 {
		t.Fatalf("%d of 100 went through", ok)
	}
	if code, _ := r.ask("/bus/caller", "10.0.0.1", "b", "s-b"); code != 0 {
		t.Fatalf("another app: code %d", code)
	}

	r.pass(time.Second)

	for range 10 {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "s-a"); code != 0 {
			t.Fatalf("a second later: code %d", code)
		}
	}
}

func TestNoLimits(t *testing.T) {
	r := newRig(t, ratelimit.Options{})
	for range 300 {
		r.ask("/bus/caller", "10.0.0.1", "a", "wrong")
		if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "s-a"); code != 0 {
			t.Fatalf("code %d", code)
		}
	}
}

// TestSecurityHeaders: the headers are on every answer, also on errors and unknown paths. No caller gets a CORS header.
func TestSecurityHeaders(t *testing.T) {
	r := newRig(t, ratelimit.Default())
	for _, path := range []string{"/bus/caller", "/nothing/here"} {
		_, res := r.ask(path, "10.0.0.1", "a", "s-a", "Origin", "https://elsewhere.example",
			"Access-Control-Request-Method", "POST")
		h := res.Header()
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"X-Frame-Options":         "DENY",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s is sent", path, name)
			}
		}
		if h.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: HSTS without TLS", path)
		}
	}
}
