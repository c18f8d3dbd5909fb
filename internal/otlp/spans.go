package otlp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// The limits of the queue of spans.
const (
	MaxQueue  = 8192                   // spans that wait; more are dropped and counted
	maxBatch  = 512                    // spans in one request
	linger    = 500 * time.Millisecond // how long the first span of a request waits for others
	lastFlush = 3 * time.Second        // for what waits when the program ends
)

// Counts says what became of spans.
type Counts struct {
	Sent     uint64
	Full     uint64 // dropped: the queue was full
	Refused  uint64 // dropped: the collector did not take them
	Failures uint64 // requests that failed, whether they were repeated or not
}

// Spans is a queue of spans on their way to a collector.
type Spans struct {
	c     *Client
	queue chan *Span

	sent, full, refused, failures atomic.Uint64
	down                          bool // the last request failed; only Run uses it
}

// NewSpans makes an empty queue.
func NewSpans(c *Client) *Spans { return &Spans{c: c, queue: make(chan *Span, MaxQueue)} }

// Add queues spans and never waits.
func (s *Spans) Add(list ...*Span) {
	for _, span := range list {
		select {
		case s.queue <- span:
		default:
			s.full.Add(1)
		}
	}
}

// Counts says what became of spans so far.
func (s *Spans) Counts() Counts {
	return Counts{Sent: s.sent.Load(), Full: s.full.Load(), Refused: s.refused.Load(), Failures: s.failures.Load()}
}

// Run sends spans until ctx ends, and then for a few seconds what is queued.
func (s *Spans) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			s.flush()
			return nil
		case first := <-s.queue:
			s.send(ctx, s.gather(ctx, first))
		}
	}
}

// gather waits a little for more spans.
func (s *Spans) gather(ctx context.Context, first *Span) []*Span {
	batch := append(make([]*Span, 0, maxBatch), first)
	late := time.NewTimer(linger)
	defer late.Stop()
	for len(batch) < maxBatch {
		select {
		case span := <-s.queue:
			batch = append(batch, span)
		case <-late.C:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// flush sends what is queued, each span once.
func (s *Spans) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
	defer cancel()
	for ctx.Err() == nil {
		batch := make([]*Span, 0, maxBatch)
		for len(batch) < maxBatch && len(s.queue) > 0 {
			batch = append(batch, <-s.queue)
		}
		if len(batch) == 0 || s.post(ctx, batch) != nil {
			return
		}
	}
}

// send sends a batch, again and again while the collector may come back: what comes meanwhile waits in the queue or is
// dropped.
func (s *Spans) send(ctx context.Context, batch []*Span) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := s.post(ctx, batch)
		if err == nil {
			return
		}
		if ctx.Err() != nil { // flush has the rest of the time
			s.Add(batch...)
			return
		}

		var p *postError
		if !errors.As(err, &p) || !p.again {
			s.refused.Add(uint64(len(batch)))
			return
		}
		wait := max(p.wait, pause/2+rand.N(pause/2))
		select {
		case <-ctx.Done():
			s.Add(batch...)
			return
		case <-time.After(wait):
		}
	}
}

// post sends a batch once.
func (s *Spans) post(ctx context.Context, batch []*Span) error {
	list := make([]*tracepb.Span, len(batch))
	for i, span := range batch {
		list[i] = span.encode()
	}
	message := &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{Resource: s.c.resource,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: s.c.scope(), Spans: list}}}}}

	var answer collectorpb.ExportTraceServiceResponse
	err := s.c.post(ctx, "/v1/traces", message, &answer)
	s.note(ctx, err)
	if err != nil {
		s.failures.Add(1)
		return err
	}
	refused := min(max(answer.GetPartialSuccess().GetRejectedSpans(), 0), int64(len(batch)))
	s.refused.Add(uint64(refused))
	s.sent.Add(uint64(len(batch)) - uint64(refused))
	return nil
}

// note logs when the collector fails, and when it is back.
func (s *Spans) note(ctx context.Context, err error) {
	switch {
	case err != nil && !s.down && ctx.Err() == nil:
		s.c.o.Log.Warn("cannot send traces; the server goes on without them", "collector", s.c.base, "err", err)
	case err == nil && s.down:
		s.c.o.Log.Info("traces are sent again", "collector", s.c.base)
	}
	s.down = err != nil
}

// scope says which part of the program makes the data.
func (c *Client) scope() *commonpb.InstrumentationScope {
	return &commonpb.InstrumentationScope{Name: "gozzard", Version: c.o.Version}
}
