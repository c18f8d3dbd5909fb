//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// TestMain lets the test's program be the prototype.
func TestMain(m *testing.M) {
	if os.Getenv("PROTOTYPE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The limit does what the supervisors beside it do: it starts all, starts again what was killed, and stops all.
func TestPrototype(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	cmd := exec.Command(os.Args[0], "/bin/sleep", "3", socket)
	cmd.Env = append(os.Environ(), "PROTOTYPE=1")
	p, err := child.Start(t.TempDir(), "prototype", cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	await := func(words string, cond func(pids []int) bool) (pids []int) {
		t.Helper()
		if err := child.Until(t.Context(), time.Minute, words, func() (_ bool, err error) {
			pids, err = status(socket)
			return err == nil && cond(pids), err
		}, p); err != nil {
			t.Fatal(err)
		}
		return pids
	}

	first := await("three processes", func(pids []int) bool { return len(pids) == 3 && alive(pids) == 3 })
	if err := syscall.Kill(first[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := await("a new process", func(pids []int) bool { return pids[1] != first[1] && alive(pids) == 3 })
	if second[0] != first[0] || second[2] != first[2] {
		t.Errorf("others were started again: %d, then %d", first, second)
	}

	if _, err := ask(socket, "t"); err != nil {
		t.Fatal(err)
	}
	await("no process", func(pids []int) bool { return alive(second) == 0 && alive(pids) == 0 })
}

func alive(pids []int) (n int) {
	for _, pid := range pids {
		if pid > 0 && syscall.Kill(pid, 0) == nil {
			n++
		}
	}
	return n
}

func status(socket string) (pids []int, err error) {
	text, err := ask(socket, "s")
	if err != nil {
		return nil, err
	}

	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var number, pid, ticks int
		if _, err := fmt.Sscan(lines.Text(), &number, &pid, &ticks); err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func ask(socket, letter string) (string, error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, letter); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}
