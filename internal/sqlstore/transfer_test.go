//go:build !windows

package sqlstore_test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TestTransfer: a record goes to PostgreSQL and back, whole. A record that is not new is not overwritten.
func TestTransfer(t *testing.T) {
	from := openSQLite(t, filled(t), sqlstore.Options{})
	if _, err := from.SaveBusiness(t.Context(), benchBusiness(5), record.SourceFile, topologyAudit()); err != nil {
		t.Fatal(err)
	}
	j, tasks := benchJob(3)
	if err := from.CreateJob(t.Context(), &j, tasks); err != nil {
		t.Fatal(err)
	}
	events := benchEvents(0, 300)
	if _, err := from.AddEvents(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	between, err := sqlstore.OpenPostgres(t.Context(), startPostgres(t, "off"), sqlstore.Options{Sole: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := between.Close(); err != nil {
			t.Error(err)
		}
	})
	back := openSQLite(t, filepath.Join(t.TempDir(), "back.db"), sqlstore.Options{})
	silent := func(string, int64) {}

	there, err := sqlstore.Transfer(t.Context(), from, between, silent)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sqlstore.Transfer(t.Context(), between, back, silent)
	if err != nil {
		t.Fatal(err)
	}
	if there != again || there.Rows < 1000 || there.Audit.Seq == 0 {
		t.Errorf("there: %+v, back: %+v", there, again)
	}

	// The copy works on: it numbers tasks where the original ended.
	for _, s := range []*sqlstore.Store{from, between, back} {
		acc, err := s.Accept(t.Context(), benchTask(2))
		if err != nil || acc.Task.Seq < 6 {
			t.Errorf("task %d, %v", acc.Task.Seq, err)
		}
		if list, err := s.Attempts(t.Context(), 1); err != nil || len(list) != 200 {
			t.Errorf("%d attempts, %v", len(list), err)
		}
		wantEvents(t, s, events)
	}
	if _, err := sqlstore.Transfer(t.Context(), from, between, silent); err == nil ||
		!strings.Contains(err.Error(), "has a record already") {
		t.Errorf("a second copy: %v", err)
	}
}

// wantEvents checks that a record has some events, does not record them again, and goes on behind them.
func wantEvents(t *testing.T, s *sqlstore.Store, want []record.Event) {
	t.Helper()
	last := want[len(want)-1].ID
	got, err := s.Events(t.Context(), record.EventQuery{UpTo: last, Limit: len(want) + 1})
	if err != nil {
		t.Fatal(err)
	}
	want = append([]record.Event(nil), want...)
	again := append([]record.Event(nil), want...)
	for i := range want {
		want[i].Seq = 0
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}

	again = append(again, benchEvents(len(want), 1)...)
	if before, err := s.AddEvents(t.Context(), again); err != nil || before != last || again[0].ID != 0 ||
		again[len(want)].ID <= last {
		t.Errorf("after number %d comes %d: %v", before, again[len(want)].ID, err)
	}
}
