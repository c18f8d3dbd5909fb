//go:build linux

package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long a command waits for a process that it has asked to end.
const stopWithin = 5 * time.Second

// control carries out a command of the definition. The first thing that a command does is to record itself.
func control(c config, verb string, args []string) error {
	switch {
	case verb == "note" && len(args) == 1:
		return c.noteCommand(args[0])
	case verb == "up":
		return c.up()
	case verb == "upgrade":
		return c.upgrade()
	case verb == "signal" && len(args) == 1:
		return c.signalProgram(args[0])
	}

	c.note(line{Event: "command", Text: verb})
	switch verb {
	case "start":
		return c.start()
	case "stop":
		return c.stop(syscall.SIGTERM)
	case "kill":
		return c.stop(syscall.SIGKILL)
	case "restart":
		if err := c.stop(syscall.SIGTERM); err != nil {
			return err
		}
		return c.start()
	case "reload":
		return c.reload()
	}
	return fmt.Errorf("unknown command %s", verb)
}

// start starts the process in the way of its kind.
func (c config) start() error {
	launch := newLaunch()
	switch c.Kind {
	case "fails":
		return errors.New("no port left")
	case "slow", "slownopid":
		time.Sleep(2500 * time.Millisecond)
	case "plain", "nopid", "exec", "flood": // they stay in the foreground
		return syscall.Exec(c.Daemon, []string{c.Daemon, "run", "-launch", launch}, os.Environ())
	}

	return c.fork(launch)
}

// fork runs the daemon until it has gone to the background. The process that does so has the name of the daemon from its
// first moment, so it is recorded here, too: it may be ended before it can record itself.
func (c config) fork(launch string, args ...string) error {
	cmd := exec.Command(c.Daemon, append([]string{"run", "-fork", "-launch", launch}, args...)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	if start := startOf(cmd.Process.Pid); start != 0 { // else it has ended, and had the time to record itself
		c.note(line{Event: "up", PID: cmd.Process.Pid, Start: start, Role: "launcher", Launch: launch, Text: "forked"})
	}
	return cmd.Wait()
}

// stop sends a signal to the process and waits until it is gone.
func (c config) stop(sig syscall.Signal) error {
	s := readState()
	if !s.alive() {
		return nil
	}
	if err := syscall.Kill(s.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for end := time.Now().Add(stopWithin); s.alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("pid %d does not end", s.PID)
		}
	}
	return nil
}

// reload makes the process reload, or replaces it in the way of its kind.
func (c config) reload() error {
	s := readState()
	if !s.alive() {
		return errors.New("it does not run")
	}

	switch c.Kind {
	case "handover":
		return c.fork(s.Launch, "-over", strconv.Itoa(s.PID))
	case "usr2":
		if err := syscall.Kill(s.PID, syscall.SIGUSR2); err != nil {
			return err
		}
		for end := time.Now().Add(3 * time.Second); readState().PID == s.PID; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				return errors.New("no new process came up")
			}
		}
		time.Sleep(time.Second)
		return syscall.Kill(s.PID, syscall.SIGQUIT)
	}

	return syscall.Kill(s.PID, syscall.SIGHUP)
}

// The verbs below are for the commands of other programs, which record nothing themselves. The soak leaves their pid
// files alone.

// noteCommand records a command. A start begins a new launch.
func (c config) noteCommand(action string) error {
	c.note(line{Event: "command", Text: action})
	if action != "start" {
		return nil
	}
	return os.WriteFile("launch", []byte(newLaunch()), 0o666)
}

// up records the main process, which is the one in the pid file.
func (c config) up() error {
	launch, err := os.ReadFile("launch")
	if err != nil {
		return err
	}
	for end := time.Now().Add(stopWithin); ; time.Sleep(20 * time.Millisecond) {
		if pid := c.programPID(); pid != 0 {
			c.note(line{Event: "up", PID: pid, Role: "main", Launch: string(launch)})
			return nil
		}
		if time.Now().After(end) {
			return errors.New("no live process is in the pid file " + c.PIDFile)
		}
	}
}

// signalProgram sends a signal to the main process. SIGTERM waits until it is gone.
func (c config) signalProgram(name string) error {
	pid := c.programPID()
	sig := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "0": 0}[name]
	if pid == 0 {
		return errors.New("it does not run")
	}
	start := startOf(pid)
	if err := syscall.Kill(pid, sig); err != nil {
		return err
	}
	end := time.Now().Add(stopWithin)
	for sig == syscall.SIGTERM && startOf(pid) == start {
		if time.Now().After(end) {
			return fmt.Errorf("pid %d does not end", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// upgrade makes the main process start its successor, as nginx does, and then ends it gently.
func (c config) upgrade() error {
	old := c.programPID()
	if old == 0 {
		return errors.New("it does not run")
	}
	start := startOf(old)
	if err := syscall.Kill(old, syscall.SIGUSR2); err != nil {
		return err
	}

	for end := time.Now().Add(stopWithin); ; time.Sleep(20 * time.Millisecond) {
		if pid := c.programPID(); pid != 0 && pid != old {
			break
		}
		if time.Now().After(end) {
			return errors.New("no new process came up")
		}
	}
	if err := c.up(); err != nil {
		return err
	}

	time.Sleep(time.Second) // both work for a while
	if startOf(old) != start {
		return nil
	}
	return syscall.Kill(old, syscall.SIGQUIT)
}

// programPID is the live process that the pid file names, 0 for none. A pid file may be old and its pid used again, so
// the process must also run in this folder or have the folder in its arguments.
func (c config) programPID() int {
	b, err := os.ReadFile(c.PIDFile)
	first, _, _ := strings.Cut(string(b), "\n")
	pid, perr := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || perr != nil || startOf(pid) == 0 {
		return 0
	}
	here, err := os.Getwd()
	if err != nil {
		return 0
	}
	folder, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !strings.HasPrefix(folder+"/", here+"/") && !strings.Contains(string(args), here+"/") {
		return 0
	}
	return pid
}

func newLaunch() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
