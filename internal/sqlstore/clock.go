package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Servers that share a record have clocks of their own. One of them writes until when an attempt may wait or run, and another
// one compares that with its clock. So these times are recorded by the clock of the database, and each server converts them.
// Other times are only shown, or compared in days.

const (
	// clockTolerance is a difference that does no harm. Below it nothing is converted.
	clockTolerance = 2 * time.Second

	// clockPrecision is how long a look at the clock of the database may take. After a longer one it is not known what the time
	// was here when the database looked: this server may have been frozen.
	clockPrecision = time.Second
)

// recordClock converts between the clock of this server and that of the database. A nil *recordClock converts nothing.
type recordClock struct {
	log   *slog.Logger
	ahead atomic.Int64 // milliseconds that this server's clock is ahead of the database's
}

// compare notes what the clock of the database was at a moment between two of this server's.
func (k *recordClock) compare(database int64, before, after time.Time) {
	if k == nil || after.Sub(before) > clockPrecision {
		return
	}
	ahead := before.Add(after.Sub(before)/2).UnixMilli() - database
	if -clockTolerance.Milliseconds() < ahead && ahead < clockTolerance.Milliseconds() {
		ahead = 0
	}

	was := k.ahead.Swap(ahead)
	switch {
	case was == 0 && ahead != 0:
		k.log.Warn("the clock of this server is not that of the database: times in its log and its lists are wrong. Set the clocks "+
			"of all machines by a time service (NTP)", "ahead", (time.Duration(ahead) * time.Millisecond).String())
	case was != 0 && ahead == 0:
		k.log.Info("the clock of this server is that of the database again")
	}
}

// look compares the clocks before anything is read.
func (k *recordClock) look(ctx context.Context, db *sql.DB, now string, clock func() time.Time) error {
	var database int64
	before := clock()
	if err := db.QueryRowContext(ctx, "SELECT "+now).Scan(&database); err != nil {
		return fmt.Errorf("cannot read the clock of the database: %w", err)
	}
	k.compare(database, before, clock())
	return nil
}

// millis is how far this server's clock is ahead, in milliseconds.
func (k *recordClock) millis() int64 {
	if k == nil {
		return 0
	}
	return k.ahead.Load()
}

// recorded is a time of this server as the record has it.
func (k *recordClock) recorded(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return millis(t) - k.millis()
}

// here is a recorded time by the clock of this server.
func (k *recordClock) here(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Duration(k.millis()) * time.Millisecond)
}
