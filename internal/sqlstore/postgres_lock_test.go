package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// openShared opens a store for one of several servers.
func openShared(t *testing.T, address, server string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestSharedWriters: servers share a record; one with the same id is rejected, and so is one that wants it alone.
func TestSharedWriters(t *testing.T) {
	address := startPostgres(t, "off")
	openShared(t, address, "one")
	openShared(t, address, "two")

	for name, o := range map[string]sqlstore.Options{
		"another server with the same id":  {Server: "one"},
		"another server uses this record:": {Sole: true},
	} {
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := sqlstore.OpenPostgres(short, address, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSharedAfterSole: a server that has the record alone keeps the others out.
func TestSharedAfterSole(t *testing.T) {
	address := startPostgres(t, "off")
	sole, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Sole: true})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := sqlstore.OpenPostgres(short, address, sqlstore.Options{Server: "one"}); err == nil ||
		!strings.Contains(err.Error(), "without --cluster-listen") {
		t.Errorf("beside a sole server: %v", err)
	}
	if err := sole.Close(); err != nil {
		t.Fatal(err)
	}
	openShared(t, address, "one")
}

// TestSharedOrder: the numbers that the transactions of several servers draw are in the order of their commits, and their
// audit is one chain.
func TestSharedOrder(t *testing.T) {
	address := startPostgres(t, "off")
	stores := []*sqlstore.Store{openShared(t, address, "one"), openShared(t, address, "two"), openShared(t, address, "three")}

	// A reader that sees a number must see all smaller ones. It looks while the servers write.
	done := make(chan struct{})
	looked := make(chan error, 1)
	go func() { looked <- lookForGaps(t.Context(), address, done) }()

	var wg sync.WaitGroup
	for _, s := range stores {
		for range 4 {
			wg.Go(func() {
				for range 25 {
					if _, err := s.Accept(t.Context(), benchTask(3)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	close(done)
	if err := <-looked; err != nil {
		t.Error(err)
	}

	// Follow the chain.
	links, err := stores[0].AuditAfter(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(links) != 300 {
		t.Errorf("%d rows of the audit, want 300", len(links))
	}
	var check gozzard.AuditCheck
	for i := range links {
		if err := check.Follow(&links[i]); err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
	}
}

var errGap = errors.New("a number was visible before a smaller one")

func lookForGaps(ctx context.Context, address string, done <-chan struct{}) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		var n, most int64
		err := db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(MAX(seq), 0) FROM tasks`).Scan(&n, &most)
		if err != nil {
			return err
		}
		if n != most {
			return errGap
		}
		select {
		case <-done:
			return nil
		default:
		}
	}
}

// TestFrozenWriter: a server that is frozen in a transaction does not stop the others, and its transaction has no effect.
func TestFrozenWriter(t *testing.T) {
	address := startPostgres(t, "off")
	frozen, other := openShared(t, address, "frozen"), openShared(t, address, "other")

	// The first one stops in the middle of its transaction.
	stopped, goOn := make(chan struct{}), make(chan struct{})
	drawn := make(chan error, 1)
	tries := 0
	go func() {
		drawn <- sqlstore.DrawNumber(frozen, func() {
			if tries++; tries == 1 {
				close(stopped)
				<-goOn
			}
		})
	}()
	<-stopped

	// The other one goes on when the database has ended the session.
	first, err := other.Accept(t.Context(), benchTask(1))
	if err != nil {
		t.Fatalf("beside a frozen server: %v", err)
	}
	close(goOn)
	if err := <-drawn; err != nil || tries != 2 {
		t.Fatalf("the frozen server after it went on: %v, %d tries", err, tries)
	}
	second, err := other.Accept(t.Context(), benchTask(1))
	if err != nil {
		t.Fatal(err)
	}
	if second.Task.Seq != first.Task.Seq+2 {
		t.Errorf("task %d after task %d: the frozen server draws one number, after it went on", second.Task.Seq, first.Task.Seq)
	}
}
