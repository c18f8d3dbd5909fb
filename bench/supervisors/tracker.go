//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// firstNumber makes the supervised processes distinguishable: the argument of each is this plus its number. It is FIRST
// of child.c.
const firstNumber = 100_000_000

// pollEvery is how often the page is read. It does not limit the figures: the processes write exact times.
const pollEvery = time.Millisecond

// tracker notices when supervised processes start. It reads what they write into the page, so it treats every supervisor
// alike: one that starts many threads or helpers gives it no more to look at than one that forks and executes.
type tracker struct {
	program string // path of the supervised program, which no other process has
	n       int
	page    *page
	newest  []int     // by number of the process, 0 before one is seen
	began   []instant // when it began
}

func newTracker(program string, n int) (*tracker, error) {
	p, err := mapPage(program)
	if err != nil {
		return nil, err
	}
	return &tracker{program: program, n: n, page: p, newest: make([]int, n), began: make([]instant, n)}, nil
}

// number is the number of a supervised process, -1 for any other process.
func (t *tracker) number(pid int) int {
	args := argv(pid)
	if len(args) != 2 || args[0] != t.program {
		return -1
	}
	secs, err := strconv.Atoi(args[1])
	if err != nil || secs < firstNumber || secs >= firstNumber+t.n {
		return -1
	}
	return secs - firstNumber
}

// poll reads which processes have started since the last call.
func (t *tracker) poll() {
	for i := range t.newest {
		p := &t.page.places[i]
		if pid := int(p.pid.Load()); pid != 0 && pid != t.newest[i] {
			t.newest[i], t.began[i] = pid, instant(p.began.Load())
		}
	}
}

// last is when the last process began.
func (t *tracker) last() instant { return slices.Max(t.began) }

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
	t.page.clear()
	clear(t.newest)
	clear(t.began)
}

// await polls until cond holds. It reports whether that happened within the limit.
func (t *tracker) await(ctx context.Context, limit time.Duration, cond func() bool) (bool, error) {
	end := time.Now().Add(limit)
	for {
		t.poll()
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

// endAll kills processes and waits until they are gone.
func endAll(list []int) {
	for _, pid := range list {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails when it has ended already
	}
	// The last sweep finds what cannot be killed.
	if e, err := watchEnds(list); err == nil {
		_, _ = e.await(context.Background(), 10*time.Second)
		e.close()
	}
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
