//go:build linux

package fleettest_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTE5HostRefusesRootByItself: by default a host refuses to run commands as root, with a message that names the
// setting, until its owner allows it.
func TestTE5HostRefusesRootByItself(t *testing.T) {
	t.Parallel() // it mostly waits
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}

	// Start an agent without a policy: it writes the default one.
	s := ft.StartServer(t, "")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	agent := ft.Start(t, "agent", nil, "agent", "--data", dir, "--server", s.Agents, "--ip", "127.0.0.1",
		"--secret-file", filepath.Join(s.Data, "join.secret"))
	s.AwaitOnline(t, 1)
	rules := filepath.Join(dir, "policy.yaml")
	if fi, err := os.Stat(rules); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", fi, err)
	}

	fx := ft.NewDaemon(t, t.TempDir(), "gzpolicy")
	run := func(op int, user string) ft.Entry {
		t.Helper()
		fx.User = user
		task := s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{
			"meta": ft.J{"namespace": "gse", "name": "policy", "labels": ft.J{"proc_name": "x"}}, "op_type": op,
			"hosts": []ft.J{ft.Host(1)}, "spec": fx.Spec(nil),
		}}})
		all := slices.Collect(maps.Values(s.Await(task)))
		if len(all) != 1 {
			t.Fatalf("%d entries", len(all))
		}
		return all[0]
	}

	refused := func(op int, user, setting string) {
		t.Helper()
		if e := run(op, user); e.Code != 65535 || !strings.Contains(e.Msg,
			"is not allowed by local policy ("+setting+" in "+rules+")") || strings.Contains(e.Msg, "\n") {
			t.Errorf("op %d as %q: %+v", op, user, e)
		}
	}

	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(rules+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(rules+".new", rules); err != nil {
			t.Fatal(err)
		}
	}

	// The default policy, and each setting that the owner changes.
	refused(0, "root", "allow_root")
	refused(0, "nobody", "users")
	refused(0, "daemon", "deny_uids")
	write("allow_root: true\n") // takes effect at once
	refused(0, "root", "path_prefixes")
	write("{allow_root: true, path_prefixes: [" + filepath.Dir(fx.Dir) + "], ops: [start, query, kill]}\n")

	if e := run(0, "root"); e.Code != 0 || fx.PID() < 0 {
		t.Fatalf("start: %+v", e)
	}

	refused(1, "root", "ops")

	// A policy that becomes stricter does not touch what runs.
	pid := fx.PID()
	write("{path_prefixes: [" + filepath.Dir(fx.Dir) + "]}\n")
	refused(9, "root", "allow_root")

	if fx.PID() != pid || fx.Count("start") != 1 {
		t.Fatalf("what runs was touched: %v", fx.Calls())
	}

	// The agent does not restart what the policy no longer allows.
	ft.KillPID(t, pid) // the agent must not restart it

	ft.Until(t, time.Minute, func() string { return "the status does not say why it is down" }, func() bool {
		all := s.Status("gse", "policy", ft.Host(1))
		return len(all) == 1 && all[0].Status == 2 && strings.Contains(all[0].Message, "allow_root in "+rules)
	})

	if fx.Count("start") != 1 {
		t.Errorf("started: %v", fx.Calls())
	}

	// The agent does not start with a policy that others can write.
	agent.Kill(15)

	if err := os.Chmod(rules, 0o666); err != nil {
		t.Fatal(err)
	}

	agent.Again()

	select {
	case <-agent.Done():
	case <-time.After(time.Minute):
		t.Fatal("the agent runs with a policy that others can write")
	}

	if agent.ExitCode() == 0 || !strings.Contains(agent.Output(), "is writable by others (mode 0666)") {
		t.Errorf("exit %s: %s", strconv.Itoa(agent.ExitCode()), agent.Output())
	}
}

// TestTI15FolderOfAnotherAccount: a tenant names folders that its account cannot see. The answers are the same for a file,
// for a link, and for nothing.
func TestTI15FolderOfAnotherAccount(t *testing.T) {
	t.Parallel() // it mostly waits
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	s.AwaitOnline(t, 1)
	dir := newLoot(t).dir
	private := filepath.Join(dir, "private")
	if err := errors.Join(os.Mkdir(private, 0o700), os.WriteFile(private+"/file", nil, 0o600),
		os.Symlink(private+"/file", private+"/link"), os.Symlink("loop", private+"/loop"), os.Symlink(private, dir+"/own")); err != nil {
		t.Fatal(err)
	}

	for _, folder := range []string{private, dir + "/own"} {
		for _, name := range []string{"nothing/x", "file/x", "link/x", "loop/x"} {
			path := folder + "/" + name
			spec := ft.J{"identity": ft.J{"proc_name": "sleep", "setup_path": path, "user": "nobody", "pid_path": dir + "/pid"},
				"control": ft.J{"start_cmd": "sleep 1", "stop_cmd": "true"}, "resource": ft.J{}, "monitor_policy": ft.J{"auto_type": 2}}
			for _, e := range s.Await(s.Operate("operate_proc", ft.J{"op_type": 0, "hosts": []ft.J{ft.Host(1)}, "spec": spec,
				"meta": ft.J{"namespace": "gse", "name": "oracle", "labels": ft.J{"proc_name": "x"}}})) {
				if want := "folder (setup_path) " + path + ": user nobody may not enter it"; !strings.HasSuffix(e.Msg, want) {
					t.Errorf("%s: %q, want %q", path, e.Msg, want)
				}
			}
		}
	}
}
