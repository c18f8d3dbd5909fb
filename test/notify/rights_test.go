//go:build linux

package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// caller sends requests of an app to the native API.
type caller struct{ url, app, secret string }

func (c caller) send(t *testing.T, method, path string, body any) (status int, text string) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Bkapi-Authorization", fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":"watcher"}`, c.app, c.secret))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(res.Body)
	return res.StatusCode, out.String()
}

// newApp makes an app with a grant, and gives it as a caller.
func newApp(t *testing.T, s *ft.Server, code string, grant ...string) caller {
	t.Helper()
	out := filepath.Join(t.TempDir(), "app.json")
	cli(t, s, "app", "create", code, "--out", out, "--asserts-users", "--unknown-users")
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Secret string `json:"bk_app_secret"`
	}
	if err := json.Unmarshal(b, &made); err != nil || made.Secret == "" {
		t.Fatalf("no secret: %v %s", err, b)
	}
	cli(t, s, append([]string{"grant", "add", "--app", code}, grant...)...)
	return caller{url: serverURL(t, s), app: code, secret: made.Secret}
}

func serverURL(t *testing.T, s *ft.Server) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Data, "credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v.URL
}

// TestTI19SubscriberSeesOnlyItsOwn: the attack: an app with the role viewer on one namespace subscribes to everything, makes
// receivers, uses those of admins and lists or removes what others have. It gets alerts of its namespace only, and none
// after its grant was removed, also of those that waited.
func TestTI19SubscriberSeesOnlyItsOwn(t *testing.T) {
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	h := newHook(t)
	key := secretFile(t, secret)
	shared := create(t, s, "notify", "receivers", "create", "shared", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file", key,
		"--shared")
	private := create(t, s, "notify", "receivers", "create", "private", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file", key)
	admins := create(t, s, "notify", "subscriptions", "create", "admins", "--receiver", private, "--alert", "host_lost")
	viewer := newApp(t, s, "watch", "--role", "viewer", "--namespace", "other", "--any-host")

	// It makes no receiver, and uses and sees none that is not shared.
	for _, try := range []struct {
		method, path string
		body         any
		want         int
	}{
		{"POST", "/api/v1/receivers", ft.J{"name": "mine", "kind": "webhook", "url": h.URL}, http.StatusForbidden},
		{"DELETE", "/api/v1/receivers/" + shared, nil, http.StatusForbidden},
		{"POST", "/api/v1/receivers/" + shared + "/test", ft.J{}, http.StatusForbidden},
		{"GET", "/api/v1/dead-letters", nil, http.StatusForbidden},
		{"POST", "/api/v1/dead-letters/1/retry", ft.J{}, http.StatusForbidden},
		{"DELETE", "/api/v1/dead-letters/1", nil, http.StatusForbidden},
		{"POST", "/api/v1/subscriptions", ft.J{"name": "x", "receivers": []string{private}}, http.StatusBadRequest},
		{"DELETE", "/api/v1/subscriptions/" + admins, nil, http.StatusNotFound},
		{"POST", "/api/v1/subscriptions", ft.J{"name": "all", "receivers": []string{shared}, "wait": "1s", "interval": "1s",
			"group_by": []string{"name"}}, http.StatusCreated},
	} {
		if status, text := viewer.send(t, try.method, try.path, try.body); status != try.want {
			t.Errorf("%s %s answers %d: %s", try.method, try.path, status, text)
		}
	}
	for _, path := range []string{"/api/v1/receivers", "/api/v1/subscriptions"} {
		if _, text := viewer.send(t, "GET", path, nil); strings.Contains(text, "private") || strings.Contains(text, "admins") ||
			strings.Contains(text, secret) || strings.Contains(text, h.URL) {
			t.Errorf("%s shows %s", path, text)
		}
	}

	// Trouble elsewhere is not for it.
	startAgent(t, s, 1)
	cli(t, s, "notify", "subscriptions", "create", "probe", "--receiver", shared, "--wait", "1s", "--interval", "1s", "--group-by", "name")
	start(t, s, 1, "foreign", "exit 3", nil)
	h.await(t, "start_failed", "foreign", "firing")
	time.Sleep(3 * time.Second) // what would be wrong comes at the same time
	for _, m := range h.got() {
		if m.CommonLabels["subscription"] == "all" {
			t.Errorf("the viewer got %+v", m)
		}
	}

	// With a grant it gets them. Without it again, not even what waits.
	cli(t, s, "grant", "add", "--app", "watch", "--role", "viewer", "--namespace", "shop", "--any-host")
	start(t, s, 1, "seen", "exit 3", nil)
	mine := func(name string) bool {
		for _, m := range h.got() {
			if m.CommonLabels["subscription"] == "all" && m.CommonLabels["name"] == name {
				return true
			}
		}
		return false
	}
	ft.Until(t, time.Minute, func() string { return "the viewer got nothing" }, func() bool { return mine("seen") })
	h.answers(http.StatusServiceUnavailable)
	start(t, s, 1, "late", "exit 3", nil)
	ft.Until(t, time.Minute, func() string { return "nothing waits" }, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.refused > 1
	})
	time.Sleep(3 * time.Second)
	cli(t, s, "grant", "remove", "--app", "watch", "--role", "viewer", "--namespace", "shop", "--any-host")
	h.answers(http.StatusOK)
	h.await(t, "start_failed", "late", "firing") // of the probe
	time.Sleep(3 * time.Second)
	if mine("late") {
		t.Error("the viewer got an alert that waited, after its grant was removed")
	}
}

// TestTS22ReceiversStayOutside: the attack: addresses of the server's machine, its link and its cloud, as numbers, as names and by
// redirects. Nothing connects there.
func TestTS22ReceiversStayOutside(t *testing.T) {
	var hits atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndexByte(inside.URL, ':')+1:]

	s := ft.StartServer(t, "")
	for i, url := range []string{inside.URL, "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest",
		"http://0.0.0.0:" + port, "http://100.100.100.200/", "file:///etc/passwd", "ftp://127.0.0.1/", "http://user:pass@example.com/",
		"gopher://127.0.0.1:" + port, "http://", "http://[fe80::1%25lo]/"} {
		out, err := tryCLI(t, s, "notify", "receivers", "create", fmt.Sprint("r", i), "--receiver-kind", "webhook", "--to-url", url)
		if err == nil {
			t.Errorf("%s was accepted: %s", url, out)
		}
	}
	for i, url := range []string{"http://localhost:" + port, "http://127.1:" + port, "http://2130706433:" + port, "http://0x7f.1:" + port} {
		name := fmt.Sprint("n", i)
		if _, err := tryCLI(t, s, "notify", "receivers", "create", name, "--receiver-kind", "webhook", "--to-url", url); err != nil {
			continue
		}
		if out, err := tryCLI(t, s, "notify", "receivers", "test", name); err == nil {
			t.Errorf("%s got a message: %s", url, out)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests came to this machine", n)
	}

	// A redirect is not followed, also to an address that is allowed.
	s = ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	away := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	id := create(t, s, "notify", "receivers", "create", "away", "--receiver-kind", "webhook", "--to-url", away.URL)
	if out, err := tryCLI(t, s, "notify", "receivers", "test", id); err == nil || !strings.Contains(out, "307") {
		t.Errorf("the redirect: %v: %s", err, out)
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestNotifyActsAreInTheAudit: every act on receivers, subscriptions and dead letters has its row, without a secret.
func TestNotifyActsAreInTheAudit(t *testing.T) {
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	h := newHook(t)
	id := create(t, s, "notify", "receivers", "create", "hook", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file",
		secretFile(t, secret))
	cli(t, s, "notify", "receivers", "test", id)
	sub := create(t, s, "notify", "subscriptions", "create", "all", "--receiver", "hook")
	cli(t, s, "notify", "subscriptions", "remove", sub)
	cli(t, s, "notify", "receivers", "remove", id)
	if list := h.got(); len(list) != 1 || list[0].CommonLabels["alertname"] != "GozzardTest" {
		t.Errorf("the test message: %+v", list)
	}

	_, text := s.Get(t, "/api/v1/audit?newest=true&limit=100")
	for _, act := range []string{"notify:receiver:" + id, "notify:test:" + id, "notify:subscribe:" + sub, "notify:unsubscribe:" + sub,
		"notify:remove-receiver:" + id} {
		if !strings.Contains(text, `"`+act+`"`) {
			t.Errorf("the audit has no %s", act)
		}
	}
	if strings.Contains(text, secret) {
		t.Error("the audit has the secret")
	}
}
