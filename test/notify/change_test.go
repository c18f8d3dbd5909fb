//go:build linux

package notify_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// catcher keeps whole requests.
type catcher struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // headers and bodies
}

func newCatcher(t *testing.T) *catcher {
	c := &catcher{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var b strings.Builder
		_ = r.Header.Write(&b)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests = append(c.requests, r.RequestURI+"\r\n"+b.String()+"\r\n"+string(body))
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *catcher) got() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.requests...)
}

// TestChangeReceiver: settings of a receiver change, and its secrets stay. Messages that wait go to the new place.
func TestChangeReceiver(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	before, after := newHook(t), newHook(t)
	key := secretFile(t, secret)
	id := create(t, s, "notify", "receivers", "create", "hook", "--receiver-kind", "webhook", "--to-url", before.URL, "--secret-file", key)
	cli(t, s, "notify", "subscriptions", "create", "all", "--receiver", "hook", "--alert", "start_failed", "--wait", "1s", "--interval",
		"1s", "--group-by", "name")
	startAgent(t, s, 1)

	// The language changes, and the hook still gets signatures of its secret.
	cli(t, s, "notify", "receivers", "change", "hook", "--language", "zh", "--name", "pager")
	start(t, s, 1, "first", "exit 3", nil)
	before.await(t, "start_failed", "first", "firing")
	m := before.got()[0]
	if text := m.Alerts[0].Annotations; !strings.HasPrefix(text["summary"], "启动失败") || m.Receiver != "pager" ||
		!strings.Contains(text["description"], "start_cmd 的退出码为 3") {
		t.Errorf("%q of the receiver %q", text, m.Receiver)
	}

	// What waits goes to the new place.
	before.answers(http.StatusServiceUnavailable)
	start(t, s, 1, "second", "exit 3", nil)
	ft.Until(t, time.Minute, func() string { return "nothing waits" }, func() bool {
		before.mu.Lock()
		defer before.mu.Unlock()
		return before.refused > 0
	})
	cli(t, s, "notify", "receivers", "change", id, "--to-url", after.URL, "--secret-file", key)
	after.await(t, "start_failed", "second", "firing")
	before.answers(http.StatusOK)
	start(t, s, 1, "third", "exit 3", nil)
	after.await(t, "start_failed", "third", "firing")
	if has(before.got(), "start_failed", "second", "firing") || has(before.got(), "start_failed", "third", "firing") {
		t.Error("the former place got a message after the change")
	}

	// The audit has the names of what changed, and no values.
	_, text := s.Get(t, "/api/v1/audit?newest=true&limit=100")
	if !strings.Contains(text, `"notify:change-receiver:`+id+`"`) || !strings.Contains(text, "url,secret") ||
		strings.Contains(text, secret) || strings.Contains(text, after.URL) {
		t.Errorf("the audit: %s", text)
	}
}

