//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// firstSeconds makes the supervised processes distinguishable: each sleeps this many seconds plus its number, which is
// visible in its command line.
const firstSeconds = 100_000_000

const (
	pollEvery  = 150 * time.Microsecond // reads the newest process id
	slowEvery  = 20 * time.Millisecond  // looks at processes that were another program for a while
	youngFor   = 60 * time.Millisecond
	forgetFor  = 2 * time.Second
	sweepEvery = time.Second // looks at the whole process table, for what the quick look missed
)

// tracker notices when supervised processes start. It treats every supervisor alike, and its cost hardly depends on the
// number of processes: the kernel numbers processes in order, so it looks only at the ids since the last look, and
// again until they have become the awaited program.
type tracker struct {
	program string // path of the supervised program, which no other process has
	n       int
	newest  []int // by number of the process, 0 before one is seen
	last    int   // the newest process id of the machine
	pending map[int]seen
	swept   time.Time
	slow    time.Time
}

type seen struct{ first time.Time }

func newTracker(program string, n int) *tracker {
	return &tracker{program: program, n: n, newest: make([]int, n), last: lastPID(), pending: map[int]seen{},
		swept: time.Now()}
}

// lastPID is the id that the kernel assigned last, 0 when the kernel does not say.
func lastPID() int {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[bytes.LastIndexByte(b, ' ')+1:])))
	if err != nil {
		return 0
	}
	return pid
}

// number is the number of a supervised process, -1 for any other process.
func (t *tracker) number(pid int) int {
	args := argv(pid)
	if len(args) != 2 || args[0] != t.program {
		return -1
	}
	secs, err := strconv.Atoi(args[1])
	if err != nil || secs < firstSeconds || secs >= firstSeconds+t.n {
		return -1
	}
	return secs - firstSeconds
}

// poll adds the processes that started since the last call.
func (t *tracker) poll() error {
	now := time.Now()
	last := lastPID()
	switch {
	case last > t.last && last-t.last < 10_000:
		for pid := t.last + 1; pid <= last; pid++ {
			t.pending[pid] = seen{now}
		}
	case last != t.last: // the kernel's numbers began again
		t.swept = time.Time{}
	}

	t.last = last
	slow := now.Sub(t.slow) > slowEvery
	if slow {
		t.slow = now
	}

	for pid, s := range t.pending {
		age := now.Sub(s.first)
		if age > youngFor && !slow {
			continue
		}
		if i := t.number(pid); i >= 0 {
			t.newest[i] = pid
			delete(t.pending, pid)
		} else if age > forgetFor {
			delete(t.pending, pid)
		}
	}

	if now.Sub(t.swept) > sweepEvery {
		return t.sweep()
	}

	return nil
}

// sweep looks at all processes. If several have one number, the one that was unknown before counts.
func (t *tracker) sweep() error {
	all, err := t.copies()
	if err != nil {
		return err
	}

	for i, list := range all {
		for _, pid := range list {
			if pid != t.newest[i] && (t.newest[i] == 0 || !lives(t.newest[i])) {
				t.newest[i] = pid
			}
		}
	}

	t.swept = time.Now()
	return nil
}

// copies returns all live processes by their number.
func (t *tracker) copies() ([][]int, error) {
	list, err := pids()
	if err != nil {
		return nil, err
	}
	all := make([][]int, t.n)
	for _, pid := range list {
		if i := t.number(pid); i >= 0 && lives(pid) {
			all[i] = append(all[i], pid)
		}
	}
	return all, nil
}

// forget forgets all processes, so that only new ones count.
func (t *tracker) forget() {
	clear(t.newest)
	clear(t.pending)
	t.last, t.swept = lastPID(), time.Now()
}

// await polls until cond holds. It reports whether that happened within the limit.
func (t *tracker) await(ctx context.Context, limit time.Duration, cond func() bool) (bool, error) {
	end := time.Now().Add(limit)
	for {
		if err := t.poll(); err != nil {
			return false, err
		}
		if cond() {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if time.Now().After(end) {
			return false, nil
		}
		time.Sleep(pollEvery)
	}
}

// awaitAll waits until every process runs. If old is given, processes in it do not count.
func (t *tracker) awaitAll(ctx context.Context, limit time.Duration, old []int) (bool, error) {
	next := 0
	return t.await(ctx, limit, func() bool {
		for next < t.n && t.newest[next] != 0 && (old == nil || t.newest[next] != old[next]) {
			next++
		}
		return next == t.n
	})
}

// awaitGone waits until none of the processes runs.
func awaitGone(ctx context.Context, limit time.Duration, list []int) (bool, error) {
	end := time.Now().Add(limit)
	for next := 0; ; {
		for next < len(list) && !lives(list[next]) {
			next++
		}
		if next == len(list) {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if time.Now().After(end) {
			return false, nil
		}
		time.Sleep(pollEvery)
	}
}

// endAll kills processes and waits until they are gone.
func endAll(list []int) {
	for _, pid := range list {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails when it has ended already
	}
	_, _ = awaitGone(context.Background(), 10*time.Second, list) // the last sweep finds what cannot be killed
}

// belongs reports whether a process works in a folder of this run or has that path, which is unique, in its arguments.
func belongs(pid int, dir string) bool {
	if cwd, err := os.Readlink(procPath(pid, "cwd")); err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/")) {
		return true
	}
	return slices.ContainsFunc(argv(pid), func(a string) bool { return strings.Contains(a, dir+"/") })
}

// sweepAway kills every process that was started from a folder of this run.
func sweepAway(dir string) error {
	for range 20 {
		list, err := pids()
		if err != nil {
			return err
		}
		var ours []int
		for _, pid := range list {
			if pid == os.Getpid() || !lives(pid) {
				continue
			}
			if belongs(pid, dir) {
				ours = append(ours, pid)
			}
		}
		if len(ours) == 0 {
			return nil
		}
		endAll(ours)
	}
	return fmt.Errorf("cannot kill the processes of %s", dir)
}
