package tenants_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
)

// TestTS1Walk calls every method of every path of every door with credentials that are missing, wrong, expired or
// insufficient, and checks that every answer is a rejection.
func TestTS1Walk(t *testing.T) {
	w := newWorld(t, "")
	m := newMaker(w, *seed)
	other := newWorld(t, "") // another server, which has the same apps with other secrets
	ours, theirs := w.newApp("twin"), other.newApp("twin")
	before := w.picture(t)

	// Send every kind of wrong credentials to every route.
	header := func(app, secret, rest string) string {
		return fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q%s}`, app, secret, rest)
	}

	pairs := 0
	for name, credentials := range map[string]string{
		"none": "", "no secret": header("admin", "", `,"bk_username":"u"`),
		"wrong secret":         header("admin", "admin-secreT", `,"bk_username":"u"`),
		"unknown app":          header("stranger", "admin-secret", `,"bk_username":"u"`),
		"another app's secret": header("admin", "A-secret", `,"bk_username":"u"`),
		"no user":              header("admin", "admin-secret", ""),
		"user not proven":      header("plain", "plain-secret", `,"bk_username":"u"`),
		"wrong token":          header("plain", "plain-secret", `,"bk_token":"gooD"`),
		"expired token":        header("plain", "plain-secret", `,"bk_token":"expired"`),
		"malformed":            `{"bk_app_code":`, "another server's secret": header("twin", theirs, `,"bk_username":"u"`),
		"bearer of nothing": "Bearer ", "bearer of a guess": "Bearer gooD",
		"bearer of an expired token": "Bearer expired", "bearer of an app's secret": "Bearer " + ours,
	} {
		for _, rt := range m.routes {
			if rt.open {
				continue
			}
			pairs++
			r := m.to(rt)
			code, got := w.sendAs(credentials, r)
			if !isRefusal(rt, code, got) {
				t.Errorf("%s: %s\nis answered %d %.300s", name, r, code, got)
			}
		}
	}

	// Valid credentials work.
	if code, got := w.sendAs(header("plain", "plain-secret", `,"bk_token":"good"`),
		&request{method: "GET", path: "/api/v1/hosts"}); code != 200 {
		t.Errorf("the right token: %d %s", code, got)
	}

	if code, got := w.sendAs(header("twin", ours, `,"bk_username":"u"`),
		&request{method: "GET", path: "/api/v1/hosts"}); code != 200 {
		t.Errorf("our own secret: %d %s", code, got)
	}

	// The rejected requests have changed nothing.
	if !t.Failed() {
		fmt.Printf("threat TS1: %d pairs of route and credentials that are missing, wrong, expired or another server's: all refused\n", pairs)
	}
	if n := len(w.newTasks()); n > 0 {
		t.Errorf("strangers made %d tasks", n)
	}
	if diff := cmp.Diff(before, w.picture(t)); diff != "" {
		t.Errorf("strangers did something (-before +after):\n%s", diff)
	}

	// Callers with few rights see and change nothing that is not theirs.
	for _, app := range []string{"viewer", "enroller", "nobody"} {
		for _, rt := range m.routes {
			for range 3 {
				r := m.to(rt)
				code, got := w.send(app, r)
				if app == "nobody" && tagged.MatchString(got) {
					t.Errorf("%s is shown something: %s\n%d %s", app, r, code, got)
				}
				if app == "enroller" && strings.Contains(got, `"labels":{"tag"`) {
					t.Errorf("%s is shown a process: %s\n%d %s", app, r, code, got)
				}
			}
		}
		w.newTasks()
		if diff := cmp.Diff(before, w.picture(t)); diff != "" {
			t.Errorf("%s did something (-before +after):\n%s", app, diff)
		}
	}
}

// newApp makes an app that may do everything and returns its secret.
func (w *world) newApp(code string) string {
	w.t.Helper()
	status, got := w.send("admin", &request{method: "POST", path: "/api/v1/apps",
		body: fmt.Sprintf(`{"code":%q,"asserts_users":true,"unknown_users":true,"grants":[{"role":"admin"}]}`, code)})
	m := regexp.MustCompile(`"secret":\s*"([^"]+)"`).FindStringSubmatch(got)
	if status >= 300 || m == nil {
		w.t.Fatalf("%d %s", status, got)
	}
	return m[1]
}

var (
	tagged  = regexp.MustCompile(`qq[A-Z]+qq`)
	refused = regexp.MustCompile(`"result":\s*false`)
)