// TestTI20SecretsStayAtTheirPlace: the attack: an admin that does not know the secrets of a receiver leads it to a place of
// its choice, in each way that a receiver is led. No secret, and nothing signed or encrypted by it, arrives there. Callers
// with fewer rights change nothing.
func TestTI20SecretsStayAtTheirPlace(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	own, evil := newCatcher(t), newCatcher(t)
	cli(t, s, "notify", "receivers", "create", "hook", "--receiver-kind", "webhook", "--to-url", own.URL+"/path", "--secret-file",
		secretFile(t, secret), "--authorization-file", secretFile(t, "Bearer of-the-owner"))
	cli(t, s, "notify", "receivers", "create", "robot", "--receiver-kind", "dingtalk", "--to-url-file", secretFile(t, own.URL+"/send?key=hidden"),
		"--secret-file", secretFile(t, secret))
	heard := listen(t)
	cli(t, s, "notify", "receivers", "create", "mail", "--receiver-kind", "mail", "--mail-server", "192.0.2.1:25", "--from",
		"gozzard@example.com", "--mail-to", "night@example.com", "--mail-user", "gozzard", "--mail-password-file",
		secretFile(t, "mail password"))

	// An admin of everything.
	admin := newApp(t, s, "second-admin", "--role", "admin")
	_, port, _ := net.SplitHostPort(heard.addr)
	for _, try := range []struct {
		receiver string
		body     ft.J
		fault    string
	}{
		{"hook", ft.J{"url": evil.URL}, `"path":"authorization"`},
		{"hook", ft.J{"url": own.URL + "/other"}, `"path":"authorization"`}, // another tenant of the same host
		{"hook", ft.J{"url": evil.URL, "secret": "a new secret of the attacker"}, "authorization"},
		{"hook", ft.J{"url": evil.URL, "authorization": "Bearer mine"}, "secret"},
		{"hook", ft.J{"ca": certificateText(t)}, `"path":"authorization"`},
		{"hook", ft.J{"kind": "slack", "url": evil.URL}, "kind"},
		{"hook", ft.J{"id": "other", "url": evil.URL}, "id"},
		{"hook", ft.J{"server": "127.0.0.1:" + port}, "only receivers of mail have this"},
		{"robot", ft.J{"url": evil.URL + "/send"}, "secret"},
		{"mail", ft.J{"server": "127.0.0.1:" + port}, "password"},
		{"mail", ft.J{"server": "127.0.0.1:" + port, "tls": "none"}, "password"},
		{"mail", ft.J{"tls": "none"}, "none is for a mail server on this machine only"},
		{"mail", ft.J{"tls": "tls"}, "password"},
		{"mail", ft.J{"user": "other"}, "password"},
		{"mail", ft.J{"ca": certificateText(t)}, "password"},
		{"mail", ft.J{"url": evil.URL}, "receivers of mail do not have this"},
	} {
		status, text := admin.send(t, "PUT", "/api/v1/receivers/"+try.receiver, try.body)
		if status != http.StatusBadRequest || !strings.Contains(text, try.fault) {
			t.Errorf("%s %v answers %d: %s", try.receiver, try.body, status, text)
		}
		for _, known := range []string{secret, "of-the-owner", "mail password", "hidden"} {
			if strings.Contains(text, known) {
				t.Errorf("%s %v shows a secret: %s", try.receiver, try.body, text)
			}
		}
		_, _ = admin.send(t, "POST", "/api/v1/receivers/"+try.receiver+"/test", ft.J{})
	}
	if n := len(evil.got()); n != 0 {
		t.Errorf("%d requests came to the place of the attacker: %s", n, evil.got())
	}
	if n := heard.count.Load(); n != 0 {
		t.Errorf("%d connections came to the mail server of the attacker", n)
	}

	// Its own place gets what it names, and nothing that was there before.
	if status, text := admin.send(t, "PUT", "/api/v1/receivers/hook", ft.J{"url": evil.URL, "authorization": "", "secret": ""}); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if status, text := admin.send(t, "POST", "/api/v1/receivers/hook/test", ft.J{}); status != http.StatusOK || len(evil.got()) != 1 ||
		strings.Contains(evil.got()[0], "Gozzard-Signature") || strings.Contains(evil.got()[0], "Authorization") {
		t.Errorf("%d %s: %v", status, text, evil.got())
	}
	if status, text := admin.send(t, "PUT", "/api/v1/receivers/hook", ft.J{"url": own.URL + "/path"}); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	_, _ = admin.send(t, "POST", "/api/v1/receivers/hook/test", ft.J{})
	if list := own.got(); strings.Contains(list[len(list)-1], "of-the-owner") {
		t.Error("a secret came back that was removed")
	}

	// Others change nothing, also not what is shared.
	cli(t, s, "notify", "receivers", "change", "hook", "--shared")
	for code, grant := range map[string][]string{"viewer": {"--role", "viewer"},
		"shop-admin": {"--role", "admin", "--namespace", "shop", "--any-host", "--account", "nobody"}} {
		app := newApp(t, s, code, grant...)
		for _, receiver := range []string{"hook", "mail", "nothing"} {
			if status, text := app.send(t, "PUT", "/api/v1/receivers/"+receiver, ft.J{"name": "mine"}); status != http.StatusForbidden {
				t.Errorf("%s changes %s: %d %s", code, receiver, status, text)
			}
		}
	}
}

// ear counts connections.
type ear struct {
	addr  string
	count atomic.Int64
}

func listen(t *testing.T) *ear {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	e := &ear{addr: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.count.Add(1)
			_ = c.Close()
		}
	}()
	return e
}

