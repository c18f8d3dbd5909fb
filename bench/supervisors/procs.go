//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// procPath is the path of a process's file in /proc.
func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// pids lists all processes of the machine.
func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}

	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}

	var list []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			list = append(list, pid)
		}
	}

	return list, nil
}

// stat returns state and parent of a process; ok is false when there is no such process.
func stat(pid int) (state byte, parent int, ok bool) {
	b, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return 0, 0, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 || len(f[0]) != 1 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(f[1]))
	return f[0][0], parent, err == nil
}

// lives reports whether a process runs. A zombie does not.
func lives(pid int) bool {
	state, _, ok := stat(pid)
	return ok && state != 'Z' && state != 'X'
}

// argv returns the command line of a process, nil when it has none.
func argv(pid int) []string {
	b, err := os.ReadFile(procPath(pid, "cmdline"))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// family returns root and all its live descendants.
func family(root int) ([]int, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}

	children := map[int][]int{}
	for _, pid := range all {
		if state, parent, ok := stat(pid); ok && state != 'Z' && state != 'X' {
			children[parent] = append(children[parent], pid)
		}
	}

	list := []int{root}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}

	return list, nil
}

// cpuOf is the CPU time that processes have used, to the nanosecond. It asks for the clock of each process, which counts
// threads that have ended too: a supervisor may use one for every start.
func cpuOf(list []int) time.Duration {
	var sum time.Duration
	for _, pid := range list {
		const scheduled = 2 // the kind of clock
		var ts unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
			continue // it has ended meanwhile
		}
		sum += time.Duration(ts.Nano())
	}
	return sum
}

// pssOf is the memory of processes in bytes. Shared memory is divided among the processes that share it.
func pssOf(list []int) int64 {
	var sum int64
	for _, pid := range list {
		b, err := os.ReadFile(procPath(pid, "smaps_rollup"))
		if err != nil {
			continue // it has ended meanwhile
		}
		for line := range strings.Lines(string(b)) {
			rest, ok := strings.CutPrefix(line, "Pss:")
			if !ok {
				continue
			}
			if kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10,
				64); err == nil {
				sum += kb << 10
			}
		}
	}

	return sum
}
