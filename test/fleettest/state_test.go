//go:build linux

package fleettest_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

func native(t *testing.T, a *ft.API) *client.Client {
	t.Helper()
	c, err := client.New(a.Cred.URL, client.Credentials{AppCode: a.Cred.AppCode, AppSecret: a.Cred.Secret,
		Username: a.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// dataOf finds the state folder in the arguments of a running agent.
func dataOf(t *testing.T, p *ft.Program) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "cmdline"))
	if err != nil {
		t.Fatal(err)
	}

	args := strings.Split(string(b), "\x00")
	for i, a := range args {
		if a == "--data" {
			return args[i+1]
		}
	}

	t.Fatal("no --data")
	return ""
}

// TestLostJournalIsRestored: an agent that lost its journal gets the server's definitions again. Running processes keep
// running, and are known and supervised as before.
func TestLostJournalIsRestored(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, 5)
	before := f.pids()
	data := dataOf(t, agent)
	agent.Kill(syscall.SIGKILL)
	ft.KillPID(t, before[4]) // dies while no agent watches: only the record knows that it must run

	for _, name := range []string{"journal", "journal.reserve"} {
		if err := os.Remove(filepath.Join(data, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}

	opened := strings.Count(agent.Output(), "session is open") // the server does not notice so short an absence
	agent.Again()

	ft.Until(t, 30*time.Second, agent.Output, func() bool {
		return strings.Count(agent.Output(),
			"session is open") > opened
	})

	ft.Until(t, 30*time.Second, func() string { return "running processes are not known again: " + agent.Output() },
		func() bool { return f.known(before[:4]) })

	ft.Until(t, 30*time.Second, func() string { return "the process that died meanwhile does not come back" },
		func() bool { p := f.daemons[4].PID(); return p > 0 && p != before[4] })

	for _, d := range f.daemons[:4] {
		if d.Count("start") != 1 || d.Copies() != 1 {
			t.Errorf("%s was started %d times, %d copies", d.Name, d.Count("start"), d.Copies())
		}
	}

	ft.KillPID(t, before[0])

	ft.Until(t, 30*time.Second, func() string { return "is no longer supervised" },
		func() bool { p := f.daemons[0].PID(); return p > 0 && p != before[0] })
}

// TestEventsAndLogsThroughTheServer: the server shows the events of a host and the output of its processes.
func TestEventsAndLogsThroughTheServer(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	c := native(t, s.API)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	followed := make(chan client.Event, 1000)
	go func() {
		defer close(followed)
		for e, err := range c.FollowEvents(ctx, client.EventQuery{Namespaces: []string{"gse"}}, 0) {
			if err == nil {
				followed <- e
			}
		}
	}()

	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}

	d := ft.NewDaemon(t, root, "gztalks")
	d.Script("start.sh",
		"echo start >> calls\necho hello from the start command\nsetsid ./gztalks 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())
	meta := ft.J{"namespace": "gse", "name": "talks"}
	for _, e := range s.Await(s.Operate("operate_proc",
		ft.J{"meta": meta, "op_type": 0, "hosts": []ft.J{ft.Host(1)}, "spec": d.Spec(nil)})) {
		if e.Code != 0 {
			t.Fatalf("%+v", e)
		}
	}

	t.Cleanup(func() { _, _ = s.Try("unregister_proc_info", ft.J{"meta": meta, "hosts": []ft.J{ft.Host(1)}}) })
	pid := d.PID()
	ft.KillPID(t, pid)
	want := []gozzard.EventKind{gozzard.EventStarted, gozzard.EventExited, gozzard.EventRestarted}
	for len(want) > 0 {
		select {
		case e := <-followed:
			if e.Kind != want[0] {
				continue
			}
			if e.Name != "talks" || e.Host.IP != "127.0.0.1" || e.Kind == gozzard.EventExited &&
				(e.PID != pid || e.Signal != "SIGKILL") {
				t.Errorf("%+v", e)
			}
			want = want[1:]
		case <-ctx.Done():
			page, err := c.Events(t.Context(), client.EventQuery{}, 100)
			t.Fatalf("no %v; the server has %+v, %v", want, page.Events, err)
		}
	}

	key := gozzard.Key{Namespace: "gse", Name: "talks"}
	chunk, err := c.Log(ctx, key, "0:127.0.0.1", 50, -1)
	if err != nil || !strings.Contains(chunk.Text, "hello from the start command") {
		t.Errorf("%+v, %v", chunk, err)
	}
	if _, err := c.Log(ctx, key, "0:127.0.0.9", 50, -1); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Errorf("unknown host: %v", err)
	}
}
