//go:build linux

package soak_test

import (
	"fmt"
	"strings"
	"time"
)

// judgeDeaths looks for processes that got a signal or ended although nobody asked for it.
func (s *soak) judgeDeaths(d *daemon) {
	for _, in := range s.watch.instances[d.id] {
		for _, l := range in.signals {
			if (l.Text == "SIGTERM" || l.Text == "SIGINT") && !s.asked(d, in, l.time()) {
				s.violate(colEnded, d, l.time(), fmt.Sprintf("%s %d got %s", in.Role, in.PID, l.Text))
			}
		}
		if in.gone != 0 && in.ended == "" && len(in.signals) == 0 && !s.asked(d, in, in.goneAt()) {
			s.violate(colEnded, d, in.goneAt(), fmt.Sprintf("%s %d was killed", in.Role, in.PID))
		}
	}
}

const (
	noticeSlack = time.Second      // the end of a process is seen a little late
	faultReach  = 10 * time.Second // how long after a fault of ours a death belongs to it
	checkReach  = 6 * time.Second  // how long a start may take until it is settled
)

// asked reports whether anything asked for the end of a process at a time: a fault of the soak, an operation, or the
// end of its own start.
func (s *soak) asked(d *daemon, in *instance, at time.Time) bool {
	for _, f := range d.faults {
		if f.pid == in.PID && !at.Before(f.at) && at.Before(f.at.Add(faultReach)) {
			return true
		}
	}

	for _, w := range d.windows {
		if !w.covers(at, noticeSlack) {
			continue
		}
		switch w.action {
		case "stop", "restart", "kill":
			return true
		case "start": // it may end what it started itself, never what was there before
			if !in.time().Before(w.from.Add(-noticeSlack)) {
				return true
			}
		}
	}

	return s.leftover(d, in, at) || s.unfinished(d, in, at)
}

// leftover reports whether a process was what was left of its launch: a worker whose main process was gone, or a main
// process whose successors were gone. Programs of the distribution do not record that they hand over by themselves.
func (s *soak) leftover(d *daemon, in *instance, at time.Time) bool {
	successors := 0
	for _, other := range s.watch.instances[d.id] {
		if other == in || other.Launch != in.Launch || other.Role != "main" {
			continue
		}
		if in.Role == "main" && other.time().Before(in.time()) {
			continue
		}
		successors++
		if other.aliveAt(at.Add(noticeSlack)) && d.kind.name != "real" {
			return false
		}
	}
	return in.Role == "worker" || successors > 0
}

// unfinished reports whether the start of a process was not settled when it ended: its definition named another
// program or account, or its agent was ended during the start. The time in which its agent could do nothing does not
// count.
func (s *soak) unfinished(d *daemon, in *instance, at time.Time) bool {
	if at.After(in.time().Add(checkReach + 20*time.Second + s.idle(d.host, span{in.time(), at}))) {
		return false
	}
	for _, w := range d.switched {
		if w.covers(in.time(), noticeSlack) {
			return true
		}
	}
	began := s.startOf(d, in)
	for _, f := range s.faults {
		if f.at.After(began.Add(-noticeSlack)) && f.at.Before(in.time().Add(checkReach)) && f.at.Before(at) {
			return true
		}
	}
	return false
}

// startTakes is how long a command may work before it starts the process: op_timeout of the definitions.
const startTakes = 20 * time.Second

// startOf is when the start of a process began: with the last command of its definition before it.
func (s *soak) startOf(d *daemon, in *instance) time.Time {
	began := in.time()
	for i := range s.watch.lines {
		l := &s.watch.lines[i]
		if l.Event == "command" && l.Name == d.id && !l.time().After(in.time()) &&
			in.time().Sub(l.time()) < startTakes {
			began = l.time()
		}
	}
	return began
}

// idle is how long the agent of a host was frozen or away within a stretch of time.
func (s *soak) idle(host int, within span) (sum time.Duration) {
	name := fmt.Sprintf("agent %d ", host)
	var since time.Time // zero while it works
	add := func(to time.Time) {
		from := since
		if from.Before(within.from) {
			from = within.from
		}
		if to.After(within.to) {
			to = within.to
		}
		sum += max(0, to.Sub(from))
	}

	for _, f := range s.faults {
		what, mine := strings.CutPrefix(f.text, name)
		switch {
		case !mine:
		case what == "SIGCONT" || what == "is back":
			if !since.IsZero() {
				add(f.at)
			}
			since = time.Time{}
		case since.IsZero():
			since = f.at
		}
	}
	if !since.IsZero() {
		add(within.to)
	}
	return sum
}
