package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

const (
	killWait   = 5 * time.Second        // how long killed processes may take to end
	frontEvery = 100 * time.Millisecond // how often a running command is checked
	hurryEvery = 10 * time.Millisecond  // the same while a caller waits
)

// command is one run of a shell command.
type command struct {
	run    supervise.Run
	cmd    *exec.Cmd
	job    windows.Handle // of this run; inside the job of the key for runs that start the process
	kept   bool           // the job of the key is claimed
	out    *os.File       // its output, opened for appending
	unhook func()         // ends the watch of the shell
	exited chan struct{}
}

// Run runs one shell command until it ends or its time is over. It returns when the shell has ended, even if
// processes that it started are still running, or when the process of the definition runs and the shell waits for
// it. When ctx ends first, the command keeps running: only a time-out kills it.
func (h *Host) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	// Reject what comes too late, or cannot run here.
	if err := ctx.Err(); err != nil {
		return supervise.Result{}, err
	}
	if h.isClosed() {
		return supervise.Result{}, errClosed
	}
	if err := checkShell(r.Spec.Control.Shell); err != nil {
		return supervise.Result{}, err
	}

	// Start the command.
	c, err := h.start(r)
	if err != nil {
		return supervise.Result{}, err
	}

	// Set the timers: the time-out, and the check for a foreground process.
	var timeout <-chan time.Time
	if r.Timeout > 0 {
		t := time.NewTimer(r.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	var front <-chan time.Time
	var hurry <-chan struct{}
	every := frontEvery
	if r.Front > 0 && r.Keeps {
		front, hurry = time.After(r.Front), r.Hurry
	}

	// Wait for the first event that decides.
	for {
		select {
		case <-c.exited:
			return h.finish(c), nil
		case <-timeout:
			return h.cutOff(c), nil
		case <-front:
			if h.hasFront(c) {
				res := supervise.Result{Front: true, Output: h.tail(c)}
				h.leave(c)
				return res, nil
			}
			front = time.After(every) // it may take longer to start
		case <-hurry:
			hurry, every, front = nil, hurryEvery, time.After(0)
		case <-ctx.Done():
			h.leave(c)
			return supervise.Result{}, fmt.Errorf("command was left running: %w", ctx.Err())
		case <-h.closing:
			h.leave(c)
			return supervise.Result{}, fmt.Errorf("command was left running: %w", errClosed)
		}
	}
}

// start checks a run, starts its shell and watches for its end.
func (h *Host) start(r supervise.Run) (*command, error) {
	// Reject a command that cannot run here.
	if strings.IndexByte(r.Command, 0) >= 0 {
		return nil, errors.New("the command has a NUL character")
	}
	if u := r.Spec.Identity.User; u != "" && !h.isSelf(u) {
		return nil, fmt.Errorf("cannot run as %s: the agent runs as %s and may not change accounts on windows", u,
			h.self)
	}
	if x := r.Spec.Exec; x.EnvFile != "" || x.Group != "" || x.Umask != "" || x.Nice != 0 || len(x.Rlimits) > 0 {
		return nil, errors.New("env_file, group, umask, nice and rlimits do not exist on windows; env does")
	}
	dir := r.Spec.Identity.SetupPath
	if dir != "" {
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() || !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("folder (setup_path) %s: no such directory", dir)
		}
	}

	// Make the file for its output.
	c := &command{run: r, exited: make(chan struct{})}
	path := filepath.Join(h.dir, "run-"+gozzard.NewOpID().String())
	var err error
	if c.out, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("cannot make file for output: %w", err)
	}

	// Start it.
	if err := h.spawn(c, dir); err != nil {
		h.release(c)
		return nil, err
	}
	return c, nil
}

// spawn starts the shell in its jobs. The shell is created suspended, so that it cannot run or start anything outside
// of its jobs.
func (h *Host) spawn(c *command, dir string) (err error) {
	// Make the job of the run, and claim the job of the key.
	if c.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return fmt.Errorf("cannot make job: %w", err)
	}
	var inherit []syscall.Handle
	if c.run.Keeps {
		handle, err := h.jobs.claim(c.run.Key)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(handle)
		c.kept, inherit = true, []syscall.Handle{syscall.Handle(handle)}
	}

	// Create the shell, suspended.
	c.cmd = shellCommand(c.run.Spec.Control.Shell, c.run.Command)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr, c.cmd.Env = dir, c.out, c.out, environment(c.run)
	// A separate console: closing the console of the agent would end every process that shares it.
	c.cmd.SysProcAttr.CreationFlags |= windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP |
		windows.CREATE_NO_WINDOW | h.flags
	c.cmd.SysProcAttr.AdditionalInheritedHandles = inherit
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start shell: %w", err)
	}
	h.mu.Lock()
	h.shells[c.cmd.Process.Pid] = c
	h.mu.Unlock()

	// Put it into its jobs and resume it.
	if err := h.resumeInJobs(c); err != nil {
		_ = c.cmd.Process.Kill() // it has not done anything yet
		_ = c.cmd.Wait()
		return fmt.Errorf("cannot start shell: %w", err)
	}
	return nil
}

