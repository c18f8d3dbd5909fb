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
func control(c config, verb string) error {
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
	case "up":
		return c.up()
	}
	return fmt.Errorf("unknown command %s", verb)
}

// start starts the process in the way of its kind.
func (c config) start() error {
	var b [6]byte
	_, _ = rand.Read(b[:])
	launch := hex.EncodeToString(b[:])

	switch c.Kind {
	case "fails":
		return errors.New("no port left")
	case "slow":
		time.Sleep(2500 * time.Millisecond)
	case "plain", "nopid", "exec", "flood": // they stay in the foreground
		return syscall.Exec(c.Daemon, []string{c.Daemon, "run", "-launch", launch}, os.Environ())
	}

	cmd := exec.Command(c.Daemon, "run", "-fork", "-launch", launch)
	return cmd.Run()
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
		return exec.Command(c.Daemon, "run", "-fork", "-launch", s.Launch, "-over", strconv.Itoa(s.PID)).Run()
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

// up records the main process of a program that records nothing itself: it is the one in the pid file, which the soak
// leaves alone for such programs.
func (c config) up() error {
	for end := time.Now().Add(stopWithin); ; time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(c.PIDFile)
		first, _, _ := strings.Cut(string(b), "\n")
		pid, perr := strconv.Atoi(strings.TrimSpace(first))
		if err == nil && perr == nil && startOf(pid) != 0 {
			c.note(line{Event: "up", PID: pid, Role: "main", Launch: strconv.Itoa(pid) + "-" + c.Name})
			return nil
		}
		if time.Now().After(end) {
			return errors.New("no live process is in the pid file " + c.PIDFile)
		}
	}
}
