package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// guards lists the live guards of a state folder.
func guards(t *testing.T, state string) (pids []int) {
	t.Helper()
	all, err := proc.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		args, err := proc.Args(pid, 4096)
		if err == nil && alive(pid) && len(args) == 2 && args[0] == "gozzard guard" && args[1] == state {
			pids = append(pids, pid)
		}
	}
	return pids
}

// guarded begins a command that takes long, and waits for the guard.
func (f *fixture) guarded(r supervise.Run, files ...string) int {
	f.t.Helper()
	f.begin(r, files...)
	var pids []int
	f.eventually("the guard is there", func() bool {
		pids = guards(f.t, f.state)
		return len(pids) == 1 && comm(pids[0]) == "gozzard guard"
	})
	return pids[0]
}

func comm(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}

// A closed host has left its commands running. The guard ends them at their limits, and then itself.
func TestGuardEndsCommandsAtTheirLimit(t *testing.T) {
	for way, change := range bothWays {
		for name, c := range map[string]struct {
			action        gozzard.Action
			command       string
			ended, spared string
		}{
			"reload": {action: gozzard.ActionReload, command: "setsid sleep 300 & echo $! >a; echo $$ >sh; wait", ended: "a sh"},
			"start": {action: gozzard.ActionStart, ended: "a sh", spared: "web.pid",
				command: "setsid ./web 300 & echo $! >web.pid; sleep 300 & echo $! >a; echo $$ >sh; wait"},
			"version": {action: gozzard.ActionQuery, command: "./web 300 & echo $! >a; echo $$ >sh; wait", ended: "a sh"},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				f := newHost(t, change)
				f.program("web")
				pid := f.guarded(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Op: gozzard.NewOpID(), Action: c.action,
					Command: c.command, Timeout: 3 * time.Second, Keeps: c.action != gozzard.ActionQuery},
					strings.Fields(c.ended+" "+c.spared)...)
				began := time.Now()
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}

				for _, n := range strings.Fields(c.ended) {
					if time.Since(began) < time.Second && !f.lives(n) {
						t.Errorf("%s was ended before its limit", n)
					}
					f.eventually(n+" is ended", func() bool { return !f.lives(n) })
				}
				f.eventually("the guard is gone", func() bool { return !alive(pid) })
				for _, n := range strings.Fields(c.spared) {
					if !f.lives(n) {
						t.Errorf("%s was ended", n)
					}
				}
			})
		}
	}
}

// An agent that is killed right after the start of a command has not named it to its guard. The guard finds it in the ledger,
// with its shell or without.
func TestGuardEndsCommandsThatWereNotNamed(t *testing.T) {
	for way, change := range bothWays {
		for name, shell := range map[string]bool{"shell known": true, "shell not known": false} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				f := newHost(t, change)
				run := func(key, command string, timeout time.Duration) supervise.Run {
					return supervise.Run{Key: f.key(key), Spec: f.spec("web"), Op: gozzard.NewOpID(), Action: gozzard.ActionReload,
						Command: command, Timeout: timeout, Keeps: true}
				}
				pid := f.guarded(run("named", "echo $$ >named; sleep 300", time.Minute), "named")
				f.begin(run("not", "sleep 300 & echo $! >a; echo $$ >sh; wait", 3*time.Second), "a", "sh")
				host.Unname(f.Host, f.key("not"), shell)
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}

				for _, n := range []string{"a", "sh"} {
					f.eventually(n+" is ended", func() bool { return !f.lives(n) })
				}
				if !f.lives("named") || !alive(pid) {
					t.Error("a command was ended before its limit")
				}
			})
		}
	}
}

// The guard has nothing of the agent but its end of the socket, and few rights.
func TestGuardHoldsNothing(t *testing.T) {
	f := newHost(t)
	leak, err := os.OpenFile(filepath.Join(f.state, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	fd, err := unix.Dup(int(leak.Fd())) // inherited by children, as what a service manager passes on
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	f.open() // marks it

	pid := f.guarded(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionReload,
		Command: "echo $$ >sh; sleep 300", Timeout: time.Minute, Keeps: true}, "sh")

	// While it starts, the C library may have a file open for a moment.
	open := ""
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if open = openFiles(t, pid); open == "one socket" || time.Now().After(end) {
			break
		}
	}
	if open != "one socket" {
		t.Errorf("the guard has %s", open)
	}

	group, err := proc.Cgroup(pid)
	own, errOwn := proc.Cgroup(os.Getpid())
	st, errStat := proc.Stat(pid)
	if err != nil || errOwn != nil || errStat != nil || group != own || st.Session != pid {
		t.Errorf("group %q, session %d: %v %v %v", group, st.Session, err, errOwn, errStat)
	}
	cred, err := proc.Credentials(pid)
	const keep = 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_DAC_READ_SEARCH
	if err != nil || (cred.Effective|cred.Permitted|cred.Inheritable|cred.Ambient)&^keep != 0 || !cred.NoNewPrivs {
		t.Errorf("%+v, %v", cred, err)
	}
}

