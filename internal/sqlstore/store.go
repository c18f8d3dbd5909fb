// Package sqlstore keeps the record in an SQL database, SQLite or PostgreSQL, with the same SQL text for both.
// It implements control.Store, control.TopologyStore, control.AuditStore, configfile.Store, waves.Store, upgrade.Store, enrol.Store
// and auth.Store.
//
// What differs between the two databases is in sqlite.go and postgres.go. All writes go through one goroutine, which
// puts the waiting calls into one transaction and commits once (writer.go). Reads have their own connections and never
// wait for the writer (reader.go).
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Options of a store. All fields may be zero.
type Options struct {
	// Log receives warnings of the store's maintenance. nil: nothing is logged.
	Log *slog.Logger

	// Fatal is called once, when the disk of the database failed. The process must exit: the store rejects every
	// later write, and opening the database again recovers what was committed.
	Fatal func(error)

	// Lost is called when the files of the database were removed or replaced, with the reason, and when they are there
	// again, with "". nil: it is only logged.
	Lost func(reason string)

	// Sole makes this store the only one that writes to the database. A second one is rejected. SQLite always does so.
	Sole bool

	// Server names this store among several that share a PostgreSQL database. Their write transactions run one after
	// the other. A second store with the same name is rejected, and so is every one while another is Sole. "": not named.
	Server string

	// Changed is called when this store has changed facts of some kinds, with their new versions. It must be quick. nil:
	// nobody wants to know.
	Changed func(map[record.Kind]int64)

	// Now is the clock. nil: time.Now.
	Now func() time.Time

	// Observe is called after each call with its name, its duration and how it ended. nil: nothing is measured.
	Observe func(op string, d time.Duration, err error)
}

// Store is the record: tasks, attempts, hosts, processes, businesses, jobs, accounts, enrolment and the audit. It is
// safe for concurrent use. Call Close when it is no longer needed.
type Store struct {
	o          Options
	d          *dialect
	read       *reader
	w          *writer
	items      itemCache
	unchecked  bool         // see CheckStructure
	sums       *pageSums    // nil: this kind of database looks after its pages by itself
	release    func() error // releases what belongs to the kind of database, after both pools are closed
	specCursor []byte       // the last definition that pruneSpecs looked at; only the writer uses it

	closeOnce sync.Once
	closeErr  error
}

// dialect is what differs between the databases once a store is open.
type dialect struct {
	begin        string                  // opens a write transaction
	oneByOne     string                  // makes it wait for those of other stores; "": there are none
	tables       string                  // selects the names of all tables
	forUpdate    string                  // the end of a SELECT whose rows are about to be changed
	forShare     string                  // the end of a SELECT whose rows no other transaction may change before ours ends
	now          string                  // the clock of the database, in milliseconds since 1970
	sessions     *bulk                   // made by selectSessions
	jsonNumbers  func(arg string) string // a query for the integers of the JSON list in arg
	jsonTexts    func(arg string) string // a query for the texts of the JSON list in arg
	named        string                  // the list of templates in the choice of a job, as JSON
	verdicts     *bulk                   // made by selectVerdicts
	taskVerdicts *bulk                   // made by selectTaskVerdicts
	bytes        string                  // the type BYTEA in a CAST
	looseInsert  string                  // begins an INSERT that need not be undone alone when it fails
	placeholder  func(i int) string      // stands for argument i, counted from 1, in a bulk statement

	// copyRows inserts many rows at once; nil: the database has nothing faster than an INSERT.
	copyRows func(ctx context.Context, c *sql.Conn, b *bulk, n int, args func(i int, to []any) []any) error

	// readContext makes the context of a short read from that of its caller, which has not ended yet.
	readContext func(context.Context) context.Context

	// opened prepares a new connection of the writer; may be nil.
	opened func(context.Context, *sql.Conn) error
	// marks: every transaction leaves a mark, because the answer to a commit can be lost. See doubt.go.
	marks bool
	// clock converts times that servers compare with each other's; nil: there is one server.
	clock *recordClock

	// classify says what an error of the driver means.
	classify func(error) failure
	// reason says in words for callers why the database did not do something, "" if it is not known; may be nil.
	reason func(error) string

	readers   int           // connections for reads, for which they wait readerTimeout; 0: no limit
	queueTime time.Duration // how long a write waits for its turn; 0: no limit
}

// because says in words for callers why the database did not do something; "": it is not known.
func (d *dialect) because(err error) string {
	if d.reason == nil {
		return ""
	}
	return d.reason(err)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.Lost == nil {
		o.Lost = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(string, time.Duration, error) {}
	}

	return o
}

// newStore starts the writer. release is called by Close after the connections are closed.
func newStore(o Options, d *dialect, read, write *sql.DB, m maintenance, release func() error) *Store {
	s := &Store{
		o: o, d: d, read: newReader(read, d), w: newWriter(o, d, write, m),
		release: release, specCursor: []byte{},
	}
	go s.w.loop()
	return s
}

// Close finishes the transaction that is under way, rejects the queued calls with record.ErrStopped and closes the
// database. Later calls fail with record.ErrStopped.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.w.stop)
		<-s.w.stopped
		s.closeErr = errors.Join(s.w.closeErr, s.read.close(), s.w.db.Close(), s.release())
	})
	return s.closeErr
}

// Ping implements control.Store.
func (s *Store) Ping(ctx context.Context) (err error) {
	defer s.timed("ping", &err)()
	if err := s.w.writable(); err != nil {
		return err
	}
	if err := s.w.maintenance.present(); err != nil {
		return err
	}
	var n int64
	return s.readError("ping", s.read.db.QueryRowContext(ctx,
		`SELECT value FROM counters WHERE name = 'number'`).Scan(&n))
}

// timed returns a function for defer that reports the duration of a call and how it ended.
func (s *Store) timed(op string, err *error) func() {
	start := s.o.Now()
	return func() { s.o.Observe(op, s.o.Now().Sub(start), *err) }
}

// readError turns an error of a read into one that callers can act on. what names what was read.
func (s *Store) readError(what string, err error) error {
	var known *gozzard.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}

	select {
	case <-s.w.stop:
		return record.ErrStopped
	default:
	}

	if s.d.classify(err) == failStatement {
		return fmt.Errorf("cannot read %s: %w", what, err)
	}

	if why := s.d.because(err); why != "" {
		what += ": " + why
	} else if s.d.reason != nil {
		what += ": the database does not respond, try again later"
	}
	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "cannot read the database: " + what, Cause: err}
}
