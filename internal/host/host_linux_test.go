package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestMain(m *testing.M) {
	host.ServeGuard()
	goleak.VerifyTestMain(m)
}

var proc = procfs.New("/proc")

// fixture is a host with a folder that users other than root may read.
type fixture struct {
	*host.Host
	t     *testing.T
	dir   string
	state string
	opt   host.Options
	keys  []gozzard.Key
}

func newHost(t *testing.T, change ...func(*host.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), state: t.TempDir()}
	for d := f.dir; d != "/tmp" && d != "/" && d != "."; d = filepath.Dir(d) { // TempDir is for its owner only
		if err := os.Chmod(d, 0o755); err != nil {
			break
		}
	}

	f.opt = host.Options{Instance: "test-" + strconv.Itoa(os.Getpid()) + "-" + gozzard.NewOpID().String()[:8],
		StateDir: f.state, Log: testLog(t)}
	for _, c := range change {
		c(&f.opt)
	}

	f.Host = f.open()
	t.Cleanup(func() {
		h := f.open() // the test may have closed its own
		for _, k := range f.keys {
			if err := clean(h, k); err != nil {
				t.Errorf("clear: %v", err)
			}
		}

		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if root, _ := proc.Cgroup2Mount(); root != "" {
			if left, _ := filepath.Glob(filepath.Join(root, "gozzard", f.opt.Instance)); len(left) > 0 {
				t.Errorf("cgroup folder %s is left", left[0])
			}
		}
	})

	return f
}

func (f *fixture) open() *host.Host {
	f.t.Helper()
	h, err := host.New(f.opt)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := h.Close(); err != nil {
			f.t.Errorf("close: %v", err)
		}
	})
	return h
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func noCgroups(o *host.Options) { o.CgroupRoot = "/proc" }

// program makes a copy of sleep under another name.
func (f *fixture) program(name string) string {
	f.t.Helper()
	src, err := os.Open("/bin/sleep")
	if err != nil {
		f.t.Skip(err)
	}

	defer src.Close()
	p := filepath.Join(f.dir, name)
	dst, err := os.OpenFile(p, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		f.t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		f.t.Fatal(err)
	}

	return p
}

func (f *fixture) key(name string) gozzard.Key {
	k := gozzard.Key{Namespace: "测试", Name: name}
	f.keys = append(f.keys, k)
	return k
}

func (f *fixture) spec(procName string) *gozzard.Spec {
	return &gozzard.Spec{Identity: gozzard.Identity{ProcName: procName, SetupPath: f.dir}}
}

func (f *fixture) run(k gozzard.Key, s *gozzard.Spec, keeps bool, command string) supervise.Result {
	f.t.Helper()
	res, err := f.Run(f.t.Context(), supervise.Run{Key: k, Spec: s, Op: gozzard.NewOpID(), Command: command,
		Timeout: 20 * time.Second, Keeps: keeps})
	if err != nil {
		f.t.Fatalf("%s: %v", command, err)
	}
	return res
}

// daemon starts a program that forks twice and makes a new session, and finds it.
func (f *fixture) daemon(k gozzard.Key, s *gozzard.Spec, command string) supervise.Found {
	f.t.Helper()

	if res := f.run(k, s, true, "setsid sh -c '"+command+" & echo $! >"+f.dir+"/daemon.pid'"); res.ExitCode != 0 {
		f.t.Fatalf("%+v", res)
	}

	f.kills(readPID(f.t, f.dir+"/daemon.pid"))
	var found supervise.Found
	f.eventually("the daemon is found", func() bool { // the shell's child has another name until its exec
		var err error
		if found, err = look(f.Host, k, s); err != nil {
			f.t.Fatal(err)
		}
		return !found.Proc.IsZero()
	})

	return found
}

