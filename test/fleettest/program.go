//go:build linux

package fleettest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is one gozzard process with its arguments, so that a test can kill it and start it again.
type Program struct {
	t    testing.TB
	args []string
	env  []string
	log  string
	wrap []string
	attr syscall.SysProcAttr // its account and cgroup

	mu  sync.Mutex
	cmd *exec.Cmd
	end chan struct{}
}

// Start runs gozzard with arguments. Its output goes to a file that is shown when the test fails. It is killed at the
// end of the test.
func Start(t testing.TB, name string, env []string, args ...string) *Program {
	t.Helper()
	return start(t, name, Binary(t), nil, env, args...)
}

// StartFile is Start with another file of the program, such as one that updates replace.
func StartFile(t testing.TB, name, program string, args ...string) *Program {
	t.Helper()
	return start(t, name, program, nil, nil, args...)
}

// StartThrough is Start through a command that execs the program.
func StartThrough(t testing.TB, name string, wrap []string, args ...string) *Program {
	t.Helper()
	return start(t, name, Binary(t), wrap, nil, args...)
}

// start starts a program through wrap, a command that execs it.
func start(t testing.TB, name, program string, wrap, env []string, args ...string) *Program {
	t.Helper()
	p := &Program{t: t, args: append([]string{program}, args...), env: env, wrap: wrap}
	p.first(name)
	return p
}

// first starts a program for the first time.
func (p *Program) first(name string) {
	p.t.Helper()
	p.log = filepath.Join(p.t.TempDir(), name+".log")
	p.env = append(p.env, RecordEnv(p.t, p.args[1:], p.env)...)
	p.Again()
	p.t.Cleanup(func() {
		p.Kill(syscall.SIGKILL)
		b, _ := os.ReadFile(p.log)
		if i := bytes.Index(b, []byte("WARNING: DATA RACE")); i >= 0 { // its exit code says so, but most are killed
			p.t.Errorf("%s has a data race:\n%s", name, b[i:min(len(b), i+4000)])
		}
		if p.t.Failed() {
			p.t.Logf("--- output of %s %v\n%s", name, p.args[1:], tail(b, 4000))
		}
	})
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// Again starts the process again with the same arguments.
func (p *Program) Again() {
	p.t.Helper()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}

	defer out.Close()
	args := append(slices.Clone(p.wrap), p.args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), p.env...)
	attr := p.attr
	attr.Setsid = true
	cmd.SysProcAttr = &attr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}

	end := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.end = cmd, end
	p.mu.Unlock()

	go func() {
		_ = cmd.Wait()
		close(end)
	}()
}

// Through makes every later Again start the program through another one that execs it, such as prlimit.
func (p *Program) Through(wrap ...string) { p.wrap = wrap }

// Flag is the value of a flag of the program, "" if it is not set.
func (p *Program) Flag(name string) string {
	if i := slices.Index(p.args, name); i >= 0 && i+1 < len(p.args) {
		return p.args[i+1]
	}
	return ""
}

// Kill sends a signal and waits until the process has ended. It only sends SIGSTOP and SIGCONT.
func (p *Program) Kill(sig syscall.Signal) {
	p.mu.Lock()
	cmd, end := p.cmd, p.end
	p.mu.Unlock()
	_ = cmd.Process.Signal(sig)

	if sig == syscall.SIGSTOP || sig == syscall.SIGCONT {
		return
	}

	select {
	case <-end:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-end
	}
}

// Done is closed when the current process has ended.
func (p *Program) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// ExitCode is that of the process that ended last.
func (p *Program) ExitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.ProcessState.ExitCode()
}

// Signal is the signal that ended the last process, 0 if none did.
func (p *Program) Signal() syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}

// PID is that of the current process.
func (p *Program) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Output is what the program has printed so far.
func (p *Program) Output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

// CPU is the CPU time of the current process.
func (p *Program) CPU() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		p.t.Fatal(err)
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	u, _ := strconv.ParseInt(string(f[11]), 10, 64)
	s, _ := strconv.ParseInt(string(f[12]), 10, 64)
	return time.Duration(u+s) * 10 * time.Millisecond
}

// given are the ports that FreePort has returned. A port is never returned twice, even if no program listens on it yet.
var given sync.Map

// FreePort finds an unused loopback port, a different one each time.
func FreePort(t testing.TB) int {
	t.Helper()

	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, known := given.LoadOrStore(port, true); !known {
			return port
		}
	}
}

// Until polls a condition. It fails the test with words if the condition does not become true in time.
func Until(t testing.TB, limit time.Duration, words func() string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(end) {
			t.Fatalf("after %s: %s", limit, words())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Dev is a running `gozzard dev`.
type Dev struct {
	*Program
	*API
	Data string
}

// StartDev runs `gozzard dev` in a new data folder and waits until it is ready.
func StartDev(t testing.TB, hosts int, extra ...string) *Dev {
	t.Helper()
	data := t.TempDir()
	if err := os.Chmod(data, 0o755); err != nil { // commands that run as other accounts have their folders in it
		t.Fatal(err)
	}
	args := append([]string{"dev", "--data", data, "--listen", "127.0.0.1:" + strconv.Itoa(FreePort(t)), "--hosts",
		strconv.Itoa(hosts)}, extra...)
	d := &Dev{Data: data, API: &API{t: t}}
	d.Program = Start(t, "dev", nil, args...)
	d.await()
	return d
}

// Restart starts dev again after a kill.
func (d *Dev) Restart() {
	d.Program.t.Helper()
	_ = os.Remove(filepath.Join(d.Data, "dev.json"))
	d.Again()
	d.await()
}

func (d *Dev) await() {
	d.Program.t.Helper()
	awaitCredentials(d.Program, d.API, filepath.Join(d.Data, "dev.json"))
}

func awaitCredentials(p *Program, api *API, path string) {
	p.t.Helper()

	Until(p.t, time.Minute, func() string { return "no " + path }, func() bool {
		select {
		case <-p.Done():
			p.t.Fatalf("the program ended: %s", p.Output())
		default:
		}

		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if err != nil {
			p.t.Fatal(err)
		}

		return json.Unmarshal(b, &api.Cred) == nil
	})
}

// Descriptors counts the open files of the current process.
func (p *Program) Descriptors() int {
	dirs, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(dirs)
}

// RSS is the resident memory of the current process in bytes.
func (p *Program) RSS() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		p.t.Fatal(err)
	}
	pages, _ := strconv.ParseInt(string(bytes.Fields(b)[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
