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

// firstSeconds tells the supervised processes apart: each sleeps this many seconds plus its number, and shows that
// in its command line.
const firstSeconds = 100_000_000

const (
	pollEvery  = 150 * time.Microsecond // of the newest process id
	slowEvery  = 20 * time.Millisecond  // of processes that have been something else for a while
	youngFor   = 60 * time.Millisecond
	forgetFor  = 2 * time.Second
	sweepEvery = time.Second // a look at the whole process table, for what the quick look missed
)

// tracker sees supervised processes come, with the same eyes for every supervisor and at a cost that hardly depends
// on how many there are: the kernel numbers processes in order, so only the ids since the last look are looked at,
// and again until they became the program awaited.
type tracker struct {
	program string // path of the supervised program, which nobody else has
	n       int
	newest  []int // by number of the process, 0 while none was seen
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

// lastPID is the id that was given away last, 0 when the kernel does not say.
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

// number tells which of the supervised processes a process is, -1 when it is none.
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

// poll takes in the processes that have come since the last call.
func (t *tracker) poll() error {
	now := time.Now()
	last := lastPID()
	switch {
	case last > t.last && last-t.last < 10_000:
		for pid := t.last + 1; pid <= last; pid++ {
			t.pending[pid] = seen{now}
		}
	case last != t.last: // the numbers have begun again
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

// sweep looks at all processes. Of several with one number the one not known before counts.
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

// copies gives all live processes by their number.
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

// forget begins anew: nothing that ran before counts.
func (t *tracker) forget() {
	clear(t.newest)
	clear(t.pending)
	t.last, t.swept = lastPID(), time.Now()
}

// await polls until cond holds and tells whether it did within the limit.
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

// awaitAll waits until every process runs, other ones than those of old where that is given.
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
	_, _ = awaitGone(context.Background(), 10*time.Second, list) // what cannot be killed is seen by the last sweep
}

// belongs tells whether a process works in a folder of this run or was given its path, which is like no other.
func belongs(pid int, dir string) bool {
	if cwd, err := os.Readlink(procPath(pid, "cwd")); err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/")) {
		return true
	}
	return slices.ContainsFunc(argv(pid), func(a string) bool { return strings.Contains(a, dir+"/") })
}

// sweepAway kills every process that came of a folder of this run.
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
	return fmt.Errorf("processes out of %s cannot be ended", dir)
}
