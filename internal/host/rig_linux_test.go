package host_test

import (
	"bytes"
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
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
