package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

const (
	shell       = "/bin/sh"
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// command is one run of a shell command.
type command struct {
	run    supervise.Run
	runAs  account
	dir    *folder  // open until the shell is in it
	prog   *program // nil: the command runs in a shell
	cmd    *exec.Cmd
	plain  bool      // the program was started in place of the shell
	group  *runGroup // nil without cgroups
	out    *output
	slot   *slot // its place in the ledger
	texts  []*os.File
	exited chan struct{}
	unhook func() // ends the watch of the shell

	watcher *watcher
	watched atomic.Pointer[watch] // of its shell, by the pidfd that belongs to cmd; nil without

	waited    sync.Once
	collected atomic.Bool // its pid may belong to another process
	err       error
}

// wait collects the shell, which has ended. The first call does it, and all calls return its error.
func (c *command) wait() error {
	c.waited.Do(func() {
		c.collected.Store(true)
		c.err = c.cmd.Wait() // closes its pidfd
		if x := c.watched.Load(); x != nil {
			c.watcher.check(x)
		}
	})
	return c.err
}

// prepare checks a run and sets up everything except the process. The text of the definition is the only shell
// text; what the agent knows about the process is passed as environment variables.
func (h *Host) prepare(r supervise.Run) (*command, error) {
	// Reject a command that cannot run here.
	if strings.IndexByte(r.Command, 0) >= 0 {
		return nil, errors.New("the command has a NUL character")
	}
	if err := checkShell(r.Spec.Control.Shell); err != nil {
		return nil, err
	}

	// Choose the account, and open the folder with the rights of the account.
	runAs, cred, err := h.actAs(r.Spec.Identity.User)
	if err != nil {
		return nil, err
	}
	if cred, err = h.inGroup(r.Spec.Exec.Group, runAs, cred); err != nil {
		return nil, err
	}
	own, err := h.variables(r, runAs, cred)
	if err != nil {
		return nil, err
	}
	dir, err := h.openFolderOf(r, runAs.name, cred)
	if err != nil {
		return nil, err
	}

	c := &command{run: r, runAs: runAs, dir: dir, watcher: h.watch, exited: make(chan struct{})}
	if c.prog, err = h.openProgram(r, dir, runAs.name, cred); err != nil {
		h.discard(c)
		return nil, err
	}

	// Make the group that the shell starts in.
	name := runName(r)
	attr := &syscall.SysProcAttr{Setsid: true, Credential: cred}
	if h.groups != nil {
		if c.group, err = h.groups.begin(r.Key, name); err != nil {
			h.discard(c)
			return nil, err
		}
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.group.fd.Fd())
		h.limits.prepare(keyFolder(r.Key))
	}

	// Open the output, and the texts of a script.
	if c.out, err = h.openOutput(r, name, runAs); err != nil {
		h.discard(c)
		return nil, err
	}
	if c.texts, err = openTexts(r.Texts); err != nil {
		h.discard(c)
		return nil, err
	}

	// Describe the shell.
	c.cmd = &exec.Cmd{
		Path: shell, Args: []string{shell, "-c", withTexts(r.Command, r.Texts)}, Dir: dir.path(),
		ExtraFiles: c.texts,
		Env: slices.Concat(environment(r, runAs), own, // of equal names the last one counts
			mark{agent: h.instance, key: r.Key, run: name}.environment()),
		Stdin: h.null, Stdout: c.out.file, Stderr: c.out.file, SysProcAttr: attr,
	}
	if c.prog != nil {
		c.plain, c.cmd.Path, c.cmd.Args = true, c.prog.path, c.prog.words
		c.cmd.Env = append(c.cmd.Env, "PWD="+dir.real) // as the shell does
	}
	h.record(c, name)
	return c, nil
}

// withoutShell returns the same command without its shell, or nil when it needs one: because it does more than
// exec, or because it runs as another account, which is checked on the shell.
func (c *command) withoutShell() *exec.Cmd {
	if c.prog != nil || c.run.Front <= 0 || c.cmd.SysProcAttr.Credential != nil {
		return nil
	}
	args, ok := plainExec(c.run.Command)
	if !ok {
		return nil
	}
	plain := &exec.Cmd{Path: args[0], Args: args, Dir: c.cmd.Dir, Stdin: c.cmd.Stdin, Stdout: c.cmd.Stdout,
		Stderr: c.cmd.Stderr, SysProcAttr: c.cmd.SysProcAttr}
	plain.Env = append(slices.Clip(c.cmd.Env), "PWD="+c.dir.real) // as the shell does
	return plain
}

// openOutput opens the file for the output of a command. A command whose output cannot be kept runs without: a process
// that is down because of its log is worse than one without a log.
func (h *Host) openOutput(r supervise.Run, name string, runAs account) (*output, error) {
	out, err := h.openOutputFile(r, name, runAs)
	if err == nil {
		if h.outputs.lost.Swap(false) {
			h.log.Info("output of commands is kept again", "dir", h.outputs.dir)
		}
		return out, nil
	}

	none, noneErr := noOutput()
	if noneErr != nil {
		return nil, errors.Join(err, noneErr)
	}
	if !h.outputs.lost.Swap(true) { // once: the state folder is as it is for every command
		h.log.Error("output of commands is dropped until the state folder can be written", "ns", r.Key.Namespace,
			"proc", r.Key.Name, "err", err)
	}
	return none, nil
}

