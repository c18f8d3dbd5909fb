package ratelimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
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

// TestTS2GuessesAreLimited: wrong secrets are answered with the limit after a while, for the address and for the name.
// The right secret is accepted all the same, from the same address and for the same name.
func TestTS2GuessesAreLimited(t *testing.T) {
	r := newRig(t, ratelimit.Default())
	for i := range 10 {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "guess"+strconv.Itoa(i)); code != blueking.CodeGeneral {
			t.Fatalf("guess %d: code %d", i, code)
		}
	}

	for _, app := range []string{"a", "b", "nobody"} {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", app, "another"); code != blueking.CodeRateLimited {
			t.Errorf("a guess for %s: code %d", app, code)
		}
	}

	code, res := r.ask("/gate/caller", "10.0.0.1", "a", "another")
	if code != blueking.CodeRateLimited || res.Code != http.StatusTooManyRequests ||
		res.Header().Get("Retry-After") == "" {
		t.Fatalf("code %d, status %d, retry after %q", code, res.Code, res.Header().Get("Retry-After"))
	}

	for _, app := range []string{"a", "b"} {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", app, "s-"+app); code != 0 {
			t.Errorf("the right secret of %s from the locked address: code %d", app, code)
		}
	}
	if code, _ := r.ask("/bus/caller", "10.0.0.2", "a", "wrong"); code != blueking.CodeGeneral {
		t.Errorf("a wrong secret from another address: code %d", code)
	}

	r.pass(7 * time.Second)

	if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "wrong"); code != blueking.CodeGeneral {
		t.Errorf("a wrong secret after a while: code %d", code)
	}
	if !slices.Contains(r.refused, ratelimit.RuleFailures) {
		t.Fatalf("counted %v", r.refused)
	}
}

var manyGuesses = flag.Int("guard.guesses", 20_000, "guesses of TestTS2ManyGuesses; the threat table has 100000")

// TestTS2ManyGuesses: of 10,000 guesses a second from one address only as many are answered in words as the limit
// allows. All others have the same answer. The right secret among them is accepted every time.
func TestTS2ManyGuesses(t *testing.T) {
	r := newRig(t, ratelimit.Default())
	const perSecond = 10_000
	guesses := *manyGuesses
	answered, limited, right := 0, 0, 0
	for i := range guesses {
		secret := "guess" + strconv.Itoa(i)
		if i%1000 == 999 {
			secret = "s-a"
		}
		switch code, _ := r.ask("/bus/caller", "10.0.0.1", "a", secret); code {
		case blueking.CodeGeneral:
			answered++
		case blueking.CodeRateLimited:
			limited++
		case 0:
			right++
		default:
			t.Fatalf("guess %d: code %d", i, code)
		}
		r.pass(time.Second / perSecond)
	}

	most := 10 + guesses/perSecond*10/60 + 1 // the burst, and ten per minute since then
	fmt.Printf("threat TS2: of %d guesses at %d a second %d were answered, %d were limited, "+
		"the right one among them came in %d times\n", guesses, perSecond, answered, limited, right)

	if answered > most || answered < 10 || answered+limited+right != guesses {
		t.Errorf("%d were answered, at most %d may be", answered, most)
	}
	if right != guesses/1000 {
		t.Errorf("the right secret came in %d times of %d", right, guesses/1000)
	}
}

func TestAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		proxy          bool
		trusted        string
		first, second  string
		forwardedFirst string
		forwardedThen  string
		same           bool
	}{
		"one network of IPv6":  {first: "2001:db8::1", second: "2001:db8::ffff:2", same: true},
		"two networks of IPv6": {first: "2001:db8::1", second: "2001:db8:0:1::1"},
		"IPv4 in two forms":    {first: "10.0.0.1", second: "::ffff:10.0.0.1", same: true},
		"a header that is not trusted": {first: "127.0.0.1", second: "127.0.0.1", forwardedFirst: "10.0.0.1",
			forwardedThen: "10.0.0.2", same: true},
		"a proxy's callers": {proxy: true, first: "127.0.0.1", second: "127.0.0.1",
			forwardedFirst: "10.0.0.1", forwardedThen: "10.0.0.2"},
		"an address that the caller has written": {proxy: true, first: "127.0.0.1", second: "127.0.0.1",
			forwardedFirst: "1.1.1.1, 10.0.0.1", forwardedThen: "2.2.2.2, 10.0.0.1", same: true},
		"a proxy elsewhere": {trusted: "10.0.0.0/29", first: "10.0.0.2", second: "10.0.0.3",
			forwardedFirst: "10.1.0.1", forwardedThen: "10.1.0.2"},
		"a proxy behind a proxy": {trusted: "10.0.0.0/29", first: "10.0.0.2", second: "10.0.0.3",
			forwardedFirst: "9.9.9.9, 10.1.0.1, 10.0.0.4", forwardedThen: "8.8.8.8, 10.1.0.1, 10.0.0.5", same: true},
		"a trusted address that the caller has written": {trusted: "10.0.0.0/29", first: "10.0.0.2",
			second: "10.0.0.2", forwardedFirst: "1.1.1.1, 10.0.0.4, 10.1.0.1",
			forwardedThen: "2.2.2.2, 10.0.0.4, 10.1.0.1", same: true},
		"a proxy that writes nonsense": {trusted: "10.0.0.0/29", first: "10.0.0.2", second: "10.0.0.2",
			forwardedFirst: "1.1.1.1, unknown", forwardedThen: "2.2.2.2, unknown", same: true},
		"a peer beside the proxies": {trusted: "10.0.0.0/29", first: "10.0.0.9", second: "10.0.0.9",
			forwardedFirst: "10.1.0.1", forwardedThen: "10.1.0.2", same: true},
		"a header from elsewhere": {proxy: true, first: "10.0.0.9", second: "10.0.0.9",
			forwardedFirst: "10.0.0.1", forwardedThen: "10.0.0.2", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := ratelimit.Default()
			o.Failures, o.Proxy = 1, c.proxy
			if c.trusted != "" {
				o.Proxies = []netip.Prefix{netip.MustParsePrefix(c.trusted)}
			}
			r := newRig(t, o)
			r.ask("/bus/caller", c.first, "a", "wrong", "X-Forwarded-For", c.forwardedFirst)
			code, _ := r.ask("/bus/caller", c.second, "a", "wrong", "X-Forwarded-For", c.forwardedThen)
			if limited := code == blueking.CodeRateLimited; limited != c.same {
				t.Fatalf("code %d", code)
			}
		})
	}
}

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

// TestLongWait: no connection is closed while the server works, with and without a body.
func TestLongBodyAndLongWait(t *testing.T) {
	addr := serve(t, ratelimit.New(ratelimit.Options{}), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		fmt.Fprint(w, len(b))
	}))

	for _, size := range []int{0, 1, 10 << 20} {
		res, err := http.Post("http://"+addr, "application/json", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(b) != strconv.Itoa(size) {
			t.Fatalf("%d bytes: %q, %v", size, b, err)
		}
	}
}