// TestTI21ChangeOfASubscriptionWidensNothing: the attack: somebody without rights changes the subscription of an admin, leads it to
// another receiver, widens the own one beyond the own rights, takes over a receiver that is not shared, and lets an admin do it. It
// gets nothing that it may not see, and learns no name. What a change leaves out is not sent any more, also if it waited.
func TestTI21ChangeOfASubscriptionWidensNothing(t *testing.T) {
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	h := newHook(t)
	key := secretFile(t, secret)
	cli(t, s, "notify", "receivers", "create", "shared", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file", key, "--shared")
	cli(t, s, "notify", "receivers", "create", "private", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file", key)
	admins := create(t, s, "notify", "subscriptions", "create", "admins", "--receiver", "private", "--alert", "host_lost")
	viewer := newApp(t, s, "watch", "--role", "viewer", "--namespace", "other", "--any-host")
	stranger := newApp(t, s, "stranger", "--role", "enroller")
	if status, text := viewer.send(t, "POST", "/api/v1/subscriptions", ft.J{"name": "mine", "receivers": []string{"shared"},
		"namespaces": []string{"other"}, "wait": "1s", "interval": "1s", "group_by": []string{"name"}}); status != http.StatusCreated {
		t.Fatalf("%d: %s", status, text)
	}

	// What it cannot change, by id and by name.
	for _, try := range []struct {
		by   caller
		path string
		body ft.J
		want int
	}{
		{viewer, admins, ft.J{"kinds": []string{}}, http.StatusNotFound},
		{viewer, "admins", ft.J{"receivers": []string{"shared"}}, http.StatusNotFound},
		{viewer, "mine", ft.J{"receivers": []string{"private"}}, http.StatusBadRequest},
		{viewer, "mine", ft.J{"owner": "admin/me"}, http.StatusBadRequest},
		{viewer, "mine", ft.J{"name": "admins"}, http.StatusOK}, // it does not learn that somebody else has one with this name
		{viewer, "admins", ft.J{"name": "mine"}, http.StatusOK}, // its own
		{stranger, "mine", ft.J{"namespaces": []string{}}, http.StatusForbidden},
		{viewer, "mine", ft.J{"namespaces": []string{}, "kinds": []string{"start_failed", "host_lost"}}, http.StatusOK},
	} {
		status, text := try.by.send(t, "PUT", "/api/v1/subscriptions/"+try.path, try.body)
		if status != try.want || try.path != admins && strings.Contains(text, admins) {
			t.Errorf("%s %v answers %d: %s", try.path, try.body, status, text)
		}
	}
	if out, err := tryCLI(t, s, "notify", "subscriptions", "change", "mine", "--receiver", "private"); err == nil ||
		!strings.Contains(out, "that the owner of the subscription may use") {
		t.Errorf("an admin leads the subscription of a viewer to a private receiver: %v: %s", err, out)
	}
	cli(t, s, "notify", "subscriptions", "change", "mine", "--business", "", "--host", "") // as wide as it can be

	// The subscription is wide now, and gets nothing of another namespace.
	startAgent(t, s, 1)
	cli(t, s, "notify", "subscriptions", "create", "probe", "--receiver", "shared", "--alert", "start_failed", "--wait", "1s", "--interval",
		"1s", "--group-by", "name")
	start(t, s, 1, "foreign", "exit 3", nil)
	h.await(t, "start_failed", "foreign", "firing")
	time.Sleep(3 * time.Second) // what would be wrong comes at the same time
	for _, m := range h.got() {
		if m.CommonLabels["subscription"] == "mine" {
			t.Errorf("the viewer got %+v", m)
		}
	}

	// What waits is not sent if the subscription does not choose it any more.
	h.answers(http.StatusServiceUnavailable)
	start(t, s, 1, "late", "exit 3", nil)
	ft.Until(t, time.Minute, func() string { return "nothing waits" }, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.refused > 0
	})
	cli(t, s, "notify", "subscriptions", "change", "probe", "--process", "next")
	h.answers(http.StatusOK)
	start(t, s, 1, "next", "exit 3", nil)
	h.await(t, "start_failed", "next", "firing")
	if has(h.got(), "start_failed", "late", "") || has(h.got(), "start_failed", "late", "firing") {
		t.Error("an alert came that the subscription does not choose any more")
	}
	if _, text := s.Get(t, "/api/v1/audit?newest=true&limit=100"); !strings.Contains(text, `"notify:change-subscription:`) {
		t.Error("the audit has no change of a subscription")
	}
}
