package delivery

import (
	"flag"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

var update = flag.Bool("update", false, "write the table of states and events into DESIGN.md")

// Every pair of a state and an event has exactly one rule, and each rule says what happens or why nothing does.
func TestRulesAreTotal(t *testing.T) {
	count := [numStates][numEvents]int{}
	for _, r := range rules {
		happens := r.to != stay || r.do&^Impossible != 0
		if happens == (r.note != "") {
			t.Errorf("%v in %v: needs either an effect or a note why there is none", r.on, r.in)
		}
		if r.do.Has(Impossible) && r.do != Impossible {
			t.Errorf("%v in %v: impossible, and yet has effects", r.on, r.in)
		}
		if outward := r.do &^ schedules; bits.OnesCount32(uint32(outward)) > 1 ||
			bits.OnesCount32(uint32(r.do&schedules)) > 1 {
			t.Errorf("%v in %v: more than one effect or schedule: %v", r.on, r.in, r.do)
		}
		for _, s := range r.in {
			for _, e := range r.on {
				count[s][e]++
			}
		}
	}

	for _, s := range States() {
		for _, e := range Events() {
			if n := count[s][e]; n != 1 {
				t.Errorf("%v in %v has %d rules", e, s, n)
			}
		}
	}
}

// A verdict never changes, and asks for nothing. The same holds for what another server delivers.
func TestFinalNeverChanges(t *testing.T) {
	for _, s := range []State{Final, Elsewhere} {
		for _, e := range Events() {
			if next, do := Next(s, e); next != s || do != 0 {
				t.Errorf("%v in %v: %v, %v", e, s, next, do)
			}
		}
	}
}

// recordEvents are the events of an answer in which the record confirms that the row changed.
var recordEvents = map[EventKind][]gozzard.AttemptState{
	Dispatched: {gozzard.AttemptDispatched},
	Returned:   {gozzard.AttemptPending},
	Requeued:   {gozzard.AttemptPending},
	GivenUp:    {gozzard.AttemptUnknown},
	Settled: {gozzard.AttemptOK, gozzard.AttemptFailed, gozzard.AttemptNotExecuted,
		gozzard.AttemptInterrupted},
}

// Memory follows the record and never goes ahead of it: only an answer of the record changes what a state says of the
// record, and only as AttemptState.Sources allows.
func TestStatesAgreeWithTheRecord(t *testing.T) {
	for _, s := range States() {
		for _, e := range Events() {
			next, do := Next(s, e)
			if s == Created || do.Has(Impossible) {
				continue
			}

			if next == Elsewhere { // says nothing about the record
				continue
			}
			to, changes := recordEvents[e]
			if !changes {
				if next.Record() != s.Record() {
					t.Errorf("%v in %v: the record did not change, and the state goes to %v", e, s, next)
				}
				continue
			}

			if next == s { // the row was not this one's to change
				continue
			}
			fits := func(to gozzard.AttemptState) bool {
				return slices.Contains(to.Sources(), s.Record()) && (next.Record() == to || to.Final() && next == Final)
			}
			if !slices.ContainsFunc(to, fits) {
				t.Errorf("%v in %v: goes to %v, which the record does not allow", e, s, next)
			}
		}
	}

	// A new attempt begins in the state that the record has.
	for e, want := range map[EventKind]gozzard.AttemptState{AddedPending: gozzard.AttemptPending,
		AddedDispatched: gozzard.AttemptDispatched, FoundDispatched: gozzard.AttemptDispatched,
		FoundUnknown: gozzard.AttemptUnknown} {
		if next, _ := Next(Created, e); next.Record() != want {
			t.Errorf("%v: goes to %v", e, next)
		}
	}
}

// The work that a transition requests fits the state of the record: an operation that is sent is dispatched, one that is
// cancelled is unknown, and a verdict that is to be recorded may be recorded.
func TestEffectsAgreeWithTheRecord(t *testing.T) {
	for _, s := range States() {
		for _, e := range Events() {
			next, do := Next(s, e)
			from := next.Record()
			may := func(to gozzard.AttemptState) bool { return slices.Contains(to.Sources(), from) }
			for effect, ok := range map[Effects]bool{
				Send:      from == gozzard.AttemptDispatched,
				Cancel:    from == gozzard.AttemptUnknown,
				Release:   may(gozzard.AttemptDispatched),
				SendBack:  may(gozzard.AttemptPending),
				GiveUp:    may(gozzard.AttemptUnknown),
				Withdraw:  from == expired.from && may(expired.to),
				Supersede: from == superseded.from && may(superseded.to),
				Interrupt: from == lost.from && may(lost.to),
				Recall:    may(gozzard.AttemptNotExecuted) && !wasSent(next) && next != Stale && next != Unknown,
			} {
				if do.Has(effect) && !ok {
					t.Errorf("%v in %v: %v in %v", e, s, effect, next)
				}
			}
		}
	}
}

// The engine does not carry out work for these events, so they must request none.
func TestSomeEventsAskForNothing(t *testing.T) {
	for _, e := range append(slices.Clone(added), Dispatched, NotDispatched, Acknowledged, Requeued, Settled) {
		for _, s := range States() {
			if _, do := Next(s, e); do&^(schedules|Impossible) != 0 {
				t.Errorf("%v in %v asks for %v", e, s, do)
			}
		}
	}
}

// The timer only raises events that are possible, and none of them is the last: it is scheduled again, or the record
// answers.
func TestTimerNeverLosesAnAttempt(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	const keep = time.Hour
	for _, s := range open {
		for _, online := range []bool{false, true} {
			for _, deadline := range []time.Duration{-2 * keep, -1, 0, 1} {
				for _, expires := range []time.Duration{-1, 0, 1} {
					a := &Attempt{state: s, agent: &agent{online: online}, deadline: now.Add(deadline),
						expires: now.Add(expires)}
					e := a.dueEvent(now, keep)
					_, do := Next(s, e)
					if do.Has(Impossible) {
						t.Errorf("%v raised in %v", e, s)
					}
					if !do.Has(schedules | GiveUp | Withdraw | Interrupt | Recall) {
						t.Errorf("%v in %v: %v, and the timer does not look again", e, s, do)
					}
				}
			}
		}
	}

	// After a write that the record did not accept, the attempt is examined again.
	for e, asked := range map[EventKind]Effects{NotReturned: SendBack, NotGivenUp: GiveUp,
		NotSettled: Withdraw | Supersede | Interrupt | Recall} {
		for _, s := range open {
			for _, raised := range Events() {
				if next, do := Next(s, raised); do.Has(asked) {
					if _, do := Next(next, e); !do.Has(schedules) {
						t.Errorf("%v in %v: %v, and the timer does not look again", e, next, do)
					}
				}
			}
		}
	}
}

// DESIGN.md shows the table.
func TestDesignShowsTheTable(t *testing.T) {
	const begin, end = "<!-- table -->\n", "<!-- end of table -->\n"
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}

	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("DESIGN.md has no place for the table")
	}

	want := tableText()
	if *update {
		if err := os.WriteFile("DESIGN.md", []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Error("the table in DESIGN.md is not that of transition.go: run go test ./internal/delivery -update")
	}
}

// tableText is the table in Markdown: the next state, = for an effect without a move, . for nothing, and a blank for
// what cannot happen.
func tableText() string {
	var b strings.Builder
	columns := append([]State{Created}, open...)
	b.WriteString("| event \\ state |")
	for _, s := range columns {
		fmt.Fprintf(&b, " %v |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")

	for _, e := range Events() {
		fmt.Fprintf(&b, "| %v |", e)
		for _, s := range columns {
			next, do := Next(s, e)
			cell := "."
			switch {
			case do.Has(Impossible):
				cell = ""
			case next != s:
				cell = next.String()
			case do != 0:
				cell = "="
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}

	return b.String()
}
