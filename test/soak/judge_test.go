//go:build linux

package soak_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// The columns of the history.
const (
	colLost      = "acknowledged tasks lost"
	colStuck     = "tasks without a final verdict"
	colTwice     = "effects twice"
	colWrong     = "verdicts against the effects"
	colDoors     = "verdicts that doors and record tell differently"
	colLate      = "effects after the final verdict"
	colCopies    = "two copies at a time"
	colBystander = "bystanders signalled"
	colEnded     = "ended without being asked"
)

// verdictOf is the verdict of an attempt in one word.
func verdictOf(a *attempt) string {
	switch a.state {
	case gozzard.AttemptNotExecuted:
		return "not executed: " + string(a.outcome.Code)
	case gozzard.AttemptInterrupted:
		return "interrupted"
	case gozzard.AttemptOK, gozzard.AttemptFailed:
		return string(a.outcome.Code)
	}
	return "open: " + a.state.String()
}

// judgeHistory compares verdicts, effects and lives.
func (s *soak) judgeHistory() {
	s.mu.Lock()
	requests := slices.Clone(s.requests)
	s.mu.Unlock()
	s.judgeTasks(requests)

	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	effects := s.effects()
	known := map[string]bool{}
	for _, a := range s.attempts {
		known[a.op] = true
		s.judgeEffects(a, effects[a.op])
		s.judgeTruth(a)
	}
	for op, e := range effects {
		if !known[op] {
			s.violate(colWrong, s.daemonByID(e.name), e.first, "a command ran for the operation "+op+
				", which the record does not have")
		}
	}
	for _, d := range s.all {
		s.judgeCopies(d)
		s.judgeDeaths(d)
	}
	s.judgeBystanders()
}

// judgeTasks looks for tasks that were acknowledged and are lost or without a verdict, and gives each attempt the time
// at which its caller saw the verdict.
func (s *soak) judgeTasks(requests []*request) {
	byTask := map[string]*request{}
	for _, q := range requests {
		if q.task != "" {
			byTask[taskNumber(q.task)] = q
		}
		switch {
		case q.acked.IsZero():
		case q.lost != "" || q.task != "" && !s.tasks[taskNumber(q.task)]:
			s.violate(colLost, q.daemons[0], q.acked, fmt.Sprintf("%s %s, task %s: %s", q.door, q.action, q.task, q.lost))
		case q.final.IsZero():
			s.violate(colStuck, q.daemons[0], q.acked, fmt.Sprintf("%s %s, task %s", q.door, q.action, q.task))
		}
	}

	for _, a := range s.attempts {
		q := byTask[taskNumber(a.task)]
		if q != nil && !q.final.IsZero() {
			a.to = q.final
			s.compareDoors(a, q)
		} else {
			a.to = windowEnd(a)
		}
		if !a.state.Final() && a.action != "query" {
			s.violate(colStuck, a.daemon, a.from, fmt.Sprintf("%s, task %s is %s in the record", a.action, a.task, a.state))
		}
		for i := range a.daemon.windows {
			w := &a.daemon.windows[i]
			if w.task == a.task || w.task == "" && w.action == a.action && w.covers(a.from, 0) {
				w.verdict = verdictOf(a) + " " + a.outcome.Message
			}
		}
	}
}

// windowEnd is when the caller of a job saw its end. Of several jobs at a time the last one counts. An attempt that no
// caller knows may have worked for a while.
func windowEnd(a *attempt) (end time.Time) {
	for _, w := range a.daemon.windows {
		if w.task == "" && w.action == a.action && w.covers(a.from, 10*time.Millisecond) && w.to.After(end) {
			end = w.to
		}
	}
	if end.IsZero() {
		end = a.from.Add(90 * time.Second)
	}
	return end
}

// compareDoors compares what the door said in the end with the record.
func (s *soak) compareDoors(a *attempt, q *request) {
	said, ok := q.verdicts[a.key]
	if q.door == "API" || q.door == "command line" {
		said, ok = q.verdicts[a.daemon.space+"/"+a.daemon.process]
	}
	if !ok {
		return
	}
	word, _, _ := strings.Cut(said, " ")
	number := map[gozzard.Code]string{gozzard.CodeOK: "0", gozzard.CodeAlreadyRunning: "828",
		gozzard.CodeNotRunning: "829", gozzard.CodeCheckFailed: "836"}[a.outcome.Code]
	if number == "" || word == number || word == string(a.outcome.Code) {
		return
	}
	s.violate(colDoors, a.daemon, a.to, fmt.Sprintf("%s said %q, the record has %s", q.door, said, verdictOf(a)))
}

// effect counts the commands that ran for one operation.
type effect struct {
	name  string
	first time.Time
	last  time.Time
	n     map[string]int
}

func (e *effect) count(command string) int {
	if e == nil {
		return 0
	}
	return e.n[command]
}

// effects collects the commands of the journal by operation. Starts without a request have none.
func (s *soak) effects() map[string]*effect {
	all := map[string]*effect{}
	for i := range s.watch.lines {
		l := &s.watch.lines[i]
		if l.Event != "command" || l.Op == "" || l.Text == "up" {
			continue
		}
		e := all[l.Op]
		if e == nil {
			e = &effect{name: l.Name, first: l.time(), n: map[string]int{}}
			all[l.Op] = e
		}
		e.n[l.Text]++
		e.last = l.time()
	}
	return all
}