// isRefusal reports whether an answer rejects a request for its credentials. The compatible doors say that with their
// own codes.
func isRefusal(rt route, code int, answer string) bool {
	if rt.door == "api" {
		return code == 400 && strings.Contains(answer, "X-Bkapi-Authorization") || code == 401 || code == 403
	}
	for _, word := range []string{"bk_app", "bk_token", "bk_username", "X-Bkapi-Authorization", "white list"} {
		if strings.Contains(answer, word) {
			return refused.MatchString(answer)
		}
	}
	return false
}

// picture is everything that a caller could have changed.
func (w *world) picture(t *testing.T) (lines []string) {
	t.Helper()
	w.settle()

	for rec, err := range w.Store.Processes(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %v %s hosted=%v wanted=%v", rec.ID.Agent, rec.ID.Key, rec.Labels,
			rec.Spec, rec.Hosted, rec.Wanted))
	}

	var agents []gozzard.AgentID
	for _, h := range places() {
		agents = append(agents, h.agent)
	}

	groups, err := w.Store.Groups(t.Context(), "", agents)
	if err != nil {
		t.Fatal(err)
	}

	lines = append(lines, fmt.Sprintf("%+v", groups))
	for _, h := range w.Plane.Businesses(admin) {
		lines = append(lines, fmt.Sprintf("%+v", h))
	}

	rolls, err := w.Upgrades.Upgrades(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}

	published, err := w.Upgrades.Releases()
	if err != nil {
		t.Fatal(err)
	}

	lines = append(lines, fmt.Sprintf("%d releases, rolls %+v", len(published), rolls))
	accounts, _, err := w.Store.LoadAccounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	text, err := json.Marshal(accounts)
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, fmt.Sprintf("%d jobs, accounts %s", len(w.jobSizes()), text))
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, d := range w.did {
		if !d.op.Action.ReadOnly() {
			lines = append(lines, fmt.Sprintf("%s did %s to %s", d.agent, d.op.Action, d.op.Key))
		}
	}

	return lines
}

// TestTS1FabricSubjects tries the subjects of the fabric without credentials, with a wrong secret and as another agent.
func TestTS1FabricSubjects(t *testing.T) {
	secret := strings.Repeat("s", 40)
	b, err := nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(b.Close)

	for _, c := range [][2]string{{"", ""}, {"0.evil", ""}, {"0.evil", "wrong"}, {"hub", secret}, {"", secret},
		{"0.*", secret}, {"0.>", secret}} {
		if conn, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo(c[0], c[1])); err == nil {
			conn.Close()
			t.Errorf("%q came in with %q", c[0], c[1])
		}
	}

	// Connect as one agent and count what the broker denies.
	var denied atomic.Int64
	conn, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo("0.evil", secret), natsgo.ErrorHandler(
		func(*natsgo.Conn, *natsgo.Subscription, error) { denied.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(conn.Close)
	want := int64(0)
	check := func(what string) {
		t.Helper()
		want++
		for end := time.Now().Add(time.Minute); denied.Load() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s was not refused", what)
			}
		}
	}

	// Subjects of other agents.
	for _, kind := range []string{"op", "res", "st"} {
		for _, of := range []string{"0.victim", "1.evil", "0.*", "*.evil", ">", "0.evil.x"} {
			subject := kind + "." + of
			if _, err := conn.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			check("listening on " + subject)
			if _, err := conn.QueueSubscribeSync(subject, "q"); err != nil {
				t.Fatal(err)
			}
			check("listening in a group on " + subject)
			if strings.ContainsAny(of, "*>") {
				continue
			}
			if err := conn.Publish(subject, []byte("x")); err != nil {
				t.Fatal(err)
			}
			check("speaking on " + subject)
		}
	}

	// Subjects that no agent may publish to or subscribe to.
	for _, subject := range []string{"op.0.evil", "_INBOX.x", "$SYS.REQ.SERVER.PING", "$JS.API.INFO"} {
		if err := conn.Publish(subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		check("speaking on " + subject)
	}

	for _, subject := range []string{">", "res.0.evil", "st.0.evil", "_INBOX.>", "$SYS.>", "$JS.>"} {
		if _, err := conn.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		check("listening on " + subject)
	}

	if denied.Load() != want {
		t.Errorf("%d refusals, want %d", denied.Load(), want)
	}
}
