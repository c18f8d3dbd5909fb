//go:build !linux && !windows

package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// lookEvery is how often watched processes are looked at: nothing here tells of the end of processes that are not
// children.
const lookEvery = 500 * time.Millisecond

// Host is this machine, reduced: commands run as the agent's own user, processes are found by pid file and verified
// by name and start time, and usage is not measured.
type Host struct {
	log    *slog.Logger
	dir    string
	self   string
	bootID string

	closeOnce sync.Once
	closing   chan struct{}
	looked    chan struct{}

	mu      sync.Mutex
	next    uint64
	watches map[uint64]*watch
}

type watch struct {
	mu     sync.Mutex // held during the call, so that a stop waits for it
	proc   supervise.Proc
	exited func(supervise.Exit)
	ended  bool
}

// info is what the system says of a process.
type info struct {
	start uint64
	name  string
}

var _ supervise.Host = (*Host)(nil)

// New gets to know the machine.
func New(o Options) (*Host, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	h := &Host{
		log: o.Log, dir: filepath.Join(o.StateDir, "output"), bootID: o.BootID,
		closing: make(chan struct{}), looked: make(chan struct{}), watches: map[uint64]*watch{},
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	h.self = u.Username
	if h.bootID == "" {
		if h.bootID, err = bootID(); err != nil {
			return nil, fmt.Errorf("cannot use this host: %w", err)
		}
	}

	go h.look()
	return h, nil
}

// Close ends watching. It touches no process.
func (h *Host) Close() error {
	h.closeOnce.Do(func() { close(h.closing) })
	<-h.looked
	return nil
}

// Degraded says in words what this host lacks.
func (h *Host) Degraded() []string {
	return []string{
		fmt.Sprintf("%s: commands run as %s only", runtime.GOOS, h.self),
		fmt.Sprintf("%s: processes are found by pid file only and exits are noticed by looking every %v",
			runtime.GOOS, lookEvery),
		fmt.Sprintf("%s: use of processor and memory is not measured", runtime.GOOS),
		fmt.Sprintf("%s: start commands must end by themselves, and what processes print is not kept", runtime.GOOS),
	}
}

// Facts says what the machine is. Agent, addresses, version and start are the agent's to add; the size of memory is
// not known here.
func (h *Host) Facts() gozzard.HostInfo {
	name, err := os.Hostname()
	if err != nil {
		h.log.Warn("host has no name", "err", err)
	}
	return gozzard.HostInfo{Hostname: name, OS: runtime.GOOS, Arch: runtime.GOARCH, BootID: h.bootID,
		CPUs: runtime.NumCPU(), Mode: gozzard.ModeUser,
		Degraded: h.Degraded()}
}

// Run runs one shell command to its end or its time-out. Its output goes to a file, so that what it leaves behind
// can go on writing.
func (h *Host) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if u := r.Spec.Identity.User; u != "" && u != h.self {
		return supervise.Result{},
			fmt.Errorf("cannot run as %s: the agent runs as %s and may not change accounts on %s", u, h.self,
				runtime.GOOS)
	}

	if err := checkShell(r.Spec.Control.Shell); err != nil {
		return supervise.Result{}, err
	}

	dir := r.Spec.Identity.SetupPath
	if dir != "" {
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() || !filepath.IsAbs(dir) {
			return supervise.Result{}, fmt.Errorf("setup_path %s: no such directory", dir)
		}
	}

	out, err := os.CreateTemp(h.dir, "run-*")
	if err != nil {
		return supervise.Result{}, fmt.Errorf("cannot make file for output: %w", err)
	}

	defer func() {
		_ = out.Close()
		_ = os.Remove(out.Name())
	}()

	cmd := shellCommand(r.Spec.Control.Shell, r.Command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.Env = append(baseEnv(), "GOZZARD_NAMESPACE="+r.Key.Namespace, "GOZZARD_NAME="+r.Key.Name,
		"GOZZARD_OP_ID="+r.Op.String())
	if err := cmd.Start(); err != nil {
		return supervise.Result{}, fmt.Errorf("cannot start shell: %w", err)
	}

	res, err := wait(ctx, cmd, r.Timeout)
	if err != nil {
		return res, err
	}

	res.Output, err = tail(out)
	return res, err
}

func wait(ctx context.Context, cmd *exec.Cmd, timeout time.Duration) (supervise.Result, error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }() // ends with the shell; when ctx is over first, the command is left running
	var expired <-chan time.Time

	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}

	res := supervise.Result{}
	select {
	case <-done:
	case <-expired:
		res.TimedOut = true
		if err := killTree(cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return res, fmt.Errorf("cannot kill command: %w", err)
		}
		<-done
	case <-ctx.Done():
		return res, fmt.Errorf("command was left running: %w", ctx.Err())
	}

	res.ExitCode = cmd.ProcessState.ExitCode()
	if res.TimedOut {
		res.ExitCode = -1
	}

	return res, nil
}

