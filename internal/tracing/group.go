package tracing

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/otlp"
)

// The stages of an attempt, in their order.
const (
	stageWait    = iota // for its turn, and for its host
	stageDeliver        // the message to the agent
	stageExecute        // by the agent
	stageVerdict        // the verdict on its way into the record
	numStages
)

var stageNames = [numStages]string{"wait", "deliver", "execute", "verdict"}

// interval is a time from the first begin to the last end. The zero value is none.
type interval struct{ begin, end time.Time }

func (v *interval) add(o interval) {
	switch {
	case o.begin.IsZero():
	case v.begin.IsZero():
		*v = o
	default:
		if o.begin.Before(v.begin) {
			v.begin = o.begin
		}
		v.end = latest(v.end, o.end)
	}
}

// group is one attempt with its verdict, or a batch of them.
type group struct {
	task     *task
	one      *attempt // nil: a batch
	name     string
	outcome  []otlp.Attr // of one attempt
	whole    interval
	stages   [numStages]interval
	measured bool
	repeated int // messages beyond the first
	verdicts verdicts
}

// newGroup is one attempt that got its verdict in a write of the record from began to now.
func newGroup(k *task, a *attempt, to gozzard.AttemptState, out *gozzard.Outcome, began, now time.Time) *group {
	g := &group{task: k, one: a, name: a.action.String(), whole: interval{k.since, latest(k.since, now)},
		outcome: outcomeAttrs(out), repeated: max(a.tries-1, 0)}
	g.verdicts.count(to, out.Code, gozzard.NothingToDo(a.action, out.Code))

	// From stage to stage. What is not known is left out.
	if !a.sent.IsZero() {
		g.stages[stageWait] = interval{k.since, latest(k.since, a.sent)}
		if !a.arrived.IsZero() {
			g.stages[stageDeliver] = interval{a.sent, latest(a.sent, a.arrived)}
		}
	}
	begin, end, measured := a.execution()
	if g.measured = measured; !begin.IsZero() {
		g.stages[stageExecute] = interval{begin, end}
	}
	if !a.reported.IsZero() {
		began = a.reported
	}
	g.stages[stageVerdict] = interval{began, latest(began, now)}
	return g
}

// merge adds another attempt.
func (g *group) merge(o *group) {
	g.one, g.outcome = nil, nil
	g.whole.add(o.whole)
	for i := range g.stages {
		g.stages[i].add(o.stages[i])
	}
	g.measured = g.measured && o.measured
	g.repeated += o.repeated
	g.verdicts.add(&o.verdicts)
}

// spans are the span of the whole and below it one for each stage that is known.
func (g *group) spans(p place, links []otlp.Link) []*otlp.Span {
	// The whole.
	whole := p.below(g.name, g.whole.begin, g.whole.end, otlp.String("gozzard.task", g.task.name),
		otlp.String("gozzard.app", g.task.app), otlp.String("gozzard.action", g.name))
	if links != nil {
		whole.Name, whole.Links = g.name+" batch", links
	}
	if a := g.one; a != nil {
		whole.Attrs = append(whole.Attrs, otlp.String("gozzard.namespace", a.key.Namespace), otlp.String("gozzard.process", a.key.Name),
			otlp.String("gozzard.agent", string(a.agent)), otlp.String("gozzard.operation", a.op.String()),
			otlp.Int("gozzard.index", int64(a.index)))
	}
	if g.repeated > 0 {
		whole.Attrs = append(whole.Attrs, otlp.Int("gozzard.messages_repeated", int64(g.repeated)))
	}
	verdict := append(g.verdicts.attrs(), g.outcome...)
	whole.Attrs = append(whole.Attrs, verdict...)
	whole.Failed, whole.Why = g.verdicts.faults(), string(g.verdicts.first)

	// Its stages.
	list := []*otlp.Span{whole}
	below := place{trace: whole.Trace, span: whole.ID, state: p.state}
	for i, v := range g.stages {
		if v.begin.IsZero() {
			continue
		}
		s := below.below(stageNames[i], v.begin, v.end)
		switch i {
		case stageExecute:
			s.Attrs = slices.Clone(verdict)
			s.Failed, s.Why = whole.Failed, whole.Why
			if !g.measured {
				s.Attrs = append(s.Attrs, otlp.Bool("gozzard.estimated"))
			}
		case stageVerdict:
			s.Attrs = g.verdicts.attrs()
		}
		list = append(list, s)
	}
	return list
}

// outcomeAttrs say what the supervisor did. Messages are left out: they may have the output of commands.
func outcomeAttrs(out *gozzard.Outcome) (list []otlp.Attr) {
	for name, is := range map[string]bool{"gozzard.killed": out.Forced, "gozzard.supervised": out.Hosted,
		"gozzard.refused_by_policy": out.Policy} {
		if is {
			list = append(list, otlp.Bool(name))
		}
	}
	if out.Detail != nil && out.Detail.PID > 0 {
		list = append(list, otlp.Int("process.pid", int64(out.Detail.PID)))
	}
	return list
}

// verdicts counts what became of attempts.
type verdicts struct {
	ok, failed, notExecuted, interrupted int64

	nothing int64        // of failed: there was nothing to do, and that is no fault
	first   gozzard.Code // of a fault
	code    gozzard.Code // of the only attempt
}

// count adds one verdict.
func (v *verdicts) count(to gozzard.AttemptState, code gozzard.Code, nothingToDo bool) {
	v.code = codeOf(code)
	switch to {
	case gozzard.AttemptOK:
		v.ok++
		return
	case gozzard.AttemptNotExecuted:
		v.notExecuted++
	case gozzard.AttemptInterrupted:
		v.interrupted++
	}
	v.failed++
	if nothingToDo {
		v.nothing++
	} else {
		v.first = v.code
	}
}

// faults reports whether something went wrong.
func (v *verdicts) faults() bool { return v.failed > v.nothing }

func (v *verdicts) add(o *verdicts) {
	v.ok, v.failed, v.nothing = v.ok+o.ok, v.failed+o.failed, v.nothing+o.nothing
	v.notExecuted, v.interrupted = v.notExecuted+o.notExecuted, v.interrupted+o.interrupted
	if v.first == "" {
		v.first = o.first
	}
	v.code = o.code
}

// attrs are the code of one attempt, or the numbers of many.
func (v *verdicts) attrs() []otlp.Attr {
	if v.ok+v.failed <= 1 {
		return []otlp.Attr{otlp.String("gozzard.verdict", string(v.code)), otlp.String("gozzard.state", v.state())}
	}
	return []otlp.Attr{otlp.Int("gozzard.operations", v.ok+v.failed), otlp.Int("gozzard.ok", v.ok),
		otlp.Int("gozzard.failed", v.failed-v.notExecuted-v.interrupted), otlp.Int("gozzard.not_executed", v.notExecuted),
		otlp.Int("gozzard.interrupted", v.interrupted)}
}

// state is that of the only attempt.
func (v *verdicts) state() string {
	switch {
	case v.ok > 0:
		return gozzard.AttemptOK.String()
	case v.notExecuted > 0:
		return gozzard.AttemptNotExecuted.String()
	case v.interrupted > 0:
		return gozzard.AttemptInterrupted.String()
	}
	return gozzard.AttemptFailed.String()
}

// codeOf is a code of the program: an agent can report any text.
func codeOf(code gozzard.Code) gozzard.Code {
	if len(code) > 32 {
		return "other"
	}
	for _, r := range code {
		if (r < 'a' || r > 'z') && r != '_' {
			return "other"
		}
	}
	return code
}