// byHand starts a program as a person would, and writes its pid file.
func (f *fixture) byHand(program string) supervise.Proc {
	f.t.Helper()
	cmd := exec.Command(program, "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	pid := cmd.Process.Pid
	f.eventually("it has executed its program", func() bool {
		st, err := proc.Stat(pid)
		return err == nil && st.Comm() == filepath.Base(program)
	})
	if err := os.WriteFile(f.dir+"/daemon.pid", []byte(strconv.Itoa(pid)), 0o644); err != nil {
		f.t.Fatal(err)
	}

	st, err := proc.Stat(pid)
	if err != nil {
		f.t.Fatal(err)
	}
	return supervise.Proc{BootID: f.Facts().BootID, PID: pid, Start: st.Start}
}

func (f *fixture) kills(pid int) {
	st, err := proc.Stat(pid)
	if err != nil {
		return
	}
	f.t.Cleanup(func() {
		if now, err := proc.Stat(pid); err == nil && now.Start == st.Start {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("not within a minute: %s", what)
		}
	}
}

func (f *fixture) needsCgroups() {
	f.t.Helper()
	for _, d := range f.Degraded() {
		if strings.Contains(d, "cgroup") {
			f.t.Skip(d)
		}
	}
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	if _, err := user.Lookup("nobody"); err != nil {
		t.Skip(err)
	}
}

// asNobody runs the calling test once more in a process of the account nobody.
func asNobody(t *testing.T) {
	t.Helper()
	needsRoot(t)
	// other accounts may not enter the folder of the test program
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp", "HOME=/")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func alive(pid int) bool {
	st, err := proc.Stat(pid)
	return err == nil && !st.Dead()
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestFacts(t *testing.T) {
	f := newHost(t)
	got := f.Facts()
	if got.Hostname == "" || got.OS != "linux" || got.CPUs < 1 || got.MemBytes < 1<<20 || len(got.BootID) < 8 {
		t.Errorf("%+v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	good := host.Options{Instance: "a", StateDir: t.TempDir(), Log: testLog(t)}
	for name, change := range map[string]func(*host.Options){
		"instance that leaves its folder": func(o *host.Options) { o.Instance = "../x" },
		"no instance":                     func(o *host.Options) { o.Instance = "" },
		"relative state folder":           func(o *host.Options) { o.StateDir = "x" },
		"no logger":                       func(o *host.Options) { o.Log = nil },
		"no proc":                         func(o *host.Options) { o.ProcRoot = "/nonexistent" },
	} {
		o := good
		change(&o)
		if h, err := host.New(o); err == nil {
			_ = h.Close()
			t.Errorf("%s: taken", name)
		}
	}
}

func TestRunReportsHowACommandEnded(t *testing.T) {
	f := newHost(t)
	k, s := f.key("命令"), f.spec("x")
	for _, c := range []struct {
		command, signal, output string
		code                    int
	}{
		{"echo 你好; echo err >&2", "", "你好\nerr", 0},
		{"echo bad; exit 3", "", "bad", 3},
		{"kill -9 $$", "SIGKILL", "", -1},
		{"kill -TERM $$", "SIGTERM", "", -1},
		{"pwd", "", f.dir, 0},
		{"echo $GOZZARD_NAMESPACE/$GOZZARD_NAME", "", "测试/命令", 0},
		{"head -c 3 /dev/stdin", "", "", 0},
		{"", "", "", 0},
	} {
		res := f.run(k, s, false, c.command)
		if res.ExitCode != c.code || res.Signal != c.signal || res.Output != c.output || res.TimedOut {
			t.Errorf("%s: %+v", c.command, res)
		}
	}

	for command, text := range map[string]string{
		"./nothing-here": "not found",
		"touch f; ./f":   "ermission denied",
	} {
		if res := f.run(k, s, false, command); res.ExitCode < 126 || !strings.Contains(res.Output, text) {
			t.Errorf("%s: %+v", command, res)
		}
	}

	if left, _ := os.ReadDir(filepath.Join(f.state, "output")); len(left) != 0 {
		t.Errorf("output files are left: %v", left)
	}
}

func TestRunKeepsTheEndOfMuchOutput(t *testing.T) {
	f := newHost(t)
	res := f.run(f.key("a"), f.spec("x"), false,
		"i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1")
	lines := strings.Split(res.Output, "\n")
	if res.ExitCode != 1 || len(lines) != 20 || lines[19] != "line 2999" {
		t.Errorf("%+v", res)
	}
}

func TestRunHasAFixedEnvironmentAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_AGENT", "x")
	t.Setenv("TZ", "Asia/Shanghai")
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}

	defer leak.Close()
	f := newHost(t)
	res := f.run(f.key("a"), f.spec("x"), false,
		"env | cut -d= -f1 | sort | tr '\\n' ' '; ls /proc/self/fd | tr '\\n' ' '; ps -o sid= -p $$ 2>/dev/null | grep -c $$ || true")
	// 3 is ls itself
	const want = "GOZZARD_AGENT GOZZARD_NAME GOZZARD_NAMESPACE GOZZARD_OP_ID GOZZARD_RUN HOME LANG LOGNAME PATH PWD SHELL TZ USER 0 1 2 3 1"
	if got := strings.Replace(res.Output, "SHELL SHLVL ", "SHELL ", 1); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestRunRefuses(t *testing.T) {
	f := newHost(t)
	file := filepath.Join(f.dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ dir, user, command, want string }{
		{f.dir + "/none", "", ":", "setup_path " + f.dir + "/none: no such directory"},
		{file, "", ":", "setup_path " + file + ": not a directory"},
		{"relative", "", ":", `setup_path "relative": not a clean absolute path`},
		{f.dir + "/../x", "", ":", "not a clean absolute path"},
		{f.dir, "no-such-user-here", ":", "cannot run as no-such-user-here: no such user on this host"},
		{f.dir, "", "a\x00b", "NUL"},
	} {
		s := f.spec("x")
		s.Identity.SetupPath, s.Identity.User = c.dir, c.user
		_, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Command: c.command, Timeout: time.Minute})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestRunAsAnotherUserNeedsRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	f := newHost(t)
	s := f.spec("x")
	s.Identity.User = "root"
	_, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Command: ":", Timeout: time.Minute})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot run as root: the agent runs as ") {
		t.Error(err)
	}
}

