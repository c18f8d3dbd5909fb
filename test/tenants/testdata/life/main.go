// Command life is the program that the tenants of a shared host run. Every call leaves a record in the folder drop beside
// the folder of this program: what was called, by which account, and by whom. The folder is sticky, so no account can
// change or remove the record of another, and the owner of a record is the account that the call really had.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "life:", err)
		os.Exit(1)
	}
}

// do carries out EVENT MARK [PIDFILE [LIFETIME]].
func do(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: life EVENT MARK [PIDFILE [LIFETIME]]")
	}
	event, mark := args[0], args[1]
	args = append(args[2:], "", "")
	pidFile, lifetime := args[0], args[1]
	if event == "swap" {
		return swap(mark, args)
	}

	if err := leaveRecord(event, mark); err != nil {
		return err
	}
	fmt.Println(mark, event)
	switch event {
	case "run":
		return run(mark, pidFile)
	case "start":
		return start(mark, pidFile, lifetime)
	case "stop":
		return end(pidFile, syscall.SIGTERM)
	case "kill":
		return end(pidFile, syscall.SIGKILL)
	case "restart":
		_ = end(pidFile, syscall.SIGTERM)
		return start(mark, pidFile, lifetime)
	}
	return nil
}

// start starts the process itself and writes its pid file.
func start(mark, pidFile, lifetime string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, "run", mark, lifetime)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	return err
}

// run is the process itself. It ends by a signal, or after its lifetime if it has one.
func run(mark, lifetime string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	var over <-chan time.Time
	if d, err := time.ParseDuration(lifetime); err == nil {
		over = time.After(d)
	}
	select {
	case s := <-signals:
		return leaveRecord("ended-by-"+strconv.Itoa(int(s.(syscall.Signal))), mark)
	case <-over:
		return nil
	}
}

// end sends a signal to the process that a pid file names.
func end(pidFile string, sig syscall.Signal) error {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		return fmt.Errorf("%s has no pid: %q", pidFile, b)
	}
	return syscall.Kill(pid, sig)
}

// leaveRecord writes the record of this call.
func leaveRecord(event, mark string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cwd, _ := os.Getwd()
	b, err := json.Marshal(map[string]any{"event": event, "mark": mark, "uid": os.Getuid(), "pid": os.Getpid(),
		"ancestors": ancestors(), "args": os.Args, "cwd": cwd})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d.%d.%s", os.Getpid(), time.Now().UnixNano(), event)
	drop := filepath.Join(filepath.Dir(filepath.Dir(exe)), "drop")
	f, err := os.OpenFile(filepath.Join(drop, "."+name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Rename(f.Name(), filepath.Join(drop, name)))
}

// ancestors are the parent of this process, its parent, and so on.
func ancestors() (pids []int) {
	for pid := os.Getppid(); pid > 1; {
		pids = append(pids, pid)
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return pids
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return pids
		}
	}
	return pids
}

// swap replaces the link cur of a folder again and again: by a link to each of the targets, and by a file with each of
// their pids. It ends with its input.
func swap(dir string, targets []string) error {
	ended := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(ended)
	}()

	swaps := 0
	for {
		for _, target := range targets {
			select {
			case <-ended:
				fmt.Println(swaps)
				return nil
			default:
			}
			if target == "" {
				continue
			}
			next := filepath.Join(dir, "next")
			_ = os.Remove(next)
			if err := os.Symlink(target, next); err != nil {
				return err
			}
			if err := os.Rename(next, filepath.Join(dir, "cur")); err != nil {
				return err
			}
			if b, err := os.ReadFile(filepath.Join(target, "pid")); err == nil {
				if err := os.WriteFile(next, b, 0o644); err == nil {
					_ = os.Rename(next, filepath.Join(dir, "pid"))
				}
			}
			swaps++
			time.Sleep(2 * time.Millisecond)
		}
	}
}
