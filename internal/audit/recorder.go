package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Bounds of what refusals write: at most maxKinds different events a minute get rows of their own, each at most two. Of
// one app, and of all strangers together, at most maxKindsOfApp do. Further ones share one row for each act.
const (
	window        = time.Minute
	maxKinds      = 64
	maxKindsOfApp = 16
	writeTime     = 10 * time.Second
	flushTick     = 5 * time.Second
)

// Store is the part of the record that a Recorder writes to.
type Store interface {
	AddAudit(ctx context.Context, rows []gozzard.AuditRow) error
}

// Options are the parts of a Recorder. Store is required.
type Options struct {
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Recorder writes rows about refusals, about reads of contents, and about numbers of equal queries. The first event of a kind gets
// its row at once. Those that are equal to it are counted, and their number is a second row at the end of the minute. It is safe for concurrent use.
type Recorder struct {
	o    Options
	wake chan struct{}

	mu      sync.Mutex
	counts  map[event]*count
	queries map[query]*queryCount
	reads   map[query]*queryCount // of contents, by Read
	ended   bool                  // the last rows are being written: nothing is counted any more

	unwritten []gozzard.AuditRow // of Run: rows that the record did not take
}

// count is the events of one kind since a time.
type count struct {
	since time.Time
	id    string // of the newest request
	said  bool   // the first event has its row
	more  int    // events since
}

// New makes a Recorder. Run must be called: it writes the rows.
func New(o Options) *Recorder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Recorder{o: o, wake: make(chan struct{}, 1), counts: map[event]*count{}, queries: map[query]*queryCount{},
		reads: map[query]*queryCount{}}
}

// note counts an event.
func (r *Recorder) note(e event) {
	id := e.id
	e.id = ""

	r.mu.Lock()
	c := r.counts[e]
	if c == nil && r.kindsOf(e.caller.App) >= maxKindsOfApp { // one caller must not hide what others do
		e = event{act: e.act, caller: gozzard.Caller{App: e.caller.App}, about: othersAbout}
		c = r.counts[e]
	}
	if c == nil && len(r.counts) >= maxKinds {
		e = event{act: e.act, about: othersAbout}
		c = r.counts[e]
	}
	fresh := c == nil
	if fresh {
		c = &count{since: r.o.Now(), id: id}
		r.counts[e] = c
	} else {
		c.more++
		c.id = id
	}
	r.mu.Unlock()

	if fresh {
		select {
		case r.wake <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// kindsOf is how many kinds of events an app has, "" for strangers. The caller holds mu.
func (r *Recorder) kindsOf(app string) (n int) {
	for e := range r.counts {
		if e.caller.App == app {
			n++
		}
	}
	return n
}

// Run writes rows until ctx ends, also at the end.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(flushTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.flush(context.WithoutCancel(ctx), true)
			return nil
		case <-r.wake:
		case <-tick.C:
		}
		r.flush(ctx, false)
	}
}

// flush writes what is due. Rows that the record does not take are tried again; events are counted meanwhile.
func (r *Recorder) flush(ctx context.Context, all bool) {
	if len(r.unwritten) == 0 {
		r.unwritten = r.due(all)
	}
	if len(r.unwritten) == 0 {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := r.o.Store.AddAudit(ctx, r.unwritten); err != nil {
		r.o.Log.Error("cannot record refused requests and numbers of queries in the audit, trying again", "rows", len(r.unwritten), "err", err)
		return
	}
	r.unwritten = nil
}

// due takes out the rows that are to be written now.
func (r *Recorder) due(all bool) (rows []gozzard.AuditRow) {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for e, c := range r.counts {
		ended := all || now.Sub(c.since) >= window
		switch {
		case !c.said:
			rows = append(rows, row(e, c.id, c.since, 1+c.more))
			c.said, c.more = true, 0
		case ended && c.more > 0:
			rows = append(rows, row(e, c.id, now, c.more))
		}
		if ended {
			delete(r.counts, e)
		}
	}
	r.ended = all
	return append(rows, r.dueQueries(now, all)...)
}

func row(e event, id string, at time.Time, n int) gozzard.AuditRow {
	return gozzard.AuditRow{At: at, Caller: e.caller, Act: e.act, Outcome: e.about, Count: n,
		Origin: gozzard.Origin{Door: e.door, Source: e.source, RequestID: id}}
}
