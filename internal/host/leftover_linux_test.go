package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// bothWays are the ways to find the processes of a command.
var bothWays = map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups}

// begin runs a command that does not end, and waits until it has written files. Its host does not know that another
// one opens the same folder later, as an agent that was killed does not know.
func (f *fixture) begin(r supervise.Run, files ...string) (ended <-chan struct{}) {
	f.t.Helper()
	before := host.RecordedShells(f.state)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := f.Run(ctx, r); err != nil {
			f.t.Logf("%s: %v", r.Command, err)
		}
	}()
	f.t.Cleanup(func() { cancel(); <-done })

	for _, name := range files {
		f.eventually(name+" is written", func() bool {
			b, err := os.ReadFile(filepath.Join(f.dir, name))
			return err == nil && bytes.HasSuffix(b, []byte("\n"))
		})
		f.kills(readPID(f.t, filepath.Join(f.dir, name)))
	}
	f.eventually("the shell is on record", func() bool { return host.RecordedShells(f.state) == before+1 })
	return done
}

func (f *fixture) lives(name string) bool { return alive(readPID(f.t, filepath.Join(f.dir, name))) }

func TestEndCommands(t *testing.T) {
	const start, stop, reload = gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionReload
	for name, c := range map[string]struct {
		action        gozzard.Action
		front         bool
		procName      string
		command       string
		ended, spared string // files with pids
	}{
		"a start that goes on later": {action: start, procName: "web",
			command: "sleep 300 & echo $! >a; echo $$ >sh; wait; ./web 300 & echo $! >late", ended: "a sh"},
		"a child in a new session": {action: start, procName: "web",
			command: "setsid sleep 300 & echo $! >a; echo $$ >sh; wait; ./web 300 & echo $! >late", ended: "a sh"},
		"the process is up while its command runs": {action: start, procName: "web",
			command: "setsid ./web 300 & echo $! >web.pid; sleep 300 & echo $! >a; echo $$ >sh; wait",
			ended:   "a sh", spared: "web.pid"},
		"the children of the process": {action: start, procName: "parent.sh",
			command: "setsid ./parent.sh & echo $! >web.pid; sleep 300 & echo $! >a; echo $$ >sh; wait",
			ended:   "a sh", spared: "web.pid child"},
		"the command is the process": {action: start, front: true, procName: "web",
			command: "echo $$ >web.pid; exec ./web 300", spared: "web.pid"},
		"the shell of the process is named like it": {action: start, front: true, procName: "sh",
			command: "echo $$ >sh; sleep 300 & echo $! >a; wait", ended: "a sh"},
		"a subshell is named like the process": {action: start, front: true, procName: "sh",
			command: "( sleep 300 & echo $! >a; wait; touch late ) & echo $! >sub; echo $$ >sh; wait",
			ended:   "a sub sh"},
		"a process that its pid file names": {action: start,
			command: "./web 300 & echo $! >web.pid; ./web 300 & echo $! >a; echo $$ >sh; wait",
			ended:   "a sh", spared: "web.pid"},
		"a reload that is named like the process": {action: reload, procName: "web",
			command: "echo $$ >sh; exec ./web 300", ended: "sh"},
		"what has lost its parent": {action: start, procName: "web",
			command: "( setsid sh -c 'sleep 300 & echo $! >a; wait' & ); echo $$ >sh; sleep 300; touch late", ended: "a sh"},
		"a stop in the background": {action: stop, procName: "web",
			command: "./web 300 & echo $! >a", ended: "a"},
	} {
		for way, change := range bothWays {
			t.Run(name+"/"+way, func(t *testing.T) {
				f := newHost(t, change)
				f.program("web")
				f.script("parent.sh", "sleep 300 & echo $! >child; wait")
				r := supervise.Run{Key: f.key("a"), Spec: f.spec(c.procName), Op: gozzard.NewOpID(), Action: c.action,
					Command: c.command, Timeout: time.Minute, Keeps: c.action != stop}
				if c.procName == "" {
					r.Spec.Identity.PIDPath = f.dir + "/web.pid"
				}
				if c.front {
					r.Front = time.Minute
				}
				names := strings.Fields(c.ended + " " + c.spared)
				done := f.begin(r, names...)
				if strings.Contains(c.spared, "web.pid") && c.procName != "parent.sh" {
					f.eventually("the process has its name", func() bool {
						return strings.HasPrefix(cmdline(t, readPID(t, f.dir+"/web.pid")), "./web")
					})
				}

				// Look as the next run of the agent does.
				next := f.open()
				left := next.EndCommands(nil)
				for _, n := range strings.Fields(c.ended) {
					if f.lives(n) {
						t.Errorf("%s lives", n)
					}
				}
				for _, n := range strings.Fields(c.spared) {
					if !f.lives(n) {
						t.Errorf("%s was ended", n)
					}
				}
				if want := min(1, len(c.ended)); len(left) != want {
					t.Fatalf("got %+v", left)
				}
				if len(left) > 0 && (left[0].Err != nil || left[0].Op != r.Op || left[0].Key != r.Key || left[0].Ended == 0) {
					t.Errorf("got %+v", left[0])
				}
				if c.ended != "" {
					<-done
				}
				if _, err := os.Stat(f.dir + "/late"); err == nil {
					t.Error("the command went on")
				}

				// A second look finds nothing.
				if left := f.open().EndCommands(nil); len(left) > 0 {
					t.Errorf("second look: %+v", left)
				}
			})
		}
	}
}

