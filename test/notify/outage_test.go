//go:build linux

package notify_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// certificateText is a certificate in PEM.
func certificateText(t *testing.T) string {
	t.Helper()
	path, _ := certificate(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// backlogOf is what `gozzard notify receivers` shows of a receiver.
func backlogOf(t *testing.T, s *ft.Server, name string) client.ReceiverBacklog {
	t.Helper()
	var list client.ReceiverList
	out := cli(t, s, "notify", "receivers", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range list.Receivers {
		if r.Name == name && r.Backlog != nil {
			return *r.Backlog
		}
	}
	t.Fatalf("no receiver %s: %s", name, out)
	return client.ReceiverBacklog{}
}

// TestReceiverThatIsDownIsSeen: of a receiver that fails, the list has what waits, the last error and the next try, for admins
// of everything. A test that arrives sends what waits long before that try.
func TestReceiverThatIsDownIsSeen(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	h := newHook(t)
	cli(t, s, "notify", "receivers", "create", "hook", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file",
		secretFile(t, secret), "--shared")
	cli(t, s, "notify", "subscriptions", "create", "all", "--receiver", "hook", "--alert", "start_failed", "--wait", "1s", "--interval",
		"1s", "--group-by", "name")
	startAgent(t, s, 1)
	if b := backlogOf(t, s, "hook"); b != (client.ReceiverBacklog{}) {
		t.Errorf("before: %+v", b)
	}

	// It fails, and the waits get longer.
	h.answers(http.StatusServiceUnavailable)
	for _, name := range []string{"one", "two"} {
		start(t, s, 1, name, "exit 3", nil)
	}
	var b client.ReceiverBacklog
	ft.Until(t, 2*time.Minute, func() string { b, _ := json.Marshal(b); return string(b) }, func() bool {
		b = backlogOf(t, s, "hook")
		return b.Waiting == 2 && time.Until(b.NextTry.Time) > 15*time.Second
	})
	if b.Tries < 4 || !strings.Contains(b.LastError, "the receiver answers 503") || b.Oldest.IsZero() || b.DeadLetters != 0 {
		t.Errorf("%+v", b)
	}
	if out := cli(t, s, "notify", "receivers"); !strings.Contains(out, " in ") || !strings.Contains(out, "the receiver answers 503") {
		t.Errorf("the table: %s", out)
	}
	if out, err := tryCLI(t, s, "notify", "receivers", "test", "hook"); err == nil || !strings.Contains(out, "503") {
		t.Errorf("the test of a receiver that fails: %v: %s", err, out)
	}

	// Others do not see it: errors can have addresses and answers.
	viewer := newApp(t, s, "watch", "--role", "viewer")
	if _, text := viewer.send(t, "GET", "/api/v1/receivers", nil); !strings.Contains(text, `"hook"`) || strings.Contains(text, "503") ||
		strings.Contains(text, "backlog") {
		t.Errorf("a viewer sees %s", text)
	}

	// It works again.
	b = backlogOf(t, s, "hook")
	h.answers(http.StatusOK)
	out := cli(t, s, "notify", "receivers", "test", "hook")
	if !strings.HasPrefix(out, "the receiver hook (webhook) took a test message at http://127.0.0.1:") ||
		!strings.Contains(out, "2 messages that waited are sent now") || strings.Contains(out, secret) {
		t.Errorf("the test prints %s", out)
	}
	h.await(t, "start_failed", "one", "firing")
	h.await(t, "start_failed", "two", "firing")
	if !time.Now().Before(b.NextTry.Time) {
		t.Errorf("the messages came at the next try, which was to be at %s", b.NextTry)
	}
	ft.Until(t, time.Minute, func() string { return "something waits" }, func() bool {
		return backlogOf(t, s, "hook") == client.ReceiverBacklog{}
	})
	if out := cli(t, s, "notify", "receivers", "test", "hook"); strings.Contains(out, "waited") {
		t.Errorf("nothing waits: %s", out)
	}
}
