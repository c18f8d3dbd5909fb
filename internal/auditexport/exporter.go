package auditexport

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/lease"
)

// How rows are sent.
const (
	batchRows = 256
	batchTime = time.Minute // for one batch, to connect, send and be acknowledged
	pollEvery = time.Second // how often the record is asked for new rows
	minWait   = time.Second // after a failure; doubled each time
	maxWait   = time.Minute
)

// Store is the part of the record that an exporter uses.
type Store interface {
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	AuditText(ctx context.Context, digest [32]byte) ([]byte, error)
	ExportPosition(ctx context.Context, name string) (gozzard.AuditHead, error)
	SaveExportPosition(ctx context.Context, name string, at gozzard.AuditHead, now time.Time) error
}

// Message is one row on its way.
type Message struct {
	Seq  int64
	Hash gozzard.AuditHash
	At   time.Time
	Act  string
	JSON []byte // a client.AuditExport, without a line break
}

// Sink is where rows go.
type Sink interface {
	// Send returns nil when the receiver has all messages. After an error the same messages are sent again, with others
	// behind them.
	Send(ctx context.Context, list []Message) error
	Close() error
}

// Options are the parts of an Exporter. Name, Store and Sink are required.
type Options struct {
	Name  string // of the position in the record, and of the metrics: a word of the program
	Store Store
	Sink  Sink
	Log   *slog.Logger
	// Observe is called after every try, with the number of the newest row that was delivered and how long the oldest
	// other row waits; may be nil
	Observe func(name string, row int64, lag time.Duration, err error)
	Poll    time.Duration // 0: one second
	MinWait time.Duration // 0: one second
}

// Exporter sends rows to one sink. It holds one batch in memory.
type Exporter struct {
	o Options

	mu    sync.Mutex
	since time.Time // of the first failure in a row; zero while all is well
}

// New makes an Exporter.
func New(o Options) *Exporter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(string, int64, time.Duration, error) {}
	}
	if o.Poll <= 0 {
		o.Poll = pollEvery
	}
	if o.MinWait <= 0 {
		o.MinWait = minWait
	}
	return &Exporter{o: o}
}

// Name is the name of the export.
func (e *Exporter) Name() string { return e.o.Name }

// Close closes the sink.
func (e *Exporter) Close() error { return e.o.Sink.Close() }

// Failing is since when nothing can be delivered; zero while all is well.
func (e *Exporter) Failing() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.since
}

// Detail says since when rows wait; "" while all is well. It is open to everybody, so it does not say why.
func (e *Exporter) Detail() string {
	if since := e.Failing(); !since.IsZero() {
		return fmt.Sprintf("the audit export %s fails since %s: see the log", e.o.Name, since.UTC().Format(time.RFC3339))
	}
	return ""
}

// Run sends rows until ctx ends. A receiver that does not answer delays nothing but its own rows. Run may be called again:
// it reads the position from the record, because another server may have sent rows meanwhile.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.note(nil)
	wait, tries := e.o.MinWait, 0
	var at gozzard.AuditHead
	for known := false; ; {
		// Send what there is.
		var n int
		var lag time.Duration
		err := e.load(ctx, &known, &at)
		if err == nil {
			n, lag, err = e.step(ctx, &at)
		}
		if ctx.Err() != nil {
			return nil
		}
		e.note(err)
		e.o.Observe(e.o.Name, at.Seq, lag, err)

		// Wait for more, or longer and longer after failures.
		pause := e.o.Poll
		switch {
		case err != nil:
			if tries++; tries&(tries-1) == 0 { // the log does not repeat every try
				e.o.Log.Error("cannot export the audit, trying again", "export", e.o.Name, "tries", tries, "after", at.Seq,
					"err", err)
			}
			pause = wait/2 + rand.N(wait)
			wait = min(2*wait, maxWait)
		case n == batchRows:
			pause = 0
			fallthrough
		default:
			if tries > 0 {
				e.o.Log.Info("the audit is exported again", "export", e.o.Name, "tries", tries)
			}
			wait, tries = e.o.MinWait, 0
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// load reads the position once.
func (e *Exporter) load(ctx context.Context, known *bool, at *gozzard.AuditHead) (err error) {
	if *known {
		return nil
	}
	if *at, err = e.o.Store.ExportPosition(ctx, e.o.Name); err == nil {
		*known = true
	}
	return err
}

func (e *Exporter) note(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.since = time.Time{}
	case e.since.IsZero():
		e.since = time.Now()
	}
}

// step sends the next batch and moves the position behind it. It returns how many rows it sent, and after a failure how
// long the oldest of them waits.
func (e *Exporter) step(ctx context.Context, at *gozzard.AuditHead) (n int, lag time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()

	// Read the rows.
	rows, err := e.o.Store.AuditAfter(ctx, at.Seq, batchRows)
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	lag = max(0, time.Since(rows[0].At))
	list := make([]Message, 0, len(rows))
	next := *at
	for i := range rows {
		m, err := e.message(ctx, &rows[i], next.Hash)
		if err != nil {
			return 0, lag, err
		}
		list = append(list, m)
		next = gozzard.AuditHead{Seq: rows[i].Seq, Hash: rows[i].Hash}
	}

	// Send them, then move on. If the position is not stored, they are sent again.
	if err := lease.Check(ctx); err != nil {
		return 0, lag, err
	}
	if err := e.o.Sink.Send(ctx, list); err != nil {
		return 0, lag, err
	}
	if err := e.o.Store.SaveExportPosition(ctx, e.o.Name, next, time.Now()); err != nil {
		return 0, lag, fmt.Errorf("cannot store the position: %w", err)
	}
	*at = next
	return len(rows), 0, nil
}

// message makes the message of a row.
func (e *Exporter) message(ctx context.Context, l *gozzard.AuditLink, prev gozzard.AuditHash) (Message, error) {
	x, err := client.NewAuditExport(l, prev,
		func(digest [32]byte) ([]byte, error) { return e.o.Store.AuditText(ctx, digest) })
	if err != nil {
		return Message{}, err
	}
	b, err := json.Marshal(x)
	if err != nil {
		return Message{}, fmt.Errorf("cannot encode audit row %d: %w", l.Seq, err)
	}
	return Message{Seq: l.Seq, Hash: l.Hash, At: l.At, Act: l.Act, JSON: b}, nil
}
