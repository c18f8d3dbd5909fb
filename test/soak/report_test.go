//go:build linux

package soak_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// violation is something that must never happen.
type violation struct {
	d    *daemon // nil when it is not about one daemon
	at   time.Time
	text string
}

// violate records a violation.
func (s *soak) violate(column string, d *daemon, at time.Time, text string) {
	s.vmu.Lock()
	defer s.vmu.Unlock()
	s.violations[column] = append(s.violations[column], violation{d, at, text})
}

// columns are those of the table, in its order.
func columns() []string {
	return []string{colLost, colStuck, colTwice, colWrong, colDoors, colLate, colCopies, colBystander, colEnded,
		colNotAlive, colAlive, colPID, colFlag, colPrograms, colLeft, colGroups, colZombies, colOpen}
}

// report prints the table, and the history of each violation.
func (s *soak) report() {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "soak: seed %d, %s of load, %d daemons on %d agents, %d bystanders\n", s.seed, *duration, len(s.all),
		len(s.agents), len(s.bystanders))
	s.counted(&b)

	bad := 0
	for _, c := range columns() {
		n := len(s.violations[c])
		bad += n
		fmt.Fprintf(&b, "soak: %6d %s\n", n, c)
	}
	fmt.Print(b.String())
	s.floor()

	if bad == 0 {
		return
	}
	for _, c := range columns() {
		for i, v := range s.violations[c] {
			if i == 5 {
				s.t.Logf("%s: %d more", c, len(s.violations[c])-i)
				break
			}
			s.t.Errorf("%s: %s\n%s", c, v.text, s.history(v))
		}
	}
	s.t.Errorf("%d violations; the same plan: -soak.seed=%d", bad, s.seed)
}

// floor fails when too little was done: a fleet that rejects everything would have zeros, too. The numbers are far
// below what a busy machine reaches.
func (s *soak) floor() {
	ok, doors := 0, map[string]int{}
	for _, a := range s.attempts {
		if verdictOf(a) == "ok" {
			ok++
		}
	}
	for _, q := range s.requests {
		if !q.final.IsZero() {
			doors[q.door]++
		}
	}
	if ok < 40 || ok*4 < len(s.attempts) {
		s.t.Errorf("%d of %d operations succeeded, at least 40 and a quarter of them must", ok, len(s.attempts))
	}

	if *duration < 30*time.Second {
		return
	}
	for _, door := range []string{"GSE", "GSE multi", "Job", "GSEKit", "API", "command line"} {
		if doors[door] == 0 {
			s.t.Errorf("no request ended at the door %s", door)
		}
	}
	for _, what := range []string{"daemon killed", "pid file", "definition", "agent back"} {
		if s.counts[what] == 0 && !*calm {
			s.t.Errorf("no fault of the kind %q", what)
		}
	}
}

// counted prints how much was done.
func (s *soak) counted(b *strings.Builder) {
	doors, verdicts, acked := map[string]int{}, map[string]int{}, 0
	for _, q := range s.requests {
		doors[q.door]++
		if !q.acked.IsZero() {
			acked++
		}
	}
	for _, a := range s.attempts {
		v, _, _ := strings.Cut(verdictOf(a), ":")
		verdicts[v]++
	}
	starts, commands := 0, 0
	for _, list := range s.watch.instances {
		for _, in := range list {
			if in.Role != "launcher" {
				starts++
			}
		}
	}
	for _, l := range s.watch.lines {
		if l.Event == "command" {
			commands++
		}
	}
	fmt.Fprintf(b, "soak: %d requests acknowledged, %d operations on processes (%s)\n", acked, len(s.attempts),
		list(verdicts))
	fmt.Fprintf(b, "soak: doors: %s\n", list(doors))
	fmt.Fprintf(b, "soak: faults: %s\n", list(s.counts))
	fmt.Fprintf(b, "soak: effects: %d commands ran, %d processes began\n", commands, starts)
}

func list(counts map[string]int) string {
	var parts []string
	for k, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, k))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// moment is one line of a history.
type moment struct {
	at   time.Time
	text string
}

// history is what happened to a daemon around a violation: operations with their verdicts, faults and effects.
func (s *soak) history(v violation) string {
	if v.d == nil {
		return ""
	}
	to := v.at.Add(2 * time.Second)
	var all []moment
	add := func(at time.Time, format string, args ...any) {
		if !at.IsZero() && at.Before(to) {
			all = append(all, moment{at, fmt.Sprintf(format, args...)})
		}
	}

	for _, w := range v.d.windows {
		add(w.from, "> %s by %s", w.action, w.door)
		add(w.to, "< %s by %s: %s (task %s)", w.action, w.door, w.verdict, w.task)
	}
	for _, f := range v.d.faults {
		add(f.at, "! %s", f.text)
	}
	mine := fmt.Sprintf("agent %d ", v.d.host)
	for _, f := range s.faults {
		if strings.HasPrefix(f.text, mine) || strings.HasPrefix(f.text, "server") {
			add(f.at, "! %s", f.text)
		}
	}
	for _, l := range s.watch.lines {
		if l.Name == v.d.id {
			add(l.time(), "  %s %s pid %d %s launch %s op %.8s", l.Event, l.Text, l.PID, l.Role, l.Launch, l.Op)
		}
	}
	for _, in := range s.watch.instances[v.d.id] {
		if in.gone != 0 {
			add(in.goneAt(), "  gone pid %d %s launch %s", in.PID, in.Role, in.Launch)
		}
	}

	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	var b strings.Builder
	fmt.Fprintf(&b, "    %s (%s in %s on agent %d, stop_cmd %v), at %.3f s:\n", v.d.id, v.d.kind.name, v.d.space,
		v.d.host, v.d.stop, v.at.Sub(s.began).Seconds())
	for _, m := range all[max(0, len(all)-45):] {
		fmt.Fprintf(&b, "    %9.3f %s\n", m.at.Sub(s.began).Seconds(), m.text)
	}
	return b.String()
}