func cmdline(t *testing.T, pid int) string {
	t.Helper()
	args, err := proc.Args(pid, 4096)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(args, " ")
}

// An agent that was killed right after the start of a command knows the run, but not the shell.
func TestEndCommandsWithoutShell(t *testing.T) {
	for way, change := range bothWays {
		t.Run(way, func(t *testing.T) {
			f := newHost(t, change)
			f.program("web")
			done := f.begin(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionStart, Keeps: true,
				Command: "setsid ./web 300 & echo $! >web.pid; sleep 300 & echo $! >a; echo $$ >sh; wait",
				Timeout: time.Minute}, "web.pid", "a", "sh")
			f.eventually("the process has its name", func() bool {
				return strings.HasPrefix(cmdline(t, readPID(t, f.dir+"/web.pid")), "./web")
			})
			if err := host.ForgetShells(f.state); err != nil {
				t.Fatal(err)
			}
			left := f.open().EndCommands(nil)
			if len(left) != 1 || left[0].Err != nil || f.lives("a") || f.lives("sh") || !f.lives("web.pid") {
				t.Fatalf("%+v, child %v, shell %v, process %v", left, f.lives("a"), f.lives("sh"), f.lives("web.pid"))
			}
			<-done
		})
	}
}

// A process of another account that carries the mark of a run is not touched.
func TestEndCommandsIgnoresForeignMarks(t *testing.T) {
	needsRoot(t)
	f := newHost(t, noCgroups)
	done := f.begin(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionReload, Keeps: true,
		Command: "echo $GOZZARD_RUN >run; echo $$ >sh; sleep 300", Timeout: time.Minute}, "sh")
	run, err := os.ReadFile(f.dir + "/run")
	if err != nil {
		t.Fatal(err)
	}
	foreign := exec.Command("/bin/sleep", "300")
	foreign.Env = []string{"GOZZARD_AGENT=" + f.opt.Instance, "GOZZARD_NAMESPACE=" + f.keys[0].Namespace,
		"GOZZARD_NAME=" + f.keys[0].Name, "GOZZARD_RUN=" + strings.TrimSpace(string(run))}
	foreign.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Process.Kill(); _ = foreign.Wait() }()

	if left := f.open().EndCommands(nil); len(left) != 1 || f.lives("sh") {
		t.Errorf("%+v", left)
	}
	if !alive(foreign.Process.Pid) {
		t.Error("a foreign process was ended")
	}
	<-done
}

// The caller spares a process, whatever its name is now.
func TestEndCommandsSparesWhatTheCallerHolds(t *testing.T) {
	for way, change := range bothWays {
		t.Run(way, func(t *testing.T) {
			f := newHost(t, change)
			done := f.begin(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionStart, Keeps: true,
				Command: "sleep 300 & echo $! >held; sleep 300 & echo $! >other; echo $$ >sh; wait", Timeout: time.Minute},
				"held", "other", "sh")
			held := readPID(t, f.dir+"/held")
			f.open().EndCommands(func(_ gozzard.Key, p supervise.Proc) bool { return p.PID == held })
			<-done
			if !f.lives("held") || f.lives("other") || f.lives("sh") {
				t.Errorf("held %v, other %v, shell %v", f.lives("held"), f.lives("other"), f.lives("sh"))
			}
		})
	}
}

