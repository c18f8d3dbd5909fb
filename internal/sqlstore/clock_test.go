//go:build !windows

package sqlstore_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// lines collects a log.
type lines struct {
	sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.Lock()
	defer l.Unlock()
	return l.text.String()
}

// wrongClock is a store of a server whose clock is wrong.
type wrongClock struct {
	*sqlstore.Store
	now func() time.Time
	log lines
}

func openWrong(t *testing.T, address, server string, wrong time.Duration) *wrongClock {
	t.Helper()
	w := &wrongClock{now: func() time.Time { return time.Now().Add(wrong) }}
	s, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Server: server, Now: w.now,
		Log: slog.New(slog.NewTextHandler(&w.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Store = s
	return w
}

// about fails if a duration is not the wanted one. A busy machine takes some time.
func about(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if diff := got - want; diff < -time.Minute || diff > time.Minute {
		t.Errorf("%s: %s, want about %s", what, got, want)
	}
}

// TestClocksApart: servers whose clocks are ten minutes apart agree on how much time an attempt has left, on leases, and on
// which of them run.
func TestClocksApart(t *testing.T) {
	address := startPostgres(t, "off")
	behind, ahead := openWrong(t, address, "behind", -5*time.Minute), openWrong(t, address, "ahead", 5*time.Minute)
	exact := openWrong(t, address, "exact", 0)
	all := []*wrongClock{behind, ahead, exact}

	// Attempts that each of them accepts and each of them reads.
	for i, from := range all {
		task := benchTask(1)
		task.Attempts[0].Agent = gozzard.AgentID(strings.Repeat("0", 31) + string(rune('1'+i)))
		task.Attempts[0].Deadline, task.Attempts[0].Expires = from.now().Add(2*time.Minute), from.now().Add(3*time.Minute)
		if _, err := from.Accept(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		for _, to := range all {
			list, err := to.OpenOf(t.Context(), []gozzard.AgentID{task.Attempts[0].Agent})
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			about(t, from.Writer()+" to "+to.Writer()+", deadline", list[0].Deadline.Sub(to.now()), 2*time.Minute)
			about(t, from.Writer()+" to "+to.Writer()+", end of the wait", list[0].Expires.Sub(to.now()), 3*time.Minute)
		}
	}

	// A lease that one of them has.
	if got, err := ahead.ClaimLeases(t.Context(), "ahead", []string{"work"}, nil, time.Minute); err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	for _, other := range []*wrongClock{behind, exact} {
		if got, err := other.ClaimLeases(t.Context(), other.Writer(), []string{"work"}, nil, time.Minute); err != nil || len(got) != 0 {
			t.Errorf("%s takes a lease that another server holds: %v, %v", other.Writer(), got, err)
		}
	}

	// Their rows, and what they say about their clocks.
	for _, s := range all {
		if err := s.RegisterServer(t.Context(), record.Server{ID: s.Writer(), Name: s.Writer()}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RefreshServer(t.Context(), s.Writer(), 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range all {
		rows, err := s.Servers(t.Context())
		if err != nil || len(rows) != len(all) {
			t.Fatalf("%v, %v", rows, err)
		}
		for _, row := range rows {
			about(t, s.Writer()+" on the silence of "+row.ID, row.Ago, 0)
			about(t, s.Writer()+" on the clock of "+row.ID, row.Ahead, map[string]time.Duration{"behind": -5 * time.Minute,
				"ahead": 5 * time.Minute, "exact": 0}[row.ID])
		}
	}
	for _, s := range all {
		if said := strings.Contains(s.log.String(), "the clock of this server is not that of the database"); said != (s != exact) {
			t.Errorf("the log of %s: %s", s.Writer(), s.log.String())
		}
	}
}

// TestClockIsSet: a clock that is set right while the server runs is noticed.
func TestClockIsSet(t *testing.T) {
	address := startPostgres(t, "off")
	var mu sync.Mutex
	wrong := 3 * time.Minute
	s := &wrongClock{}
	s.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(wrong)
	}
	store, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Server: "one", Now: s.now,
		Log: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.RegisterServer(t.Context(), record.Server{ID: "one", Name: "one"}); err != nil {
		t.Fatal(err)
	}

	mu.Lock()
	wrong = 0
	mu.Unlock()
	for range 2 { // the first one compares, the second one records
		if _, err := store.RefreshServer(t.Context(), "one", 1); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := store.Servers(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Ahead != 0 || !strings.Contains(s.log.String(), "that of the database again") {
		t.Errorf("%+v, %v, %s", rows, err, s.log.String())
	}
}