// Find looks for the process through its pid file.
func (h *Host) Find(_ gozzard.Key, spec *gozzard.Spec) (supervise.Found, error) {
	none := func(format string, args ...any) (supervise.Found, error) {
		return supervise.Found{Reason: fmt.Sprintf(format, args...)}, nil
	}

	path, name := spec.Identity.PIDPath, spec.Identity.ProcName
	if path == "" {
		return none("no pid file is defined, and %s has no other way to find a process", runtime.GOOS)
	}

	pid, _, reason := readPIDFile(path)
	if reason != "" {
		return none("%s", reason)
	}

	in, err := lookup(pid)
	if err != nil {
		return none("pid file %s names pid %d: %v", path, pid, err)
	}
	if !(names{comm: in.name}).match(name) {
		return none("pid file %s names pid %d, whose command is %q, not %q", path, pid,
			cleanCmdline([]string{in.name}), name)
	}

	return supervise.Found{Proc: supervise.Proc{BootID: h.bootID, PID: pid, Start: in.start},
		StartedAt: startTime(in.start)}, nil
}

// Alive reports whether that very process still runs.
func (h *Host) Alive(p supervise.Proc) bool {
	if p.IsZero() || p.BootID != h.bootID {
		return false
	}
	in, err := lookup(p.PID)
	return err == nil && in.start == p.Start
}

// Collect has nothing to wait for here.
func (h *Host) Collect(context.Context, supervise.Proc) {}

// Signal sends a signal to that very process.
func (h *Host) Signal(p supervise.Proc, sig supervise.Signal) error {
	x, err := os.FindProcess(p.PID) // first: where it holds the process, the pid cannot be used again after this
	if err != nil || !h.Alive(p) {
		return fmt.Errorf("cannot signal pid %d: %w", p.PID, os.ErrProcessDone)
	}

	defer x.Release()

	switch sig {
	case supervise.SignalTerm:
		err = terminate(x)
	case supervise.SignalKill:
		err = x.Kill()
	default:
		err = fmt.Errorf("unknown signal %d", sig)
	}

	if err != nil {
		return fmt.Errorf("cannot signal pid %d: %w", p.PID, err)
	}

	return nil
}

// Watch calls exited once, from the looking goroutine, when the process is gone.
func (h *Host) Watch(p supervise.Proc, exited func(supervise.Exit)) (stop func(), err error) {
	w := &watch{proc: p, exited: exited}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	id := h.next
	h.watches[id] = w
	return func() {
		h.mu.Lock()
		delete(h.watches, id)
		h.mu.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
	}, nil
}

func (h *Host) look() {
	defer close(h.looked)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()

	for {
		select {
		case <-h.closing:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		var gone []*watch
		for id, w := range h.watches {
			if !h.Alive(w.proc) {
				gone = append(gone, w)
				delete(h.watches, id)
			}
		}
		h.mu.Unlock()
		for _, w := range gone {
			w.mu.Lock()
			if !w.ended {
				w.ended = true
				w.exited(supervise.Exit{})
			}
			w.mu.Unlock()
		}
	}
}

// Clear has nothing to clear: there are no groups of processes here.
func (h *Host) Clear(gozzard.Key) error { return nil }

// Sample measures nothing here; Degraded says so.
func (h *Host) Sample(procs []supervise.Proc) []supervise.Usage {
	return make([]supervise.Usage, len(procs))
}

// Limit has no kernel to ask here.
func (h *Host) Limit(key gozzard.Key, r gozzard.Resource) (mode string, err error) {
	if !r.Enforce || r.CPU <= 0 && r.Mem <= 0 {
		return "", nil
	}
	return "", fmt.Errorf("cannot limit %s: limits are not enforced by %s", key, runtime.GOOS)
}

// OOMKills is not told here.
func (h *Host) OOMKills(gozzard.Key) int { return 0 }

// ReadLog has nothing to read: output is kept only while its command runs.
func (h *Host) ReadLog(q gozzard.LogQuery) gozzard.LogChunk {
	return gozzard.LogChunk{ID: q.ID, Error: "logs are not kept on " + runtime.GOOS}
}

// Inspect reads what little is known.
func (h *Host) Inspect(p supervise.Proc) (gozzard.Detail, error) {
	in, err := lookup(p.PID)
	if err != nil || in.start != p.Start || p.BootID != h.bootID {
		return gozzard.Detail{PID: -1}, fmt.Errorf("cannot inspect pid %d: %w", p.PID, os.ErrProcessDone)
	}
	now, started := time.Now(), startTime(in.start)
	_, zone := now.Zone()
	return gozzard.Detail{
		PID: p.PID, Cmdline: cleanCmdline([]string{in.name}), StartedAt: started.Unix(),
		Elapsed: int64(now.Sub(started).Seconds()), ZoneOffset: zone,
	}, nil
}
