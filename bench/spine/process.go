//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that the run starts and stops.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string // path of its stderr
	end  chan struct{}
}

// start runs a program. Its stderr goes to a file in dir. The program ends when this one ends.
func start(dir, name string, cmd *exec.Cmd) (*process, error) {
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

	p := &process{name: name, cmd: cmd, log: f.Name(), end: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.end)
	}()

	return p, nil
}

// stop sends SIGTERM, and SIGKILL if the program does not end.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended already
	select {
	case <-p.end:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.end
	}
}

// alive returns an error with the program's last output if it has ended.
func (p *process) alive() error {
	select {
	case <-p.end:
	default:
		return nil
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended: %s (no log: %w)", p.name, p.cmd.ProcessState, err)
	}
	return fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, text[max(0, len(text)-2000):])
}

// cpu is the CPU time of the program, user and system. The kernel counts it in steps of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of %s: %w", p.name, err)
	}

	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("cannot read the CPU time of %s: %q", p.name, stat)
	}

	var ticks int64
	for _, field := range f[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read the CPU time of %s: %w", p.name, err)
		}
		ticks += n
	}

	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// rss is the resident memory of the program in bytes.
func (p *process) rss() (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of %s: %w", p.name, err)
	}

	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read the memory of %s: %w", p.name, err)
			}
			return kb << 10, nil
		}
	}

	return 0, fmt.Errorf("cannot read the memory of %s: no VmRSS", p.name)
}

// until polls cond until it is true, a needed program has ended, or the limit is over.
func until(ctx context.Context, limit time.Duration, words string, cond func() (bool, error), needs ...*process) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	for {
		ok, err := cond()
		if ok {
			return nil
		}
		for _, p := range needs {
			if err := p.alive(); err != nil {
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

// spent measures the CPU time of a program while f runs.
func spent(p *process, f func() error) (cpu, wall time.Duration, err error) {
	before, err := p.cpu()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	wall = time.Since(began)
	after, err := p.cpu()
	return after - before, wall, err
}