func TestBlastRadius(t *testing.T) {
	everything, some := gozzard.Everything(), &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleOperator}}}

	op := func(action gozzard.Action, n, confirm int, rights *gozzard.Rights) *gozzard.Operation {
		return &gozzard.Operation{Caller: gozzard.Caller{App: "a", Rights: rights}, Confirm: confirm,
			Items: []gozzard.Item{{Action: action, Targets: make([]gozzard.Target, n)}}}
	}

	for name, c := range map[string]struct {
		op      *gozzard.Operation
		native  bool
		visible int
		kind    gozzard.ErrorKind
	}{
		"few":                          {op(gozzard.ActionStop, 49, 0, some), true, 49, ""},
		"a part":                       {op(gozzard.ActionStop, 60, 0, some), true, 200, ""},
		"a large part":                 {op(gozzard.ActionStop, 61, 0, some), true, 200, gozzard.ErrInvalid},
		"a large part, confirmed":      {op(gozzard.ActionStop, 61, 61, some), true, 200, ""},
		"confirmed for less":           {op(gozzard.ActionStop, 61, 60, some), true, 200, gozzard.ErrInvalid},
		"confirmed for more":           {op(gozzard.ActionKill, 3, 4, some), true, 200, gozzard.ErrInvalid},
		"500":                          {op(gozzard.ActionRestart, 500, 0, some), true, 100_000, ""},
		"501":                          {op(gozzard.ActionRestart, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 reloaded":                 {op(gozzard.ActionReload, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 unhosted":                 {op(gozzard.ActionUnhost, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 unregistered":             {op(gozzard.ActionUnregister, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 of an admin":              {op(gozzard.ActionKill, 501, 0, everything), true, 100_000, gozzard.ErrInvalid},
		"501 started":                  {op(gozzard.ActionStart, 501, 0, some), true, 501, ""},
		"above the quota":              {op(gozzard.ActionStop, 10_001, 10_001, some), true, 100_000, ""},
		"compatible, within quota":     {op(gozzard.ActionStop, 10_000, 0, some), false, 10_000, ""},
		"compatible, above quota":      {op(gozzard.ActionStop, 10_001, 0, some), false, 10_001, gozzard.ErrRateLimited},
		"compatible, unregister above": {op(gozzard.ActionUnregister, 10_001, 0, some), false, 1, gozzard.ErrRateLimited},
		"compatible, of an admin":      {op(gozzard.ActionStop, 50_000, 0, everything), false, 50_000, ""},
		"compatible, without rights":   {op(gozzard.ActionStop, 50_000, 0, nil), false, 50_000, gozzard.ErrRateLimited},
		"compatible, many to a start":  {op(gozzard.ActionStart, 50_000, 0, some), false, 50_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, above := ratelimit.New(ratelimit.Default()), ratelimit.AboveReject
			var err error
			if c.native {
				above = ratelimit.AboveConfirm
				err = g.Operation(c.op, func() int { return c.visible })
			}
			n := len(c.op.Items[0].Targets)
			if c.op.Items[0].Action == gozzard.ActionStart {
				n = 0
			}
			if err == nil {
				_, err = g.Spend(c.op, n, 0, above)
			}
			if c.kind == "" && err != nil || c.kind != "" && (err == nil || gozzard.KindOf(err) != c.kind) {
				t.Fatalf("got %v, want %q", err, c.kind)
			}
		})
	}
}

// quotaRig is a guard with quotas at a time that a test sets.
type quotaRig struct {
	*ratelimit.Guard
	now time.Time
}

func newQuotaRig(b ratelimit.Blast) *quotaRig {
	r := &quotaRig{now: time.Unix(1_800_000_000, 0)}
	r.Guard = ratelimit.New(ratelimit.Options{Blast: b, RefusedQuota: 100, Now: func() time.Time { return r.now }})
	return r
}

// stop spends the quota of an app and a user.
func (r *quotaRig) stop(app, user string, n, confirm int, above ratelimit.Above) error {
	_, err := r.Spend(&gozzard.Operation{Caller: gozzard.Caller{App: app, User: user}, Confirm: confirm,
		Items: []gozzard.Item{{Action: gozzard.ActionStop, Targets: make([]gozzard.Target, n)}}}, n, 0, above)
	return err
}

// TestDestructiveQuota: the quota is per app and hour, and an app can have another one.
func TestDestructiveQuota(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{Quota: 100, Quotas: map[string]int{"big": 1000, "free": 0}})
	stop := func(app string, n int) error { return r.stop(app, "", n, 0, ratelimit.AboveReject) }

	for range 2 {
		if err := stop("a", 50); err != nil {
			t.Fatal(err)
		}
	}

	if stop("a", 1) == nil {
		t.Fatal("more than its quota")
	}
	if err := stop("big", 1000); err != nil {
		t.Fatal(err)
	}
	if err := stop("free", 90_000); err != nil {
		t.Fatal(err)
	}

	r.now = r.now.Add(30 * time.Minute)

	if err := stop("a", 50); err != nil {
		t.Fatal(err)
	}

	err := stop("a", 10)
	if err == nil {
		t.Fatal("more than half of its quota in half an hour")
	}

	seconds, _ := strconv.Atoi(gozzard.RetryAfter(err))
	r.now = r.now.Add(time.Duration(seconds-1) * time.Second)

	if stop("a", 10) == nil {
		t.Fatalf("the answer says to retry after %d s, but %d were enough", seconds, seconds-1)
	}

	r.now = r.now.Add(time.Second)

	if err := stop("a", 10); err != nil {
		t.Fatalf("retried after %d s: %v", seconds, err)
	}
}

// TestQuotaOverDoors: one quota counts for all doors, for the app and for the user. What is confirmed counts, too.
func TestQuotaOverDoors(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{Quota: 100})

	// Small steps, by both doors.
	for range 50 {
		if err := errors.Join(r.stop("a", "u", 1, 0, ratelimit.AboveReject),
			r.stop("a", "u", 1, 0, ratelimit.AboveConfirm)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.stop("a", "u", 1, 0, ratelimit.AboveReject); gozzard.KindOf(err) != gozzard.ErrRateLimited {
		t.Errorf("BlueKing's door: %v", err)
	}
	if err := r.stop("a", "u", 1, 0, ratelimit.AboveConfirm); gozzard.KindOf(err) != gozzard.ErrInvalid {
		t.Errorf("the native door: %v", err)
	}
	if err := r.stop("a", "u", 1, 1, ratelimit.AboveConfirm); err != nil {
		t.Errorf("confirmed: %v", err)
	}

	// Another name for one of the two.
	if r.stop("a", "other", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("another user of the app has no quota left")
	}
	if r.stop("b", "u", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("the user has no quota left in another app")
	}
	if r.stop("user:u", "u", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("the user has no quota left without an app")
	}
	if err := r.stop("b", "other", 1, 0, ratelimit.AboveReject); err != nil {
		t.Errorf("another app and user: %v", err)
	}
}

// TestQuotaIsRemembered: what was done before a restart counts, and what was not recorded after all does not.
func TestQuotaIsRemembered(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{Quota: 100})
	r.Remember(gozzard.Caller{App: "a", User: "u"}, 60, r.now.Add(-2*time.Second))
	r.Remember(gozzard.Caller{App: "a", User: "u"}, 40, r.now.Add(-time.Second))
	if r.stop("a", "u", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("a restart gave the quota back")
	}

	undo, err := r.Spend(&gozzard.Operation{Caller: gozzard.Caller{App: "b"}}, 100, 0, ratelimit.AboveReject)
	if err != nil {
		t.Fatal(err)
	}
	if r.stop("b", "", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("the quota is spent")
	}
	undo()
	if err := r.stop("b", "", 100, 0, ratelimit.AboveReject); err != nil {
		t.Errorf("the quota was given back: %v", err)
	}
}

// TestRefusedQuota: an app cannot fill the record with attempts on hosts that do not exist.
func TestRefusedQuota(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{})
	ask := func(app string, rejected int, rights *gozzard.Rights) error {
		_, err := r.Spend(&gozzard.Operation{Caller: gozzard.Caller{App: app, Rights: rights}}, 0, rejected,
			ratelimit.AboveReject)
		return err
	}
	for range 100 {
		if err := ask("a", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("a", 1, nil); gozzard.KindOf(err) != gozzard.ErrRateLimited {
		t.Errorf("above the quota: %v", err)
	}
	if err := errors.Join(ask("a", 0, nil), ask("b", 1, nil), ask("a", 1000, gozzard.Everything())); err != nil {
		t.Error(err)
	}
}

// TestRestOfABody: a client that sends everything before it reads gets its answer. One that stops in the middle of its
// body holds the connection for a limited time.
func TestRestOfABody(t *testing.T) {
	send := func(t *testing.T, drain time.Duration, length, sent int) string {
		server := httptest.NewServer(newRig(t, ratelimit.Options{Drain: drain}).handler)
		defer server.Close()
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}

		defer c.Close()
		body := `{"bk_app_code":"a","bk_app_secret":"s-a","bk_username":"u","pad":"` + strings.Repeat("x", sent)
		head := fmt.Sprintf("POST /bus/caller HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
		if _, err := c.Write([]byte(head + body)); err != nil {
			t.Fatalf("%d of %d bytes were not taken: %v", sent, length, err)
		}
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := io.ReadAtLeast(c, b, 15)
		if err != nil {
			t.Fatalf("%d of %d bytes: no answer: %v", sent, length, err)
		}
		return string(b[:n])
	}

	const mib = 1 << 20
	overhead := len(`{"bk_app_code":"a","bk_app_secret":"s-a","bk_username":"u","pad":"`)
	const tooLong, cut = "more than 4 MiB", "to its end"
	for _, tt := range []struct {
		drain        time.Duration
		length, sent int
		want         string
	}{
		{time.Minute, 5*mib + overhead, 5 * mib, tooLong},
		{time.Minute, 65*mib + overhead, 65 * mib, tooLong},
		{5 * time.Second, 65 * mib, 20 * mib, tooLong}, // it stops, and so do the next ones
		{5 * time.Second, 65 * mib, 5 * mib, tooLong},
		{5 * time.Second, 65 * mib, 100, cut},
		{time.Minute, 4*mib - 100, 4*mib - 10_000, cut}, // bytes that came fast give no more time to wait for others
	} {
		t.Run(fmt.Sprintf("%d of %d bytes", tt.sent, tt.length), func(t *testing.T) {
			t.Parallel()
			if got := send(t, tt.drain, tt.length, tt.sent); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %q", got, tt.want)
			}
		})
	}
}
