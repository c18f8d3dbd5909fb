//go:build linux

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// row is one kind of measurement.
type row int

// The rows in the order of the table.
const (
	rowStart row = iota
	rowStartCall
	rowIdle
	rowPSS
	rowCrash50
	rowCrash99
	rowDaemon50
	rowDaemon99
	rowTwice
	rowStorm
	rowStormCPU
	rowStatus
	rowStop
	rowDeath
	rowDeathWhole
	rowCount
)

func (r row) String() string {
	return [...]string{
		"start all: supervisor started → all run, ms", "start all by a call of the API, ms",
		"idle CPU, ms per minute", "memory (PSS), MB",
		"killed → running again, ms p50", "killed → running again, ms p99",
		"the same for double-forked daemons, ms p50",
		"the same for double-forked daemons, ms p99", "killed twice quickly, ms p50",
		"all killed at once → all back, ms", "all killed at once: CPU of the supervisor, ms", "status of all, ms",
		"stop all, ms", "first process of the supervisor killed -9, started again: doubled / lost / restarted",
		"all its processes killed -9, started again: doubled / lost / restarted",
	}[r]
}

// why explains what gozzard spends more for than the best peer, in the rows where it does.
func (r row) why() string {
	switch r {
	case rowStart, rowStorm, rowStormCPU:
		return "each process gets its own cgroup and its own log and is identified after its start, and the agent has a journal to open first; small C programs fork and exec"
	case rowIdle:
		return "the usage of every process tree is measured every 10 s and the server hears from the agent every 10 s; the best peers measure nothing and send no reports"
	case rowPSS:
		return "a Go program with a connection, a journal and its own measurements beside C programs without"
	case rowCrash50, rowCrash99:
		return "the agent checks what is left of the dead process before it starts another"
	case rowTwice:
		return "by default the agent waits 10 s before it starts a process again that it has just started, so that one that always ends does not occupy the machine"
	case rowStatus:
		return "the answer comes from the server over HTTP with credentials, and has everything that is known about each process"
	case rowStop:
		return "stopped means that nothing of the process is left in its cgroup and that the verdict is on disk; the peer has sent a signal and seen its child end"
	}
	return ""
}

// figure is one cell. Less is better in every row.
type figure struct {
	value  float64
	digits int
	text   string          // replaces the value
	all    []time.Duration // what was measured several times; the value is its median
	count  int             // number of samples, where there are few
}

func millis(d time.Duration) figure {
	return figure{value: float64(d) / float64(time.Millisecond), digits: 1}
}

// longer is the figure of what did not end in time.
func longer(d time.Duration) figure {
	return figure{value: math.Inf(1), text: fmt.Sprintf("> %d", d.Milliseconds())}
}

func fate(doubled, lost, restarted int) figure {
	return figure{value: float64(doubled + lost + restarted),
		text: fmt.Sprintf("%d / %d / %d", doubled, lost, restarted)}
}

func (f figure) String() string {
	s := f.text
	if s == "" {
		s = fmt.Sprintf("%.*f", f.digits, f.value)
		if f.value >= 100 {
			s = fmt.Sprintf("%.0f", f.value)
		}
	}
	if len(f.all) > 1 {
		s += fmt.Sprintf(" (%s–%s)", millis(slices.Min(f.all)), millis(slices.Max(f.all)))
	}
	if f.count > 0 {
		s += fmt.Sprintf(" (%d samples)", f.count)
	}
	return s
}

// figures are those of one supervisor.
type figures map[row]figure

// repeat adds one of several measurements of a row.
func (f figures) repeat(r row, d time.Duration) {
	all := append(f[r].all, d)
	x := millis(samples(all).at(0.5))
	x.all = all
	f[r] = x
}

// move gives a figure to another row.
func (f figures) move(from, to row) {
	if x, ok := f[from]; ok {
		f[to] = x
		delete(f, from)
	}
}

