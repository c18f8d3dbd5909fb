//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// figures are the numbers that a fault test reports.
type figures struct {
	ops, lost, stuck, twice, wrong int
	ok, failed, never, interrupted int
	denied                         int            // not executed, although the fault was over
	why                            map[string]int // reasons of what was not executed
}

func (f figures) String() string {
	return fmt.Sprintf("%d operations acknowledged: %d lost, %d stuck, %d twice, %d wrong verdicts, %d denied after the fault "+
		"(%d ok, %d interrupted, %d not executed, %d failed)",
		f.ops, f.lost, f.stuck, f.twice, f.wrong, f.denied, f.ok, f.interrupted, f.never, f.failed)
}

// add adds the numbers, without the reasons.
func (f *figures) add(g figures) {
	for _, p := range []struct {
		to *int
		n  int
	}{{&f.ops, g.ops}, {&f.lost, g.lost}, {&f.stuck, g.stuck}, {&f.twice, g.twice}, {&f.wrong, g.wrong},
		{&f.denied, g.denied},
		{&f.ok, g.ok}, {&f.failed, g.failed}, {&f.never, g.never}, {&f.interrupted, g.interrupted}} {
		*p.to += p.n
	}
}

// floor is the least that must have happened. Without it a system that rejects everything would pass, because then
// nothing is lost, done twice or reported wrongly. The numbers are far below what a busy machine with two cores
// reaches.
type floor struct {
	ok          int // executed
	percent     int // executed, of all that were acknowledged
	interrupted int // ended in the middle: only where the test ensures that there are some
}

// fault describes what is wrong with the figures, "" when nothing is.
func (f figures) fault(least floor) string {
	switch {
	case f.lost+f.stuck+f.twice+f.wrong+f.denied > 0:
		return "an operation was lost, stuck, done twice, reported wrongly or denied"
	case f.ops == 0:
		return "no operation was acknowledged"
	case f.ok < max(1, least.ok):
		return fmt.Sprintf("%d operations were executed, at least %d must be", f.ok, max(1, least.ok))
	case f.ok*100 < f.ops*least.percent:
		return fmt.Sprintf("%d operations of %d were executed, at least %d %% must be", f.ok, f.ops, least.percent)
	case f.interrupted < least.interrupted:
		return fmt.Sprintf("%d operations were interrupted, at least %d must be", f.interrupted, least.interrupted)
	}
	return ""
}

// outcome is what a verdict claims about an operation.
type outcome int

const (
	executed    outcome = iota
	interrupted         // it may or may not have had its effect
	notExecuted         // it had no effect
	failed
)

func outcomeOf(e ft.Entry) outcome {
	switch {
	case e.Code == 0:
		return executed
	case strings.Contains(e.Msg, "interrupted"):
		return interrupted
	case strings.Contains(e.Msg, "not executed"), e.Code == 117:
		return notExecuted
	}
	return failed
}

// collect waits for every verdict and compares it with the effects.
func (l *ledger) collect() figures {
	l.t.Helper()
	f := figures{why: map[string]int{}}
	verdicts := l.verdicts(&f)
	done := l.effects()
	for mark, e := range verdicts {
		l.compare(&f, mark, e, done[mark])
	}
	return f
}

// verdicts waits for the verdict of every operation, and counts the operations that have none.
func (l *ledger) verdicts(f *figures) map[string]ft.Entry {
	l.t.Helper()
	verdicts := map[string]ft.Entry{}
	deadline := time.Now().Add(l.within)
	for mark, task := range l.tasks {
		f.ops++
		e, end := l.verdict(mark, task, deadline)
		switch end {
		case verdictLost:
			f.lost++
		case verdictStuck:
			f.stuck++
		}
		if e != nil {
			verdicts[mark] = *e
		}
	}

	return verdicts
}

// How the wait for a verdict ends.
const (
	verdictKnown = iota
	verdictLost  // the server does not know the task
	verdictStuck // no verdict in time
)

// verdict waits for the verdict of one operation and returns the newest entry, nil when there was none at all.
func (l *ledger) verdict(mark, task string, deadline time.Time) (e *ft.Entry, end int) {
	l.t.Helper()

	for ; ; time.Sleep(20 * time.Millisecond) {
		ans, err := l.api.Try("get_proc_operate_result", ft.J{"task_id": task})
		out := map[string]ft.Entry{}
		switch {
		case err == nil && ans.Code == 1306429: // too many questions
		case err == nil && ans.Code != 0:
			l.t.Logf("%s: task %s: %s", mark, task, ans.Raw)
			return e, verdictLost
		case err == nil && json.Unmarshal(ans.Data, &out) == nil && len(out) == 1:
			for _, entry := range out {
				e = &entry
			}
			if e.Code != 115 && !strings.Contains(e.Msg, "not known yet") {
				return e, verdictKnown
			}
		}
		if time.Now().After(deadline) {
			l.t.Logf("%s: task %s is stuck at %+v (%v)", mark, task, e, err)
			return e, verdictStuck
		}
	}
}

// compare compares one verdict with the number of its effects.
func (l *ledger) compare(f *figures, mark string, e ft.Entry, effects int) {
	l.t.Helper()

	if effects > 1 {
		f.twice++
	}

	wrong := false
	switch outcomeOf(e) {
	case executed:
		f.ok++
		wrong = effects != 1
	case interrupted:
		f.interrupted++
		wrong = effects > 1
	case notExecuted:
		f.never++
		f.why[e.Msg[:min(len(e.Msg), 60)]]++
		wrong = effects != 0
	case failed:
		f.failed++
		wrong = !l.mayFail || effects != 0 // once started, the command cannot fail
	}

	if wrong {
		f.wrong++
		l.t.Logf("%s: %d effects, verdict %+v", mark, effects, e)
	}

	if l.calm[mark] && e.Code != 0 {
		f.denied++
		l.t.Logf("%s: nothing disturbed this operation, but its verdict is %+v", mark, e)
	}
}

// judge prints the figures. It fails on anything lost, stuck, done twice, wrong or denied, and when less was executed
// than the floor requires.
func (l *ledger) judge(id string, least floor) {
	l.t.Helper()
	f := l.collect()
	fmt.Printf("fault %s: %s\n", id, f)
	for why, n := range f.why {
		fmt.Printf("fault %s:   %d × %s\n", id, n, why)
	}
	if fault := f.fault(least); fault != "" {
		l.t.Errorf("fault %s: %s: %s", id, fault, f)
	}
}
