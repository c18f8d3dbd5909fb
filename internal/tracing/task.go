package tracing

import (
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/otlp"
	"github.com/gozzard/gozzard/internal/taskname"
)

// firstBatch is how long the first batch of a task lasts. Each further one lasts twice as long, so the spans of a task are few
// however long it takes.
const firstBatch = 250 * time.Millisecond

// task is a task that is followed.
type task struct {
	place    place // of its request
	name     string
	app      string
	since    time.Time // since when its attempts wait to be sent
	attempts map[gozzard.OpID]*attempt
	done     int

	// Of a task with many attempts.
	large     bool
	batch     *group
	batchEnds time.Time
	lasts     time.Duration
	batches   []otlp.Link
	verdicts  verdicts
}

func newTask(k *gozzard.Task, p place, since time.Time) *task {
	return &task{place: p, name: taskname.Of(k.ID), app: k.Caller.App, since: since, attempts: map[gozzard.OpID]*attempt{},
		large: k.Targets > maxSingle, lasts: firstBatch}
}

// open counts the attempts without a verdict.
func (k *task) open() int { return len(k.attempts) - k.done }

// addToBatch adds what became of one attempt to the present batch.
func (k *task) addToBatch(g *group, now time.Time) (spans []*otlp.Span) {
	k.verdicts.add(&g.verdicts)
	if k.batch != nil && !now.Before(k.batchEnds) {
		spans = k.endBatch()
	}
	if k.batch == nil {
		k.batch, k.batchEnds = g, now.Add(k.lasts)
		k.lasts *= 2
		return spans
	}
	k.batch.merge(g)
	return spans
}

// endBatch makes the spans of the present batch: a trace of its own, with a link to that of the request.
func (k *task) endBatch() []*otlp.Span {
	g := k.batch
	k.batch = nil
	spans := g.spans(place{trace: newTraceID()}, []otlp.Link{k.place.link()})
	k.batches = append(k.batches, otlp.Link{Trace: spans[0].Trace, Span: spans[0].ID})
	return spans
}

// end makes the last spans of a task: those of its last batch, and one for the whole with links to all batches.
func (k *task) end(now time.Time) (spans []*otlp.Span) {
	if !k.large {
		return nil
	}
	if k.batch != nil {
		spans = k.endBatch()
	}
	s := k.place.below(fmt.Sprintf("%d operations", len(k.attempts)), k.since, now, otlp.String("gozzard.task", k.name),
		otlp.String("gozzard.app", k.app))
	s.Attrs = append(s.Attrs, k.verdicts.attrs()...)
	s.Links, s.Failed, s.Why = k.batches, k.verdicts.faults(), string(k.verdicts.first)
	return append(spans, s)
}
