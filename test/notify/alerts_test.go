//go:build linux

package notify_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestAlertsReachReceivers: a crash loop, a lost host, an exceeded limit, a failed task and a failing health check reach a
// webhook and a command, and what gets well again is resolved. A receiver that was down for a time gets everything later.
func TestAlertsReachReceivers(t *testing.T) {
	commands, out := commandFolder(t)
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8", "--notify-commands", commands, "--notify-account", "nobody",
		"--host-lost-after", "5s")
	good, late := newHook(t), newHook(t)
	key := secretFile(t, secret)
	cli(t, s, "notify", "receivers", "create", "good", "--receiver-kind", "webhook", "--to-url", good.URL, "--secret-file", key)
	cli(t, s, "notify", "receivers", "create", "late", "--receiver-kind", "webhook", "--to-url", late.URL, "--secret-file", key)
	cli(t, s, "notify", "subscriptions", "create", "all", "--receiver", "good,late,command:save", "--wait", "1s", "--interval", "1s")
	late.answers(http.StatusServiceUnavailable)

	// Make trouble.
	startAgent(t, s, 1)
	gone := startAgent(t, s, 2)
	start(t, s, 1, "loop", "echo $$ > pid; exec sleep 0.2", nil)
	start(t, s, 1, "sick", "echo $$ > pid; exec sleep 10000", ft.J{"health_cmd": "test -e well", "health_interval": 1, "health_threshold": 1})
	start(t, s, 1, "fat", "echo $$ > pid; exec sleep 10000", ft.J{"mem": 0.0001, "act": "alert", "samples": 1})
	if codes := start(t, s, 1, "never", "exit 3", nil); len(codes) != 1 || codes[0] == 0 {
		t.Fatalf("the start has the codes %v", codes)
	}
	gone.Kill(syscall.SIGKILL)

	// They arrive.
	for _, want := range [][2]string{{"crash_loop", "loop"}, {"health_failing", "sick"}, {"limit_exceeded", "fat"},
		{"task_failed", "never"}, {"start_failed", "never"}, {"host_lost", ""}, {"process_ended", "loop"}} {
		good.await(t, want[0], want[1], "firing")
	}
	gone.Again()
	good.await(t, "host_lost", "", "resolved")
	for _, m := range good.got() {
		for _, a := range m.Alerts {
			if a.Labels["kind"] == "crash_loop" && (a.Labels["namespace"] != "shop" || a.Labels["host"] != "127.0.0.1" ||
				a.Labels["label_tier"] != "front" || a.Labels["alertname"] != "GozzardCrashLoop" ||
				!strings.HasPrefix(a.Annotations["description"], "crash loop: 3 exits")) {
				t.Errorf("%+v", a)
			}
		}
	}

	// The command got them, too, as its own account.
	ft.Until(t, time.Minute, func() string { return "the command: " + strings.Join(saved(t, out), "\n") }, func() bool {
		all := strings.Join(saved(t, out), "\n")
		return strings.Contains(all, `"kind":"crash_loop"`) && strings.Contains(all, `"kind":"host_lost"`) &&
			strings.Contains(all, `"kind":"task_failed"`)
	})
	if b, err := os.ReadFile(filepath.Join(out, "account")); err != nil || strings.TrimSpace(string(b)) != "nobody" {
		t.Errorf("the command ran as %q, %v", b, err)
	}

	// The receiver that was down gets everything.
	if len(late.got()) != 0 {
		t.Fatal("a receiver that is down got messages")
	}
	late.answers(http.StatusOK)
	late.await(t, "host_lost", "", "resolved")
	for _, kind := range []string{"crash_loop", "health_failing", "limit_exceeded", "task_failed", "start_failed"} {
		late.await(t, kind, "", "firing")
	}
	if out := cli(t, s, "notify", "dead-letters"); strings.Contains(out, "late") {
		t.Errorf("dead letters: %s", out)
	}
	if _, text := s.Get(t, "/metrics"); !strings.Contains(text, `gozzard_notifications_total{receiver="webhook",result="sent"}`) {
		t.Error("the metrics do not count messages")
	}
}

// TestRunFailedAlert: the run of a process that is not started again ends badly, and the receiver gets it, although the process may end.
// It is over when a run ends well. Nobody gets an alert because a query has failed.
func TestRunFailedAlert(t *testing.T) {
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	h := newHook(t)
	cli(t, s, "notify", "receivers", "create", "hook", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file",
		secretFile(t, secret))
	cli(t, s, "notify", "subscriptions", "create", "usual", "--receiver", "hook", "--wait", "1s", "--interval", "1s")
	cli(t, s, "conform", "--api", "gse") // asks for a process on a host that is not there

	startAgent(t, s, 1)
	start(t, s, 1, "job", "echo $$ > pid; test ! -e once || exec sleep 2; touch once; (sleep 3; kill -9 $$) & exec sleep 10000",
		ft.J{"auto_type": 2})
	h.await(t, "run_failed", "job", "firing")
	cli(t, s, "start", "job", "-n", "shop")
	h.await(t, "run_failed", "job", "resolved")

	for _, m := range h.got() {
		for _, a := range m.Alerts {
			if a.Labels["kind"] == "task_failed" {
				t.Errorf("a query has failed, and the receiver gets %+v", a)
			}
		}
	}
}

// TestServerKilledLosesNoAlert: the server is killed again and again while processes end. In the end the receiver knows of
// each, and got nearly nothing twice.
func TestServerKilledLosesNoAlert(t *testing.T) {
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	h := newHook(t)
	cli(t, s, "notify", "receivers", "create", "hook", "--receiver-kind", "webhook", "--to-url", h.URL, "--secret-file",
		secretFile(t, secret))
	cli(t, s, "notify", "subscriptions", "create", "all", "--receiver", "hook", "--alert", "start_failed,task_failed", "--wait", "1s",
		"--interval", "1s", "--group-by", "kind,name")
	startAgent(t, s, 1)

	const kills = 4
	for i := range kills {
		for j := range 3 {
			start(t, s, 1, fmt.Sprintf("never-%d-%d", i, j), "exit 3", nil)
		}
		time.Sleep(time.Duration(i) * 600 * time.Millisecond) // at another moment each time
		s.Kill(syscall.SIGKILL)
		s.Again()
		s.AwaitReady()
		s.AwaitOnline(t, 1)
	}
	for i := range kills {
		for j := range 3 {
			h.await(t, "start_failed", fmt.Sprintf("never-%d-%d", i, j), "firing")
			h.await(t, "task_failed", fmt.Sprintf("never-%d-%d", i, j), "firing")
		}
	}

	twice := map[string]int{}
	for _, m := range h.got() {
		twice[m.ID]++
	}
	again := 0
	for _, n := range twice {
		again += n - 1
	}
	if again > kills {
		t.Errorf("%d messages of %d came again, after %d kills", again, len(twice), kills)
	}
}

// commandFolder is a folder with the command "save", which appends its input to a file in out.
func commandFolder(t *testing.T) (folder, out string) {
	t.Helper()
	folder, out = publicDir(t), publicDir(t)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncd " + out + "\nid -un > account.$$ && mv account.$$ account\ncat > $GOZZARD_MESSAGE.json.new && mv $GOZZARD_MESSAGE.json.new $GOZZARD_MESSAGE.json\n"
	if err := os.WriteFile(filepath.Join(folder, "save"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder, out
}

// saved are the inputs of the command.
func saved(t *testing.T, out string) (list []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		strict(t, b)
		list = append(list, string(b))
	}
	return list
}