func TestRunAsAnotherUser(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	k, s := f.key("a"), f.spec("服务")
	s.Identity.User = "nobody"
	res := f.run(k, s, false, "id -un; id -Gn; echo $HOME $USER; echo again >>/dev/stdout; cat /etc/shadow")
	want := "nobody\nnogroup\n/nonexistent nobody\nagain\n"
	if res.ExitCode == 0 || !strings.HasPrefix(res.Output, want) || !strings.Contains(res.Output, "ermission denied") {
		t.Errorf("%+v", res)
	}

	closed := filepath.Join(f.dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}

	s.Identity.SetupPath = closed
	_, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: ":", Timeout: time.Minute})
	if err == nil || err.Error() != "setup_path "+closed+": user nobody may not enter it" {
		t.Error(err)
	}

	s.Identity.SetupPath = f.dir
	found := f.daemon(k, &gozzard.Spec{Identity: gozzard.Identity{ProcName: "服务", SetupPath: f.dir, User: "root"}},
		f.program("服务")+" 60")
	if found, err = look(f.Host, k, s); err != nil || !found.Proc.IsZero() {
		t.Errorf("root's process was taken for nobody's: %+v %v", found, err)
	}
}

func TestTimeoutLeavesNothing(t *testing.T) {
	for name, change := range map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t, change)
			k, s := f.key("慢"), f.spec("x")
			// With cgroups a grandchild in a new session is found too. Without cgroups it must at least be in the tree.
			command := "sleep 300 & echo $! >p1; setsid sleep 301 & echo $! >p2; (sh -c 'sleep 302 & echo $! >p3; wait') & echo begun; sleep 303"

			if name == "cgroups" {
				f.needsCgroups()
				command = "(setsid sh -c 'sleep 304 & echo $! >p4') & " + command
			}

			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: command, Timeout: time.Second,
				Keeps: true})
			if err != nil || !res.TimedOut || res.ExitCode != -1 || !strings.HasPrefix(res.Output, "begun") {
				t.Fatalf("%+v %v", res, err)
			}

			files, _ := filepath.Glob(filepath.Join(f.dir, "p?"))
			if len(files) < 3 {
				t.Fatalf("only %v were written", files)
			}

			for _, p := range files {
				if pid := readPID(t, p); alive(pid) {
					f.kills(pid)
					t.Errorf("%s: pid %d still runs", p, pid)
				}
			}
		})
	}
}