// late reports whether something did not end in time, so that a repetition would only wait again.
func (f figures) late() bool {
	for _, x := range f {
		if math.IsInf(x.value, 1) {
			return true
		}
	}
	return false
}

// fewSamples is the number below which a p99 means little, so the table shows the number.
const fewSamples = 50

func (f figures) latency(p50, p99 row, s samples) {
	if len(s) == 0 {
		return
	}
	f[p50], f[p99] = millis(s.at(0.5)), millis(s.at(0.99))
	if len(s) < fewSamples {
		few := f[p99]
		few.count = len(s)
		f[p99] = few
	}
}

// samples are durations of one measurement.
type samples []time.Duration

func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// results is the result of the run.
type results struct {
	options
	at    time.Time
	took  time.Duration
	tools *tools

	mu    sync.Mutex
	found map[int]map[string]figures // by number of processes and supervisor
	plain map[string]figures         // with default settings
	notes []string

	alone []string // lines of the table of the agent alone
	costs []string // of profiles
}

func newResults(o options) *results {
	return &results{options: o, at: time.Now(), found: map[int]map[string]figures{}, plain: map[string]figures{}}
}

func (r *results) add(n int, defaults bool, name string, f figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if defaults {
		r.plain[name] = f
		return
	}
	if r.found[n] == nil {
		r.found[n] = map[string]figures{}
	}
	r.found[n][name] = f
}

func (r *results) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, plain(fmt.Sprintf(format, args...)))
}

// addLarge adds a line to the table of the agent alone.
func (r *results) addLarge(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alone = append(r.alone, line)
}

// cost adds the largest costs of a profile.
func (r *results) cost(what string, list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.costs = append(r.costs, plain(what+": "+strings.Join(list, "; ")))
}

// standing compares ours with the best peer: the cell of the ratio, and a line when ours is not better.
func standing(r row, found map[string]figures) (ratio, behind string) {
	ours, ok := found["gozzard"][r]
	best, bestPeer := figure{value: math.Inf(1)}, ""
	for _, c := range candidates()[1:] {
		if f, known := found[c.name][r]; known && !c.limit && f.value < best.value {
			best, bestPeer = f, c.name
		}
	}

	switch {
	case !ok || bestPeer == "":
		return "", ""
	case ours.value <= best.value && r >= rowDeath:
		return "none better", ""
	case r >= rowDeath || best.value < 0.05:
		ratio = fmt.Sprintf("%+.1f beside %s", ours.value-best.value, bestPeer)
	default:
		ratio = fmt.Sprintf("%.2f× %s", ours.value/best.value, bestPeer)
	}

	if ours.value > best.value {
		behind = fmt.Sprintf("%s: gozzard %s, %s %s (%s)", r, ours, bestPeer, best, ratio)
		if why := r.why(); why != "" {
			behind += ": " + why
		}
	}

	return ratio, behind
}

// limitRatio compares ours with the limit.
func limitRatio(r row, found map[string]figures) string {
	ours, ok := found["gozzard"][r]
	limit, known := found["prototype"][r]
	if !ok || !known || r >= rowDeath || limit.value < 0.05 {
		return ""
	}
	return fmt.Sprintf("%.2f×", ours.value/limit.value)
}

// Done sets the time that the run took.
func (r *results) Done() { r.took = time.Since(r.at) }

// Fault is nil: a measurement that failed is a word in its place of the table.
func (r *results) Fault() error { return nil }