// What ended, was handed over, or belongs to a running agent is not on record.
func TestEndCommandsTouchesNothingElse(t *testing.T) {
	for way, change := range bothWays {
		t.Run(way, func(t *testing.T) {
			f := newHost(t, change)
			f.program("web")
			k := f.key("a")

			f.run(k, f.spec("web"), true, "setsid ./web 300 & echo $! >daemon")
			f.kills(readPID(t, f.dir+"/daemon"))
			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: f.spec("web"), Action: gozzard.ActionStart, Keeps: true,
				Command: "echo $$ >front; exec ./web 300", Timeout: time.Minute, Front: time.Millisecond})
			if err != nil || !res.Front {
				t.Fatalf("%+v, %v", res, err)
			}
			f.kills(readPID(t, f.dir+"/front"))
			f.begin(supervise.Run{Key: k, Spec: f.spec("web"), Action: gozzard.ActionReload, Keeps: true,
				Command: "echo $$ >reload; sleep 300", Timeout: time.Minute}, "reload")

			if left := f.EndCommands(nil); len(left) > 0 {
				t.Errorf("own command: %+v", left)
			}
			if !f.lives("reload") {
				t.Error("a command of this run was ended")
			}
			left := f.open().EndCommands(nil)
			if len(left) != 1 || left[0].Action != gozzard.ActionReload || !f.lives("daemon") || !f.lives("front") {
				t.Errorf("%+v, daemon %v, front %v", left, f.lives("daemon"), f.lives("front"))
			}
		})
	}
}

// A damaged ledger, or one of another boot, ends nothing and prevents nothing.
func TestLedgerIgnoresWhatItDoesNotKnow(t *testing.T) {
	f := newHost(t)
	path := filepath.Join(f.state, "commands")
	f.begin(supervise.Run{Key: f.key("a"), Spec: f.spec("web"), Action: gozzard.ActionReload, Keeps: true,
		Command: "echo $$ >sh; sleep 300", Timeout: time.Minute}, "sh")
	good, err := os.ReadFile(path)
	if err != nil || len(good) == 0 {
		t.Fatalf("%d bytes, %v", len(good), err)
	}

	look := func(what string, b []byte, change func(*host.Options)) {
		t.Helper()
		o := f.opt
		o.StateDir = t.TempDir()
		if change != nil {
			change(&o)
		}
		if err := os.WriteFile(filepath.Join(o.StateDir, "commands"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := host.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if left := h.EndCommands(nil); len(left) > 0 || !f.lives("sh") {
			t.Fatalf("%s: %+v", what, left)
		}
	}

	look("another boot", pad(good), func(o *host.Options) { o.BootID = "another" })
	look("random", bytes.Repeat([]byte("gzc1\xff\xff\xff\xff"), 4096), nil)
	look("short", good[:8], nil)
	for i := range good {
		bad := pad(good)
		bad[i] ^= 1 << (i % 8)
		if _, ok := host.DecodeSlot(bad); ok {
			t.Fatalf("bit %d of byte %d is not missed", i%8, i)
		}
	}
	look("damaged", append(pad(nil), bytes.Replace(pad(good), []byte("boot_id"), []byte("boot_ID"), 1)...), nil)
}

// pad fills a slot.
func pad(b []byte) []byte { return append(bytes.Clone(b), make([]byte, host.SlotBytes-len(b))...) }

func FuzzDecodeSlot(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte("gzc1\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	z.Fuzz(func(t *testing.T, b []byte) {
		if group, ok := host.DecodeSlot(b); ok && group != "" && !strings.Contains(group, "/gozzard/") {
			t.Errorf("group %q", group)
		}
	})
}

// A ledger that cannot be written does not keep a command from running, and is logged once.
func TestLedgerThatCannotBeWritten(t *testing.T) {
	var log bytes.Buffer
	f := newHost(t, func(o *host.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		if err := os.Mkdir(filepath.Join(o.StateDir, "commands"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	for range 3 {
		if res := f.run(f.key("a"), f.spec("x"), false, "echo works"); res.Output != "works" {
			t.Errorf("%+v", res)
		}
	}
	if n := strings.Count(log.String(), "cannot record running commands"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

func BenchmarkLedger(b *testing.B) {
	end := host.LedgerCycle(b.TempDir(), discard())
	for b.Loop() {
		end()
	}
}