func TestTimeoutOfALaterCommandSparesTheProcess(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	found := f.daemon(k, s, f.program("svc")+" 300")
	res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: "sleep 300",
		Timeout: 50 * time.Millisecond, Keeps: true})
	if err != nil || !res.TimedOut {
		t.Fatalf("%+v %v", res, err)
	}
	if !f.Alive(found.Proc) {
		t.Error("the process was killed with the command")
	}
}

func TestLeftoversAreClearedUnlessKept(t *testing.T) {
	for name, change := range map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t, change)
			k, s := f.key("a"), f.spec("x")
			f.run(k, s, false, "sleep 300 & echo $! >once")
			f.run(k, s, true, "sleep 300 & echo $! >kept")

			if pid := readPID(t, f.dir+"/once"); alive(pid) {
				f.kills(pid)
				t.Error("leftover of a command that keeps nothing still runs")
			}

			pid := readPID(t, f.dir+"/kept")
			f.kills(pid)

			if !alive(pid) {
				t.Error("a process that was to be kept has ended")
			}
		})
	}
}

func TestDaemonWithOurOutputNeitherDelaysNorDies(t *testing.T) {
	f := newHost(t)
	k, s := f.key("话多"), f.spec("talker")
	script := filepath.Join(f.dir, "talker")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile :; do echo still here; echo . >>"+f.dir+
		"/beats; sleep 0.02; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}

	s.Identity.PIDPath = f.dir + "/daemon.pid"
	found := f.daemon(k, s, script) // returns although the daemon holds our output

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	beats := func() int64 {
		fi, err := os.Stat(f.dir + "/beats")
		if err != nil {
			return 0
		}
		return fi.Size()
	}

	before := beats()
	f.eventually("the daemon writes on after Close", func() bool { return beats() > before+5 })

	again := f.open()
	same, err := look(again, k, s)
	if err != nil || same.Proc != found.Proc || !same.StartedAt.Equal(found.StartedAt) {
		t.Errorf("found again as %+v, was %+v (%v)", same, found, err)
	}
	if err := again.Signal(found.Proc, supervise.SignalKill); err != nil {
		t.Error(err)
	}
}

func TestEndOfContextLeavesTheCommandAlone(t *testing.T) {
	f := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	k := f.key("a")
	done := make(chan error, 1)
	go func() {
		_, err := f.Run(ctx, supervise.Run{Key: k, Spec: f.spec("x"), Command: "echo >begun; sleep 0.3; echo >ended",
			Timeout: time.Minute})
		done <- err
	}()

	f.eventually("the command has begun", func() bool { _, err := os.Stat(f.dir + "/begun"); return err == nil })
	cancel()

	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	f.eventually("the command has ended", func() bool { _, err := os.Stat(f.dir + "/ended"); return err == nil })
}

func TestClearKillsTheGroupOnly(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	other := f.key("b")
	path := f.program("svc")
	mine := f.daemon(k, s, path+" 300")
	theirs := f.daemon(other, s, path+" 300")

	if err := clean(f.Host, k); err != nil {
		t.Fatal(err)
	}
	if f.Alive(mine.Proc) || !f.Alive(theirs.Proc) {
		t.Errorf("mine alive %v, the other %v", f.Alive(mine.Proc), f.Alive(theirs.Proc))
	}
	if err := clean(f.Host, k); err != nil {
		t.Errorf("clearing nothing: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	f := newHost(t)
	const n = 24
	errs := make(chan error, n)
	for i := range n {
		k := f.key(fmt.Sprint("p", i%3))
		if i%2 == 0 { // commands that keep a process share its log and run one after the other
			k = f.key(fmt.Sprint("k", i))
		}
		go func() {
			want := fmt.Sprint(i)
			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: f.spec("x"),
				Command: "echo " + want + "; exit " + want, Timeout: time.Minute, Keeps: i%2 == 0})
			if err == nil && (res.ExitCode != i || res.Output != want) {
				err = fmt.Errorf("%d: %+v", i, res)
			}
			errs <- err
		}()
	}

	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