// resumeInJobs puts the suspended shell into its jobs, watches it and resumes it.
func (h *Host) resumeInJobs(c *command) error {
	// Open the shell.
	pid := c.cmd.Process.Pid // it keeps the pid until it is collected
	process, err := openPID(pid, windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.PROCESS_SUSPEND_RESUME)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)

	// Put it into its jobs.
	if c.kept {
		err = h.jobs.assign(c.run.Key, process)
	}
	if err == nil {
		err = windows.AssignProcessToJobObject(c.job, process)
	}
	if err != nil {
		return fmt.Errorf("cannot put it into its job: %w", err)
	}

	// Watch for its end. The watcher owns its handle.
	watched, err := openPID(pid, 0)
	if err != nil {
		return err
	}
	if c.unhook, err = h.watch.add(watched, func() { close(c.exited) }); err != nil {
		return err
	}

	return resume(process)
}

// environment is that of the agent, with the variables that describe the command.
func environment(r supervise.Run) []string {
	env := append(baseEnv(), "GOZZARD_NAMESPACE="+r.Key.Namespace, "GOZZARD_NAME="+r.Key.Name)
	if r.Op != (gozzard.OpID{}) {
		env = append(env, "GOZZARD_OP_ID="+r.Op.String())
	}
	if r.Main > 0 {
		env = append(env, "GOZZARD_PID="+strconv.Itoa(r.Main))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Spec.Exec.Env)) {
		env = append(env, name+"="+r.Spec.Exec.Env[name])
	}
	return env
}

// hasFront looks for the process of the definition among the processes that a running command started. The shell
// waits for the process and is never the process itself.
func (h *Host) hasFront(c *command) bool {
	id := c.run.Spec.Identity
	hint := 0
	if id.PIDPath != "" {
		hint, _, _ = readPIDFile(id.PIDPath)
	}

	members, err := jobMembers(c.job)
	if err != nil {
		h.log.Warn("cannot read the processes of a command", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name,
			"err", err)
	}
	for _, pid := range members {
		if id.ProcName == "" && pid != hint {
			continue
		}
		if c, reason := h.describe(pid, id.ProcName); reason == "" && c.Barred == "" && c.Misfit == "" {
			return true
		}
	}

	return false
}

// cutOff kills a command that took too long, with everything that it started.
func (h *Host) cutOff(c *command) supervise.Result {
	// Keep the result of a command that ended just in time.
	select {
	case <-c.exited:
		return h.finish(c)
	default:
	}

	// Kill the command and wait for its end.
	h.killRun(c)
	wait := time.NewTimer(killWait)
	defer wait.Stop()
	select {
	case <-c.exited:
		res := h.finish(c)
		res.TimedOut, res.ExitCode = true, -1
		return res
	case <-wait.C: // stuck in the kernel; it ends when the kernel call returns
		res := supervise.Result{TimedOut: true, ExitCode: -1, Output: h.tail(c)}
		h.leave(c)
		return res
	}
}

// killRun kills everything that a run started.
func (h *Host) killRun(c *command) {
	if err := killJob(func() ([]int, error) { return terminateJob(c.job) }); err != nil {
		h.log.Warn("command left processes behind", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}
}

// finish collects a shell that has ended.
func (h *Host) finish(c *command) supervise.Result {
	if !c.run.Keeps {
		h.killRun(c)
	}

	_ = c.cmd.Wait() // a failed exit status is not an error here
	res := supervise.Result{ExitCode: -1, Output: h.tail(c)}
	if c.cmd.ProcessState != nil {
		res.ExitCode = c.cmd.ProcessState.ExitCode()
	}

	h.release(c)
	return res
}

func (h *Host) tail(c *command) string {
	f, err := os.Open(c.out.Name())
	if err != nil {
		h.log.Warn("cannot read output of command", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
		return ""
	}
	defer f.Close()
	s, err := tail(f)
	if err != nil {
		h.log.Warn("cannot read output of command", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}
	return s
}

// release frees everything that a command acquired, whether it was started or not. Its output is removed when it
// has no writer any more.
func (h *Host) release(c *command) {
	// End the watch and the claim.
	if c.unhook != nil {
		c.unhook()
	}
	if c.kept {
		h.jobs.release(c.run.Key)
	}

	// Forget the shell.
	h.mu.Lock()
	if c.cmd != nil && c.cmd.Process != nil && h.shells[c.cmd.Process.Pid] == c {
		delete(h.shells, c.cmd.Process.Pid)
	}
	h.mu.Unlock()

	// Close the handles and remove the output. Windows refuses that while a process has the file open; sweepOutput
	// removes it later.
	c.discard()
	_ = os.Remove(c.out.Name())
}

// discard closes the handles that the agent has of a command. The command keeps running.
func (c *command) discard() {
	if c.job != 0 {
		_ = windows.CloseHandle(c.job)
		c.job = 0
	}
	_ = c.out.Close()
}

// leave stops waiting for a command, which keeps running; it is collected later.
func (h *Host) leave(c *command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abandoned = append(h.abandoned, c)
}

// finishAbandoned collects the abandoned commands that have ended.
func (h *Host) finishAbandoned() {
	// Separate the commands that have ended from those that run.
	h.mu.Lock()
	var ended, running []*command
	for _, c := range h.abandoned {
		select {
		case <-c.exited:
			ended = append(ended, c)
		default:
			running = append(running, c)
		}
	}
	h.abandoned = running
	h.mu.Unlock()

	// Collect the ended ones.
	for _, c := range ended {
		h.finish(c)
	}
}

// isShell reports whether a pid belongs to the shell of a running command.
func (h *Host) isShell(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shells[pid] != nil
}
