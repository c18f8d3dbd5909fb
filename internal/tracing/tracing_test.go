package tracing_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/otlp"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/tracing"
)

// sink collects spans.
type sink struct{ spans []*otlp.Span }

func (s *sink) Add(list ...*otlp.Span) { s.spans = append(s.spans, list...) }

func (s *sink) find(name string) *otlp.Span {
	for _, span := range s.spans {
		if span.Name == name {
			return span
		}
	}
	return nil
}

const parent = gozzard.Trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// rig is a tracer with a clock that a test sets.
type rig struct {
	*tracing.Tracer
	sink
	now time.Time
}

func newRig() *rig {
	r := &rig{now: time.Unix(1_700_000_000, 0)}
	r.Tracer = tracing.New(tracing.Options{Sink: &r.sink, Ratio: 1, Callers: tracing.Follow, Rate: 1000,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.now }})
	return r
}

// launch makes a task with attempts on as many agents known, and sends them.
func (r *rig) launch(n int) []gozzard.Attempt {
	k := &gozzard.Task{Seq: 7, ID: gozzard.NewTaskID(7, r.now), At: r.now, Targets: n, Trace: parent}
	list := make([]gozzard.Attempt, n)
	for i := range list {
		list[i] = gozzard.Attempt{Ref: gozzard.AttemptRef{Task: 7, Index: int32(i)}, Op: gozzard.NewOpID(), Action: gozzard.ActionStart,
			Agent: gozzard.AgentID(strings.Repeat("a", i+1)), State: gozzard.AttemptDispatched, Key: gozzard.Key{Namespace: "gse", Name: "web"}}
	}
	r.Launched(k, list)
	r.now = r.now.Add(time.Second)
	for i := range list {
		a := &list[i]
		cmd := &gozzard.Command{Kind: gozzard.CommandOperate, Ops: []gozzard.Op{{ID: a.Op, Ref: a.Ref}}}
		r.Sent(a.Agent, cmd)
		if cmd.Ops[0].Trace != parent {
			panic("the command has no trace")
		}
	}
	return list
}

func (r *rig) report(a *gozzard.Attempt, from gozzard.AgentID, held, waited, ran time.Duration) {
	r.Reported(from, []gozzard.OpReport{{ID: a.Op, Ref: a.Ref, Phase: gozzard.PhaseDone, Held: held, Waited: waited, Ran: ran,
		Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}})
}

func (r *rig) settle(a *gozzard.Attempt, code gozzard.Code, to gozzard.AttemptState) {
	r.Settled([]record.Settlement{{Ref: a.Ref, Op: a.Op, Agent: a.Agent, To: to, Outcome: gozzard.Outcome{Code: code}}},
		[]bool{true}, r.now)
}

// TestTimesOfAnAgent: whatever times an agent reports, its work is drawn between the message to it and its report, and another
// agent changes nothing.
func TestTimesOfAnAgent(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		held, waited, ran time.Duration
		begin, end        time.Duration // after the sending; the report comes 10 s after it
	}{
		"honest":        {8 * s, 2 * s, 5 * s, 3 * s, 8 * s},
		"an older one":  {8 * s, 0, 0, 1 * s, 9 * s},
		"too long":      {1 << 62, 1 << 62, 1 << 62, 10 * s, 10 * s},
		"negative":      {8 * s, -1 << 62, 1, 1 * s, 1*s + 1},
		"longer inside": {2 * s, 5 * s, 5 * s, 9 * s, 10 * s},
	} {
		r := newRig()
		list := r.launch(2)
		a, sent := &list[0], r.now
		r.now = r.now.Add(5 * s)
		r.report(a, list[1].Agent, s, s, s) // it is not this agent's
		r.now = r.now.Add(5 * s)
		r.report(a, a.Agent, c.held, c.waited, c.ran)
		r.now = r.now.Add(s)
		r.settle(a, gozzard.CodeOK, gozzard.AttemptOK)

		e := r.find("execute")
		if e == nil || e.Start.Sub(sent) != c.begin || e.End.Sub(sent) != c.end {
			t.Errorf("%s: %+v, expected %s to %s after %s", name, e, c.begin, c.end, sent)
		}
		for _, span := range r.spans {
			if span.End.Before(span.Start) || span.End.After(r.now) {
				t.Errorf("%s: %s is from %s to %s", name, span.Name, span.Start, span.End)
			}
		}
	}
}

// TestVerdictsInSpans: a fault is marked as one, and what an agent makes up as a code is not shown.
func TestVerdictsInSpans(t *testing.T) {
	for code, want := range map[gozzard.Code]struct {
		status string
		failed bool
	}{
		gozzard.CodeOK:             {"", false},
		gozzard.CodeAlreadyRunning: {"", false},
		gozzard.CodeCommandFailed:  {"command_failed", true},
		"password=1":               {"other", true},
	} {
		r := newRig()
		a := r.launch(1)[0]
		r.report(&a, a.Agent, 1, 1, 1)
		to := gozzard.AttemptFailed
		if code == gozzard.CodeOK {
			to = gozzard.AttemptOK
		}
		r.settle(&a, code, to)
		if s := r.find("start"); s == nil || s.Failed != want.failed || s.Why != want.status {
			t.Errorf("%s: %+v", code, s)
		}
	}
}

// TestSpansOfLargeTasks: 1,000 verdicts that come one by one, over a quarter of an hour, make few spans.
func TestSpansOfLargeTasks(t *testing.T) {
	r := newRig()
	list := r.launch(1000)
	for i := range list {
		r.now = r.now.Add(900 * time.Millisecond)
		r.report(&list[i], list[i].Agent, 1, 1, 1)
		r.settle(&list[i], gozzard.CodeOK, gozzard.AttemptOK)
	}
	whole := r.find("1000 operations")
	if whole == nil || len(whole.Links) > 15 || len(r.spans) > 80 {
		t.Fatalf("%d spans, %+v", len(r.spans), whole)
	}
	t.Logf("%d spans, %d batches", len(r.spans), len(whole.Links))
}