func (r *results) Text() string {
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	p("# Supervisors beside each other\n")
	p("Made by `%s` on %s in %s, %s/%s, %d CPUs shared by everything in the run and by whatever else the machine did.\n",
		r.command, r.at.UTC().Format("2006-01-02"), r.took.Round(time.Second), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU())
	p("Versions: %s.\n", r.versions())
	p("Every supervisor has N copies of one small static program and the fastest settings it allows: supervisord `startsecs=0`, monit looking every second, Pebble a")
	p("back-off of 1 ms, pm2 without a bound of restarts, gozzard without start check and start interval, usage sampled every 10 s. The last table has their default")
	p("settings. Each process writes the time of its begin into memory that it shares with the observer, so all are measured in the same way and the observer costs")
	p("nothing. CPU and memory are of all the supervisor's own processes; for gozzard that is the agent. A figure with a range is the median of several measurements,")
	p("with the least and the greatest. p99 of few samples is their greatest. Empty: the supervisor cannot do that.\n")
	p("`prototype` is the limit, not a peer: it starts, watches by pidfd, starts again and samples usage, and does nothing else. *peer* is gozzard's figure to that of the")
	p("best peer, *limit* to that of the prototype: below 1 gozzard leads. Status is asked over HTTP or a socket where the supervisor has that (gozzard: of the server), else")
	p("by its command. An agent waits a second before it starts a process that ended four times in a row; the run resets these counts through the API, as it rests for")
	p("supervisors that start a process at most once a second.")

	for _, n := range r.size.counts {
		p("\n## N = %d\n", n)
		r.table(p, r.found[n])
	}
	if len(r.plain) > 0 {
		p("\n## Default settings, N = %d\n", r.size.defaults)
		r.table(p, r.plain)
	}

	if len(r.alone) > 0 {
		p("\n## The agent alone\n")
		p("At a limit of %d open files. Start: the processes are started by calls of the API, %d at a time.\n", openLimit(), atOneCall)
		p("| N | memory (PSS), MB | idle CPU, ms per minute | descriptors | start all, s |")
		p("|---|---|---|---|---|")
		for _, line := range r.alone {
			p("%s", line)
		}
	}
	if len(r.costs) > 0 {
		p("\n## Where the agent spends time and memory\n")
		p("The three largest costs of each profile: parts of the agent by processor time, with everything that they call, and functions by the memory that they have")
		p("allocated and that is in use. The profiled agent is not among the measured ones.\n")
		for _, line := range r.costs {
			p("- %s", line)
		}
	}
	if missed := r.missedGoals(); len(missed) > 0 {
		p("\n## Goals that are missed\n")
		for _, line := range missed {
			p("- %s", line)
		}
	}

	if len(r.notes) > 0 {
		p("\n## Notes\n")
		for _, n := range r.notes {
			p("- %s", n)
		}
	}

	return s.String()
}

// table writes the figures of all supervisors. Rows that none has are left out.
func (r *results) table(p func(string, ...any), found map[string]figures) {
	var names []string
	for _, name := range peerNames() {
		if found[name] != nil {
			names = append(names, name)
		}
	}

	p("| | %s | peer | limit |", strings.Join(names, " | "))
	p("|---|%s---|---|", strings.Repeat("---|", len(names)))
	var behind []string
	for x := range rowCount {
		var cells []string
		for _, name := range names {
			cell := ""
			if f, ok := found[name][x]; ok {
				cell = f.String()
			}
			cells = append(cells, cell)
		}
		if strings.Join(cells, "") == "" {
			continue
		}
		ratio, line := standing(x, found)
		p("| %s | %s | %s | %s |", x, strings.Join(cells, " | "), ratio, limitRatio(x, found))
		if line != "" {
			behind = append(behind, line)
		}
	}

	if len(behind) > 0 {
		p("\nWhere gozzard does not lead:\n")
		for _, line := range behind {
			p("- %s", line)
		}
	}
}

// versions lists what was measured, and what could not be installed.
func (r *results) versions() string {
	list := []string{runtime.Version()}
	for _, name := range peerNames() {
		switch {
		case r.tools.missing[name] != "":
			list = append(list, fmt.Sprintf("%s not measured (%s)", name, plain(r.tools.missing[name])))
		case r.tools.versions[name] != "":
			list = append(list, name+" "+r.tools.versions[name])
		}
	}
	return strings.Join(list, ", ")
}
