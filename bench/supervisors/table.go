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
		"all killed at once → all back, ms", "status of all, ms",
		"stop all, ms", "first process of the supervisor killed -9, started again: doubled / lost / restarted",
		"all its processes killed -9, started again: doubled / lost / restarted",
	}[r]
}

// why explains what gozzard spends more for than the best peer, in the rows where it does.
func (r row) why() string {
	switch r {
	case rowStart, rowStorm:
		return "each process gets its own cgroup and its own log and is identified after its start, and the agent has a journal to open first; small C programs fork and exec"
	case rowIdle:
		return "the usage of every process tree is measured every 10 s and the server hears from the agent every 5 s; the best peers measure nothing and send no reports"
	case rowPSS:
		return "a Go program with a connection, a journal and its own measurements beside C programs without"
	case rowCrash50, rowCrash99, rowTwice:
		return "the agent checks what is left of the dead process before it starts another"
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
	text   string // replaces the value
	count  int    // number of samples, where there are few
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
	if f.count > 0 {
		s += fmt.Sprintf(" (%d samples)", f.count)
	}
	return s
}

// figures are those of one supervisor.
type figures map[row]figure

// set keeps the first figure: a supervisor is set up several times, and only the first time was nothing else done
// before.
func (f figures) set(r row, x figure) {
	if _, known := f[r]; !known {
		f[r] = x
	}
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
	found map[int]map[string]figures
	notes []string
}

func newResults(o options) *results {
	return &results{options: o, at: time.Now(), found: map[int]map[string]figures{}}
}

func (r *results) add(n int, name string, f figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// standing compares ours with the best peer: the cell of the ratio, and a line when ours is not better.
func standing(r row, found map[string]figures) (ratio, behind string) {
	ours, ok := found["gozzard"][r]
	best, bestPeer := figure{value: math.Inf(1)}, ""
	for _, name := range peerNames()[1:] {
		if f, known := found[name][r]; known && f.value < best.value {
			best, bestPeer = f, name
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

func (r *results) markdown() string {
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	p("# Supervisors beside each other\n")
	p("Made by `%s` on %s in %s, %s/%s, %d CPUs shared by everything in the run and by whatever else the machine did.\n",
		r.command, r.at.UTC().Format("2006-01-02"), r.took.Round(time.Second), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU())
	p("Versions: %s.\n", r.versions())
	p("Every supervisor has N copies of sleep and the fastest settings it allows: supervisord `startsecs=0`, monit looking every second, Pebble a back-off")
	p("of 1 ms, pm2 without a bound of restarts, gozzard without start check and start interval, usage sampled every 10 s. All are measured in the same way, from")
	p("the process table. CPU and memory are of all the supervisor's own processes; for gozzard that is the agent. The ratio is gozzard's figure to that of")
	p("the best peer: below 1 it leads. Empty: the peer cannot do that. p99 of few samples is their greatest. Status is asked over HTTP or a socket where")
	p("the peer has that (gozzard: of the server), else by its command.")

	for _, n := range r.size.counts {
		r.table(p, n, r.found[n])
	}

	if len(r.notes) > 0 {
		p("\n## Notes\n")
		for _, n := range r.notes {
			p("- %s", n)
		}
	}

	return s.String()
}

func (r *results) table(p func(string, ...any), n int, found map[string]figures) {
	var names []string
	for _, name := range peerNames() {
		if found[name] != nil {
			names = append(names, name)
		}
	}

	p("\n## N = %d\n", n)
	p("| | %s | ratio |", strings.Join(names, " | "))
	p("|---|%s---|", strings.Repeat("---|", len(names)))
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
		ratio, line := standing(x, found)
		p("| %s | %s | %s |", x, strings.Join(cells, " | "), ratio)
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