// judgeEffects compares one verdict with the commands that ran for it.
func (s *soak) judgeEffects(a *attempt, e *effect) {
	what := fmt.Sprintf("%s, task %s, verdict %s %q", a.action, a.task, verdictOf(a), a.outcome.Message)
	total := 0
	for _, c := range []string{"start", "stop", "restart", "reload", "kill"} {
		if n := e.count(c); n > 1 {
			s.violate(colTwice, a.daemon, e.last, fmt.Sprintf("%s: %s ran %d times", what, c, n))
		}
		total += e.count(c)
	}

	if why := mismatch(a, e, total); why != "" {
		s.violate(colWrong, a.daemon, a.to, what+": "+why)
	}
	if e != nil && a.state.Final() && e.last.After(a.to.Add(500*time.Millisecond)) {
		s.violate(colLate, a.daemon, e.last, what+": a command of it ran later")
	}
}

// mismatch says why the commands that ran do not fit a verdict, "" when they do.
func mismatch(a *attempt, e *effect, total int) string {
	own := e.count(a.action)
	runs := slices.Contains([]string{"start", "stop", "restart", "reload", "kill"}, a.action)
	verdict := verdictOf(a)
	switch {
	case !runs && total > 0:
		return fmt.Sprintf("%d commands ran", total)
	case !runs, verdict == "interrupted", strings.HasPrefix(verdict, "open"), verdict == string(gozzard.CodeCommandFailed):
		return ""
	case verdict == string(gozzard.CodeOK):
		return missing(a, e)
	case verdict == string(gozzard.CodeCheckFailed) && a.action == "start" && own != 1:
		return fmt.Sprintf("start_cmd ran %d times", own)
	case verdict == string(gozzard.CodeCheckFailed):
		return ""
	case total > 0:
		return fmt.Sprintf("%d commands ran", total)
	}
	return ""
}

// missing says which command of a successful operation did not run.
func missing(a *attempt, e *effect) string {
	d := a.daemon
	switch {
	case foundDown(a):
		if len(e.counts()) > 0 {
			return "commands ran"
		}
		return ""
	case a.action == "restart" && !d.restart && e.count("start") != 1:
		return fmt.Sprintf("start_cmd ran %d times", e.count("start"))
	case d.has(a.action) && e.count(a.action) != 1:
		return fmt.Sprintf("%s_cmd ran %d times", a.action, e.count(a.action))
	}
	return ""
}

// foundDown reports whether a stop or kill says that its main process did not run, so that there was no command to run.
func foundDown(a *attempt) bool {
	return strings.Contains(a.outcome.Message, "it was down and waiting") ||
		strings.Contains(a.outcome.Message, "its main process had ended before")
}

func (e *effect) counts() map[string]int {
	if e == nil {
		return nil
	}
	return e.n
}

// judgeTruth compares what a verdict says about the process with its life.
func (s *soak) judgeTruth(a *attempt) {
	if a.to.IsZero() || !a.state.Final() {
		return
	}
	lives := s.watch.instances[a.daemon.id]
	verdict := verdictOf(a)
	says := fmt.Sprintf("%s, task %s, verdict %s %q", a.action, a.task, verdict, a.outcome.Message)
	down := verdict == string(gozzard.CodeNotRunning) || verdict == string(gozzard.CodeOK) && foundDown(a)
	ends := a.action == "stop" || a.action == "kill"

	switch {
	case verdict == string(gozzard.CodeAlreadyRunning):
		for _, in := range lives {
			if !in.time().After(a.to.Add(time.Second)) && (in.gone == 0 || in.goneAt().After(a.from.Add(-2*time.Second))) {
				return
			}
		}
		s.violate(colWrong, a.daemon, a.to, says+": nothing of it was alive")
	case down:
		for _, in := range lives {
			before, after := a.from.Add(-500*time.Millisecond), a.to.Add(500*time.Millisecond)
			if in.Role == "main" && in.aliveAt(before) && in.aliveAt(after) {
				s.violate(colWrong, a.daemon, a.to, fmt.Sprintf("%s: pid %d was alive all the time", says, in.PID))
				return
			}
		}
	case ends && verdict == string(gozzard.CodeOK):
		for _, in := range lives {
			if in.time().Before(a.from.Add(-500*time.Millisecond)) && in.aliveAt(a.to.Add(time.Second)) {
				s.violate(colWrong, a.daemon, a.to, fmt.Sprintf("%s: %s %d still lives", says, in.Role, in.PID))
				return
			}
		}
	}
}

// judgeCopies looks for two main processes of different launches at a time.
func (s *soak) judgeCopies(d *daemon) {
	for i := range s.watch.lines {
		if l := &s.watch.lines[i]; l.Event == "twin" && l.Name == d.id {
			s.violate(colCopies, d, l.time(), fmt.Sprintf("pid %d began while pid %s lived", l.PID, l.Text))
		}
	}
	lives := s.watch.instances[d.id]
	for i, a := range lives {
		for _, b := range lives[i+1:] {
			if a.Role == "main" && b.Role == "main" && a.Launch != b.Launch && a.servedAt(b.time().Add(time.Second)) &&
				b.servedAt(b.time().Add(time.Second)) {
				s.violate(colCopies, d, b.time(), fmt.Sprintf("pid %d and pid %d lived at a time", a.PID, b.PID))
			}
		}
	}
}

// judgeBystanders looks for signals to processes that no definition names.
func (s *soak) judgeBystanders() {
	for name := range s.bystanders {
		for _, in := range s.watch.instances[name] {
			for _, l := range in.signals {
				s.violate(colBystander, nil, l.time(), name+" got "+l.Text)
			}
			if in.gone != 0 {
				s.violate(colBystander, nil, in.goneAt(), name+" was ended")
			}
		}
	}
}
