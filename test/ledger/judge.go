//go:build linux

package ledger

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// Figures are the numbers that a fault test reports.
type Figures struct {
	Ops, Lost, Stuck, Twice, Wrong int
	OK, Failed, Never, Interrupted int
	Denied                         int            // not executed, although the fault was over
	Why                            map[string]int // reasons of what was not executed
}

func (f Figures) String() string {
	return fmt.Sprintf("%d operations acknowledged: %d lost, %d stuck, %d twice, %d wrong verdicts, %d denied after the fault "+
		"(%d ok, %d interrupted, %d not executed, %d failed)",
		f.Ops, f.Lost, f.Stuck, f.Twice, f.Wrong, f.Denied, f.OK, f.Interrupted, f.Never, f.Failed)
}

// Add adds the numbers, without the reasons.
func (f *Figures) Add(g Figures) {
	for _, p := range []struct {
		to *int
		n  int
	}{{&f.Ops, g.Ops}, {&f.Lost, g.Lost}, {&f.Stuck, g.Stuck}, {&f.Twice, g.Twice}, {&f.Wrong, g.Wrong},
		{&f.Denied, g.Denied},
		{&f.OK, g.OK}, {&f.Failed, g.Failed}, {&f.Never, g.Never}, {&f.Interrupted, g.Interrupted}} {
		*p.to += p.n
	}
}

// Floor is the least that must have happened. Without it a system that rejects everything would pass, because then
// nothing is lost, done twice or reported wrongly. The numbers are far below what a busy machine with two cores
// reaches.
type Floor struct {
	OK          int // executed
	Percent     int // executed, of all that were acknowledged
	Interrupted int // ended in the middle: only where the test ensures that there are some
}

// Fault describes what is wrong with the figures, "" when nothing is.
func (f Figures) Fault(least Floor) string {
	switch {
	case f.Lost+f.Stuck+f.Twice+f.Wrong+f.Denied > 0:
		return "an operation was lost, stuck, done twice, reported wrongly or denied"
	case f.Ops == 0:
		return "no operation was acknowledged"
	case f.OK < max(1, least.OK):
		return fmt.Sprintf("%d operations were executed, at least %d must be", f.OK, max(1, least.OK))
	case f.OK*100 < f.Ops*least.Percent:
		return fmt.Sprintf("%d operations of %d were executed, at least %d %% must be", f.OK, f.Ops, least.Percent)
	case f.Interrupted < least.Interrupted:
		return fmt.Sprintf("%d operations were interrupted, at least %d must be", f.Interrupted, least.Interrupted)
	}
	return ""
}

// Outcome is what a verdict claims about an operation.
type Outcome int

// What verdicts claim.
const (
	Executed    Outcome = iota
	Interrupted         // it may or may not have had its effect
	NotExecuted         // it had no effect
	Failed
)

// OutcomeOf reads a verdict.
func OutcomeOf(e ft.Entry) Outcome {
	switch {
	case e.Code == 0:
		return Executed
	case strings.Contains(e.Msg, "interrupted"):
		return Interrupted
	case strings.Contains(e.Msg, "not executed"), e.Code == 117:
		return NotExecuted
	}
	return Failed
}

// numbers are left out of reasons, so that they can be counted.
var numbers = regexp.MustCompile(`\b([0-9]+|[0-9a-f]{32})\b`)

// Collect waits for every verdict and compares it with the effects.
func (l *Ledger) Collect() Figures {
	l.t.Helper()
	f := Figures{Why: map[string]int{}}
	verdicts := l.Verdicts(&f)
	done := l.Effects()
	for mark, e := range verdicts {
		l.Compare(&f, mark, e, done[mark])
	}
	return f
}

// Verdicts waits for the verdict of every operation, and counts the operations that have none.
func (l *Ledger) Verdicts(f *Figures) map[string]ft.Entry {
	l.t.Helper()
	verdicts := map[string]ft.Entry{}
	deadline := time.Now().Add(l.Within)
	for mark, task := range l.tasks {
		f.Ops++
		e, end := l.Verdict(mark, task, deadline)
		switch end {
		case verdictLost:
			f.Lost++
		case verdictStuck:
			f.Stuck++
		}
		if e != nil {
			verdicts[mark] = *e
		}
	}

	return verdicts
}

// askingTakes is how much longer it may take to ask about many operations, because a server answers so many questions in a second
// only.
const askingTakes = 10 * time.Minute

// How the wait for a verdict ends.
const (
	verdictKnown = iota
	verdictLost  // the server does not know the task
	verdictStuck // no verdict in time
)

// Verdict waits for the verdict of one operation and returns the newest entry, nil when there was none at all.
func (l *Ledger) Verdict(mark, task string, deadline time.Time) (e *ft.Entry, end int) {
	l.t.Helper()

	for try := 0; ; try++ {
		ans, err := l.apis[try%len(l.apis)].Try("get_proc_operate_result", ft.J{"task_id": task})
		out := map[string]ft.Entry{}
		switch {
		case err == nil && ans.Code == 1306429: // too many questions, which says nothing about the operation
			if time.Now().Before(deadline.Add(askingTakes)) {
				time.Sleep(100 * time.Millisecond)
				continue
			}
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
		time.Sleep(20 * time.Millisecond)
	}
}

// Compare compares one verdict with the number of its effects.
func (l *Ledger) Compare(f *Figures, mark string, e ft.Entry, effects int) {
	l.t.Helper()

	if effects > 1 {
		f.Twice++
	}

	wrong := false
	switch OutcomeOf(e) {
	case Executed:
		f.OK++
		wrong = effects != 1
	case Interrupted:
		f.Interrupted++
		wrong = effects > 1
	case NotExecuted:
		f.Never++
		why := numbers.ReplaceAllString(e.Msg, "N")
		f.Why[why[:min(len(why), 60)]]++
		wrong = effects != 0
	case Failed:
		f.Failed++
		wrong = !l.MayFail || effects != 0 // once started, the command cannot fail
	}

	if wrong {
		f.Wrong++
		l.t.Logf("%s: %d effects, verdict %+v", mark, effects, e)
	}

	if l.Calm[mark] && e.Code != 0 {
		f.Denied++
		l.t.Logf("%s: nothing disturbed this operation, but its verdict is %+v", mark, e)
	}
}

// Judge prints the figures. It fails on anything lost, stuck, done twice, wrong or denied, and when less was executed
// than the floor requires. It returns the figures.
func (l *Ledger) Judge(id string, least Floor) Figures {
	l.t.Helper()
	f := l.Collect()
	fmt.Printf("fault %s: %s\n", id, f)
	for why, n := range f.Why {
		fmt.Printf("fault %s:   %d × %s\n", id, n, why)
	}
	if fault := f.Fault(least); fault != "" {
		l.t.Errorf("fault %s: %s: %s", id, fault, f)
	}
	return f
}
