//go:build linux

// Package child runs the programs of a benchmark and reads what they cost.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a program that the run starts and stops.
type Process struct {
	Name string
	Log  string        // path of its stderr
	End  chan struct{} // closed when it has ended

	cmd *exec.Cmd
}

// Start runs a program. Its stderr goes to a file in dir. The program ends when this one ends.
func Start(dir, name string, cmd *exec.Cmd) (*Process, error) {
	f, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("cannot make a log: %w", err)
	}

	defer f.Close()
	cmd.Stderr = f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}

	p := &Process{Name: name, cmd: cmd, Log: f.Name(), End: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.End)
	}()

	return p, nil
}

// StartSelf starts this program once more as one of its own parts. The flag says which part, and the argument behind it is
// what the part does, in JSON.
func StartSelf(dir, name, flag string, order any) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, fmt.Errorf("cannot write what %s does: %w", name, err)
	}
	return Start(dir, name, exec.Command(self, flag, string(text)))
}

// yielding is the nice value of programs that only make load.
const yielding = 10

// Yield lets the other programs of the run go first on the processor. Simulated hosts do this: they share the machine with
// the server that is measured only because there is no other one, and many of them would take its time away.
func Yield() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("cannot find the threads of this program: %w", err)
	}
	for _, thread := range threads { // later ones take the value of these
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, tid, yielding); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("cannot lower the priority of this program: %w", err)
		}
	}
	return nil
}

// Build builds a program of this module into dir without cgo and without symbols, as a release does, and returns its path.
func Build(ctx context.Context, dir, name, folder string) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the module: %w", err)
	}

	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, folder)
	cmd.Dir, cmd.Env = filepath.Dir(strings.TrimSpace(string(mod))), append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", name, err, text)
	}
	return path, nil
}

// Stop sends SIGTERM, and SIGKILL if the program does not end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended already
	select {
	case <-p.End:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.End
	}
}

// Kill ends the program with SIGKILL and waits.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails when it has ended already
	<-p.End
}

// Signal sends a signal to the program.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Alive returns an error with the program's last output if it has ended.
func (p *Process) Alive() error {
	select {
	case <-p.End:
	default:
		return nil
	}
	return fmt.Errorf("%s ended: %s\n%s", p.Name, p.cmd.ProcessState, p.Tail())
}

// Tail is the end of the program's log.
func (p *Process) Tail() []byte {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return fmt.Append(nil, "no log: ", err)
	}
	return text[max(0, len(text)-2000):]
}

// CPU is the CPU time of the program, user and system. The kernel counts it in steps of 10 ms.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of %s: %w", p.Name, err)
	}

	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("cannot read the CPU time of %s: %q", p.Name, stat)
	}

	var ticks int64
	for _, field := range f[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read the CPU time of %s: %w", p.Name, err)
		}
		ticks += n
	}

	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// RSS is the resident memory of the program in bytes.
func (p *Process) RSS() (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of %s: %w", p.Name, err)
	}

	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read the memory of %s: %w", p.Name, err)
			}
			return kb << 10, nil
		}
	}

	return 0, fmt.Errorf("cannot read the memory of %s: no VmRSS", p.Name)
}

// Until polls cond until it is true, a needed program has ended, or the limit is over.
func Until(ctx context.Context, limit time.Duration, words string, cond func() (bool, error), needs ...*Process) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	for {
		ok, err := cond()
		if ok {
			return nil
		}
		for _, p := range needs {
			if err := p.Alive(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("gave up waiting for %s: %w", words, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Spent measures the CPU time of a program while f runs.
func Spent(p *Process, f func() error) (cpu, wall time.Duration, err error) {
	before, err := p.CPU()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	wall = time.Since(began)
	after, err := p.CPU()
	return after - before, wall, err
}