// openFiles describes what a process has open: "one socket" if there is nothing else but what every program has.
func openFiles(t *testing.T, pid int) string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	sockets, other := 0, ""
	for _, e := range all {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		switch {
		case err != nil:
			other += " " + err.Error()
		case strings.HasPrefix(to, "socket:"):
			sockets++
		case to != "/dev/null" && !strings.HasPrefix(to, "anon_inode:[event"): // of the runtime
			other += " " + to
		}
	}
	if sockets == 1 && other == "" {
		return "one socket"
	}
	return fmt.Sprintf("%d sockets and%s", sockets, other)
}

// What the agent has taken back is not the guard's: a foreground process that was handed over, a command that ended.
func TestGuardForgets(t *testing.T) {
	for way, change := range bothWays {
		t.Run(way, func(t *testing.T) {
			f := newHost(t, change)
			f.program("other")
			k := f.key("a")
			spec := f.spec("")
			spec.Identity.PIDPath = f.dir + "/front"
			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: spec, Action: gozzard.ActionStart, Keeps: true,
				Command: "echo $$ >front; exec ./other 300", Timeout: 2 * time.Second, Front: 500 * time.Millisecond})
			if err != nil || !res.Front {
				t.Fatalf("%+v, %v", res, err)
			}
			f.kills(readPID(t, f.dir+"/front"))
			if err := os.Remove(f.dir + "/front"); err != nil { // from now on only the guard's list protects it
				t.Fatal(err)
			}
			pids := guards(t, f.state)
			if len(pids) != 1 {
				t.Fatalf("guards %v", pids)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			f.eventually("the guard is gone", func() bool { return !alive(pids[0]) })
			time.Sleep(2 * time.Second) // the limit of the command
			if found := copies(t, f.dir+"/other"); found != 1 {
				t.Errorf("%d processes", found)
			}
		})
	}
}

// copies counts the processes of a program.
func copies(t *testing.T, path string) (n int) {
	t.Helper()
	all, err := proc.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		if exe, err := proc.Exe(pid); err == nil && exe == path && alive(pid) {
			n++
		}
	}
	return n
}

// The next agent takes a process over whose command the guard watches. The guard leaves it alone.
func TestGuardRespectsTheNextAgent(t *testing.T) {
	for way, change := range bothWays {
		t.Run(way, func(t *testing.T) {
			f := newHost(t, change)
			f.program("web")
			pid := f.guarded(supervise.Run{Key: f.key("a"), Spec: f.spec("nothing"), Action: gozzard.ActionStart, Keeps: true,
				Command: "echo $$ >web.pid; exec ./web 300", Timeout: 3 * time.Second, Front: time.Minute}, "web.pid")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			web := readPID(t, f.dir+"/web.pid")
			f.open().EndCommands(func(_ gozzard.Key, p supervise.Proc) bool { return p.PID == web })
			f.eventually("the guard is gone", func() bool { return !alive(pid) })
			time.Sleep(3 * time.Second) // the limit of the command
			if !alive(web) {
				t.Error("a process that the agent holds was ended")
			}
		})
	}
}

// A guard that was killed is replaced, and the new one knows the running commands.
func TestGuardIsReplaced(t *testing.T) {
	f := newHost(t)
	pid := f.guarded(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionReload,
		Command: "echo $$ >sh; sleep 300", Timeout: 5 * time.Second, Keeps: true}, "sh")
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.eventually("another guard is there", func() bool {
		host.Tidy(f.Host)
		now := guards(t, f.state)
		return len(now) == 1 && !slices.Contains(now, pid)
	})
	if st, err := proc.Stat(pid); err == nil {
		t.Errorf("the killed one was not collected: %+v", st)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.eventually("the command is ended", func() bool { return !f.lives("sh") })
	f.eventually("the guard is gone", func() bool { return len(guards(t, f.state)) == 0 })
}

// Quick commands start no guard.
func TestNoGuardForQuickCommands(t *testing.T) {
	f := newHost(t)
	for range 20 {
		f.run(f.key("a"), f.spec("x"), false, ":")
	}
	if pids := guards(t, f.state); len(pids) > 0 {
		t.Errorf("guards %v", pids)
	}
}

// A command that was started right before the agent ended has a limit, too.
func TestGuardIsStartedAtTheEnd(t *testing.T) {
	f := newHost(t)
	f.begin(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionReload,
		Command: "echo $$ >sh; sleep 300", Timeout: 2 * time.Second, Keeps: true}, "sh")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.eventually("the command is ended", func() bool { return !f.lives("sh") })
	f.eventually("the guard is gone", func() bool { return len(guards(t, f.state)) == 0 })
}