// openOutputFile opens the log of the process, or a separate file.
func (h *Host) openOutputFile(r supervise.Run, name string, runAs account) (*output, error) {
	if !r.Keeps || r.Action == gozzard.ActionReload {
		out, err := h.outputs.create(keyFolder(r.Key)+"."+name, runAs, h.groups != nil)
		if err == nil {
			out.want = r.Whole
		}
		return out, err
	}

	log, f, err := h.logs.create(keyFolder(r.Key), logBoundsOf(r.Spec))
	if err != nil {
		return nil, err
	}
	from, err := log.position()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read log: %w", err), f.Close())
	}
	return &output{file: f, log: log, from: from}, nil
}

// logBoundsOf are the bounds of the log that a definition has.
func logBoundsOf(s *gozzard.Spec) bounds {
	return bounds{s.Logs.Size, s.Logs.Keep, time.Duration(s.Logs.Age) * time.Second}
}

// start starts the shell and watches for its end.
func (h *Host) start(c *command) error {
	// Start the shell and record its pid.
	err := h.shells.start(c, func() (int, error) {
		if err := h.spawn(c); err != nil {
			return 0, err
		}
		return c.cmd.Process.Pid, nil
	})
	if err != nil {
		h.discard(c)
		if c.prog != nil {
			return c.prog.explain(err, c.runAs.name)
		}
		if errors.Is(err, unix.EACCES) {
			return fmt.Errorf("folder (setup_path) %s: user %s may not enter it", c.dir.name, c.runAs.name)
		}
		return fmt.Errorf("cannot start shell: %w", err)
	}

	h.recordLeader(c)
	h.guard.expect(c.slot)
	h.resetOOMScore(c)

	// Close and forget what only the start needed: the command is known as long as its process runs.
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = nil, nil, nil, nil, nil
	closeAll(c.texts)
	c.texts, c.run.Texts = nil, nil
	_ = c.dir.file.Close()
	c.dir = nil
	c.prog.close()
	if c.group != nil {
		_ = c.group.fd.Close()
		c.group.fd = nil
	}
	if c.out.log != nil {
		if err := c.out.close(); err != nil { // the process keeps it open; the agent does not need it
			h.log.Warn("cannot close log", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
		}
	}

	if err := h.watchShell(c); err != nil {
		h.leave(c)
		return err
	}

	// Check that it runs as the right account.
	return h.checkStarted(c)
}

// watchShell watches for the end of the shell. Usually it shares the pidfd that the library has opened at the start, so
// that a process in the foreground costs one descriptor.
func (h *Host) watchShell(c *command) error {
	pid := c.cmd.Process.Pid
	running := func() bool {
		if c.collected.Load() {
			return false
		}
		st, err := h.proc.Stat(pid) // not collected yet, so the pid still belongs to it
		return err != nil && !errors.Is(err, procfs.ErrGone) || err == nil && !st.Dead()
	}
	gone := func() {
		close(c.exited)
		h.shellEnded.Store(true)
	}

	// Share the pidfd. If the shell is collected at this moment, its watch is looked at.
	x, err := h.watch.addLent(pid, c.cmd.Process.WithHandle, running, gone)
	if err == nil {
		c.unhook = func() { h.watch.end(x) }
		if c.watched.Store(x); c.collected.Load() {
			h.watch.check(x)
		}
		return nil
	}

	// Else open one. Without any the process is polled.
	fd := -1
	if h.hasPidfd && errors.Is(err, os.ErrNoHandle) {
		if fd, err = openPidfd(pid); err != nil {
			h.log.Warn("command is watched without pidfd", "pid", pid, "err", err)
		}
	}
	c.unhook, err = h.watch.add(pid, fd, running, gone)
	return err
}

// checkStarted checks a command that was just started and kills it at once when it does not run as the right
// account.
func (h *Host) checkStarted(c *command) error {
	reason := h.checkCredentials(c)
	if reason == "" {
		return nil
	}
	h.cutOff(c)
	return fmt.Errorf("cannot run as %s: %s", c.runAs.name, reason)
}

// discard releases what prepare acquired.
func (h *Host) discard(c *command) {
	h.strike(c)
	_ = c.dir.file.Close()
	c.prog.close()
	closeAll(c.texts)
	if c.group != nil {
		_ = c.group.fd.Close()
		h.groups.release(c.group)
	}
	if c.out != nil {
		if err := errors.Join(c.out.remove(), c.out.close()); err != nil {
			h.log.Warn("cannot remove output of command", "err", err)
		}
	}
}

// runName is the name of a run's group and output. It contains the operation for administrators, and a random part
// because one operation may run several commands.
func runName(r supervise.Run) string {
	prefix := oncePrefix
	if r.Keeps {
		prefix = keptPrefix
	}
	if r.Op == (gozzard.OpID{}) {
		return prefix + token()
	}
	return prefix + r.Op.String() + "-" + token()
}

// environment is the same for every command of an account, whatever environment the agent was started with.
func environment(r supervise.Run, runAs account) []string {
	home := runAs.home
	if home == "" {
		home = "/"
	}

	env := []string{
		"PATH=" + defaultPath,
		"HOME=" + home,
		"USER=" + runAs.name,
		"LOGNAME=" + runAs.name,
		"SHELL=" + shell,
		"LANG=C.UTF-8",
	}

	if r.Op != (gozzard.OpID{}) {
		env = append(env, "GOZZARD_OP_ID="+r.Op.String())
	}
	if r.Main > 0 {
		env = append(env, "GOZZARD_PID="+strconv.Itoa(r.Main))
	}
	if tz, ok := os.LookupEnv("TZ"); ok {
		env = append(env, "TZ="+tz)
	}

	return env
}
