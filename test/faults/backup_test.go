//go:build linux

package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// commandOf runs the program as the admin of a server.
func commandOf(t *testing.T, s *ft.Server, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(ft.Binary(t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(s.Data, "credentials.json"))
	b, err := cmd.CombinedOutput()
	return string(b), err
}

func mustRun(t *testing.T, s *ft.Server, args ...string) string {
	t.Helper()
	out, err := commandOf(t, s, args...)
	if err != nil {
		t.Fatalf("gozzard %q: %v\n%s", args, err, out)
	}
	return out
}

// restored starts a server from a backup in place of one that has ended.
func restored(t *testing.T, s *ft.Server, file, key string, extra ...string) *ft.Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	t.Logf("%s", mustRun(t, s, append([]string{"backup", "restore", file, "--identity", key, "--data", dir},
		extra...)...))
	credentials, err := os.ReadFile(filepath.Join(s.Data, "credentials.json")) // admins keep their own copy
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "credentials.json"), credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	return ft.StartServer(t, dir, "--listen", strings.TrimPrefix(s.Cred.URL, "http://"), "--agent-listen", s.Agents)
}

// refusedBy reads how often a rule has rejected something.
func refusedBy(t *testing.T, url, rule string) int {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		return 0 // not running yet
	}

	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	m := regexp.MustCompile(`gozzard_security_refused_total\{rule="` + rule + `"\} ([0-9]+)`).FindSubmatch(b)
	if m == nil {
		return 0
	}

	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}

	return n
}

// TestK9BackupUnderLoad takes a backup while operations are under way, runs more operations, loses the server and
// restores another one from the backup. Nothing is executed again, every verdict in the restored record is true, hosts
// wait for the admin, and the server accepts new operations.
func TestK9BackupUnderLoad(t *testing.T) {
	ft.FileOnly(t, "gozzard backup copies a file; TestV17RestoredDump uses pg_dump")
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	second := s.StartAgent(t, 2, "")
	by := hosted(t, s.API, 1)[0]
	pid := by.PID()
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "backup.age")
	recipient := strings.TrimSpace(mustRun(t, s, "backup", "keygen", "--to", key))

	// Take a backup under load, with operations that are open in it and others that come later.
	l := ledger.New(t, s.API)
	stop := l.Load(4, 2, 300**scale)
	ft.Until(t, time.Minute, func() string { return "no load" }, func() bool { return len(l.Effects()) > 20 })
	second.Kill(syscall.SIGSTOP)
	never := make(chan struct{})
	held := 10
	for i := range held { // open in the backup, finished after it
		l.Send(fmt.Sprintf("held-%d", i), 2, 20+i, never)
	}

	mustRun(t, s, "backup", "create", "--data", s.Data, "--to", file, "--recipient", recipient)

	for i := range 10 { // not in the backup at all
		l.Send(fmt.Sprintf("later-%d", i), 1, 20+i, never)
	}

	second.Kill(syscall.SIGCONT)
	stop()

	if f := l.Collect(); f.Lost+f.Stuck+f.Twice+f.Wrong > 0 {
		t.Fatalf("before the server was lost: %s", f)
	}

	done := l.Effects()
	for i := range held {
		if done[fmt.Sprintf("held-%d", i)] != 1 {
			t.Fatalf("held-%d was not done before the server was lost", i)
		}
	}

	// Lose the server and restore another one. Hosts wait until the admin confirms their number.
	s.Kill(syscall.SIGKILL)
	r := restored(t, s, file, key)

	ft.Until(t, time.Minute, r.Output, func() bool { return refusedBy(t, r.Cred.URL, "restored") >= 2 })

	if r.Online(1) || r.Online(2) {
		t.Error("hosts are let in before the admin has confirmed them")
	}
	if out := mustRun(t, r, "hosts", "confirm-restore"); !strings.Contains(out, "2 host(s) wait") ||
		!strings.Contains(out, "127.0.0.2") {
		t.Errorf("hosts that wait: %s", out)
	}

	if out, err := commandOf(t, r, "hosts", "confirm-restore", "--confirm", "3"); err == nil ||
		!strings.Contains(out, "2 host(s) wait to be let in, not 3") {
		t.Errorf("a wrong number is taken: %v %s", err, out)
	}

	mustRun(t, r, "hosts", "confirm-restore", "--confirm", "2")
	r.AwaitOnline(t, 1)
	r.AwaitOnline(t, 2)

	// The verdicts in the restored record are true.
	l.Use(t, r.API)
	f := l.Collect()
	fmt.Printf("fault K9: restored: of %s; those lost were accepted after the backup\n", f)

	if f.Stuck+f.Twice+f.Wrong > 0 || f.Lost < 10 || f.Ops-f.Lost < held || f.Interrupted < held {
		t.Errorf("fault K9: %s", f)
	}

	// The restored server accepts new operations, and nothing old is executed again.
	fresh := ledger.New(t, r.API)
	for i := range 24 { // of the same processes: their hosts have executed later tasks than the restored record has
		fresh.Send(fmt.Sprintf("fresh-%d", i), 1+i%2, i, never)
	}

	f = fresh.Collect()
	fmt.Printf("fault K9: after the restore: %s\n", f)

	if f.OK != 24 {
		t.Errorf("fault K9: after the restore: %s %v", f, f.Why)
	}

	for mark, n := range l.Effects() {
		if n != done[mark] {
			t.Errorf("%s was done %d times, %d before the restore", mark, n, done[mark])
		}
	}

	if by.PID() != pid || by.Count("start") != 1 {
		t.Errorf("a process was touched: pid %d was %d, %v", by.PID(), pid, by.Calls())
	}
}

// TestTS8RestoreAfterARotation: an agent that has seen a newer key than the one in a backup rejects the restored server
// until the server has the newest key.
func TestTS8RestoreAfterARotation(t *testing.T) {
	ft.FileOnly(t, "gozzard backup copies a file; a database is restored beside the newest keys")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	state := t.TempDir()
	agent := s.StartAgentIn(t, 1, state, "")
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "backup.age")
	mustRun(t, s, "backup", "create", "--data", s.Data, "--to", file, "--recipient",
		strings.TrimSpace(mustRun(t, s, "backup", "keygen", "--to", key)))
	mustRun(t, s, "key", "rotate", "--data", s.Data)
	s.Kill(syscall.SIGTERM)
	s.Again()

	said := func(n int, what string) {
		t.Helper()
		ft.Until(t, time.Minute, func() string { return what + ": " + agent.Output() },
			func() bool { return strings.Count(agent.Output(), what) >= n })
	}

	said(2, "session is open")
	s.Kill(syscall.SIGKILL)

	old := restored(t, s, file, key)
	mustRun(t, old, "hosts", "confirm-restore", "--confirm", "1")
	said(1, "it is another server")
	for _, verb := range []string{"status", "doctor"} { // the last session must have run out
		out := ""
		ft.Until(t, time.Minute, func() string { return "agent " + verb + " does not say why there is no session: " + out }, func() bool {
			out, _ = commandOf(t, s, "agent", verb, "--data", state) // a warning is no success
			return strings.Contains(out, "it is another server")
		})
	}

	if n := agent.Sessions(); n != 2 {
		t.Errorf("a server from an old copy opened %d sessions", n-2)
	}

	old.Kill(syscall.SIGKILL)

	newest := restored(t, s, file, key, "--signing-key", filepath.Join(s.Data, "signing.key"))
	mustRun(t, newest, "hosts", "confirm-restore", "--confirm", "1")
	said(3, "session is open")
}
