package audit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/audit"
)

// held is a record of rows. It fails while broken is set.
type held struct {
	mu     sync.Mutex
	rows   []gozzard.AuditRow
	broken bool
}

func (h *held) AddAudit(_ context.Context, rows []gozzard.AuditRow) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken {
		return errors.New("no space")
	}
	h.rows = append(h.rows, rows...)
	return nil
}

// last is how many rows there are, and the newest one.
func (h *held) last() (n int, row gozzard.AuditRow) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n = len(h.rows); n > 0 {
		row = h.rows[n-1]
	}
	return n, row
}

func (h *held) count() (rows, events int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.rows {
		events += max(1, h.rows[i].Count)
	}
	return len(h.rows), events
}

// TestTR11StrangersCannotFillTheRecord: 100,000 wrong logins, from one address and from thousands, make few rows, and
// the numbers in them are right. A record that takes nothing for a while loses none.
func TestTR11StrangersCannotFillTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{broken: true}
		r := audit.New(audit.Options{Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()

		const minutes, events = 3, 33_000
		for minute := range minutes {
			for i := range events {
				source := "192.0.2.1"
				if i%2 == 1 {
					source = fmt.Sprintf("198.51.100.%d", i%5000)
				}
				from := gozzard.WithOrigin(audit.With(t.Context(), r), gozzard.Origin{Door: "api", Source: source,
					RequestID: gozzard.NewRequestID()})
				audit.Refused(from, gozzard.Caller{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "wrong"))
			}
			time.Sleep(20 * time.Second)
			store.mu.Lock()
			store.broken = minute == 0
			store.mu.Unlock()
			time.Sleep(50 * time.Second)
		}

		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		rows, counted := store.count()
		if counted != minutes*events {
			t.Errorf("%d of %d events are counted", counted, minutes*events)
		}
		if rows < 2 || rows > minutes*70 {
			t.Errorf("%d rows", rows)
		}
	})
}

// Errors that are no refusals have no row, and neither has anything without a recorder.
func TestOtherErrors(t *testing.T) {
	store := &held{}
	r := audit.New(audit.Options{Store: store})
	ctx, cancel := context.WithCancel(audit.With(t.Context(), r))
	for _, err := range []error{nil, errors.New("x"), gozzard.Errorf(gozzard.ErrNotFound, "x"),
		gozzard.Errorf(gozzard.ErrInvalid, "x"), gozzard.Errorf(gozzard.ErrRateLimited, "x")} {
		audit.Refused(ctx, gozzard.Caller{App: "a"}, err)
	}
	audit.Refused(t.Context(), gozzard.Caller{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "x"))
	audit.Refused(ctx, gozzard.Caller{App: "a"}, gozzard.Errorf(gozzard.ErrAppForbidden, "app a may not"))

	cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if rows, _ := store.count(); rows != 1 || store.rows[0].Act != audit.ActRight ||
		store.rows[0].Outcome != "app a may not" {
		t.Errorf("rows: %+v", store.rows)
	}
}
