// Package sqlstore is the record on SQL: control.Store, control.TopologyStore and rollout.Store with one SQL text
// for SQLite and PostgreSQL.
//
// What differs between the two is in sqlite.go and postgres.go. All writes go through one goroutine, which puts the
// calls that wait into one transaction and commits once (writer.go); reads have their own connections and never
// wait for it.
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
	Log     *slog.Logger
	Fatal   func(error)      // called when the disk failed under the record; the process must end and recover
	Now     func() time.Time // time.Now
	Observe func(op string, d time.Duration, err error)
}

// Store is the record. Close it to give the database up.
type Store struct {
	o       Options
	d       *dialect
	read    *reader
	w       *writer
	items   shelf
	closing func() error // what belongs to the kind of database, after both pools are closed
	swept   []byte       // the last definition that sweep looked at; of the writer

	closeOnce sync.Once
	closeErr  error
}

// dialect is what differs between the databases after a store is open.
type dialect struct {
	begin     string                  // opens a write transaction
	forUpdate string                  // ends a SELECT whose rows are about to be changed
	sessions  *bulk                   // selectSessions
	numbers   func(arg string) string // the integers of a JSON list as a query
	words     func(arg string) string // the texts of one
	place     func(i int) string      // stands for argument i, from 1, in a bulk statement
	// the context of a short read: whether its caller is still there was looked at before
	reading  func(context.Context) context.Context
	classify func(error) failure
}

// failure says what an error of the database means for the transaction it happened in.
type failure uint8

const (
	failOther  failure = iota // of the statement alone
	failFull                  // no room; the transaction may be gone
	failRetry                 // another transaction was in the way: the same again may go well
	failBroken                // the connection or the transaction is gone, nothing is known of the database
	failFatal                 // the disk failed or lies: nothing may be acknowledged any more
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(string, time.Duration, error) {}
	}

	return o
}

func newStore(o Options, d *dialect, read, write *sql.DB, keep keeper, closing func() error) *Store {
	s := &Store{o: o, d: d, read: newReader(read, d), closing: closing, swept: []byte{},
		w: newWriter(o, d, write, keep)}
	go s.w.loop()
	return s
}

// Close ends the writer after the transaction it is at, refuses what is queued with control.ErrStopped and closes
// the database.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.w.stop)
		<-s.w.stopped
		s.closeErr = errors.Join(s.w.closeErr, s.read.close(), s.w.db.Close(), s.closing())
	})
	return s.closeErr
}

// Ping implements control.Store.
func (s *Store) Ping(ctx context.Context) (err error) {
	defer s.timed("ping", &err)()
	if err := s.w.alive(); err != nil {
		return err
	}
	var n int64
	return s.readError("ping", s.read.db.QueryRowContext(ctx,
		`SELECT value FROM counters WHERE name = 'number'`).Scan(&n))
}

// timed reports the duration of a call and how it ended; use it with defer.
func (s *Store) timed(op string, err *error) func() {
	start := s.o.Now()
	return func() { s.o.Observe(op, s.o.Now().Sub(start), *err) }
}

// readError turns an error of a read into one for callers.
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

	if s.d.classify(err) == failOther {
		return fmt.Errorf("cannot read %s: %w", what, err)
	}

	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "the record cannot be read: " + what, Cause: err}
}
