//go:build !windows

package sqlstore_test

import (
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// noted are the versions that a store has given to Changed.
type noted struct {
	mu       sync.Mutex
	versions map[record.Kind]int64
}

func (n *noted) changed(versions map[record.Kind]int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.versions == nil {
		n.versions = map[record.Kind]int64{}
	}
	maps.Copy(n.versions, versions)
}

func (n *noted) of(kind record.Kind) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.versions[kind]
}

// TestFailedChangeWithoutConnection: a change that fails for a reason of its own, and whose connection ends before it is
// rolled back, is answered with this reason. Nobody hears of a new version, and the store goes on.
func TestFailedChangeWithoutConnection(t *testing.T) {
	address := startPostgres(t, "off")
	var n noted
	s := openPostgres(t, address, "public", sqlstore.Options{Sole: true, Changed: n.changed})

	conflict := errors.New("somebody else was faster")
	err := sqlstore.Bump(s, record.KindHosts, func() {
		execPostgres(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'gozzard' AND pid <> pg_backend_pid()`)
	}, conflict)
	if !errors.Is(err, conflict) || n.of(record.KindHosts) != 0 {
		t.Fatalf("%v, version %d", err, n.of(record.KindHosts))
	}

	if _, err := s.Accept(t.Context(), benchTask(1)); err != nil {
		t.Fatalf("after it: %v", err)
	}
}

// TestFailedChangeBesideOthers: a change that is rolled back in a shared transaction makes no new version. A server that
// took the version for its own would not read the change of another server that gets this version next.
func TestFailedChangeBesideOthers(t *testing.T) {
	var n noted
	s := openPostgres(t, startPostgres(t, "off"), "public", sqlstore.Options{Sole: true, Changed: n.changed})
	conflict := errors.New("somebody else was faster")

	// All changes that wait for the end of the first transaction share the second one.
	begun, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := sqlstore.DrawNumber(s, func() { close(begun); <-goOn }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	for range 4 {
		wg.Go(func() {
			if err := sqlstore.Bump(s, record.KindHosts, func() {}, conflict); !errors.Is(err, conflict) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := sqlstore.Bump(s, record.KindAccounts, func() {}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	close(goOn)
	wg.Wait()

	versions, err := s.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n.of(record.KindHosts) != 0 || n.of(record.KindAccounts) != 4 || versions[record.KindAccounts] != 4 {
		t.Errorf("heard of version %d of hosts and %d of accounts, the record has %v", n.of(record.KindHosts),
			n.of(record.KindAccounts), versions)
	}
}

// TestChangeInDoubt: when the answer to the commit of a change is lost, and the change was done, others hear of it.
func TestChangeInDoubt(t *testing.T) {
	var n noted
	s, c := openCut(t, sqlstore.Options{Sole: true, Changed: n.changed})
	before := n.of(record.KindHosts)

	c.after.Store(1)
	if err := sqlstore.Bump(s, record.KindHosts, func() {}, nil); err != nil || c.cuts.Load() != 1 {
		t.Fatalf("%v, %d cuts", err, c.cuts.Load())
	}
	if n.of(record.KindHosts) != before+1 {
		t.Errorf("heard of version %d, not %d", n.of(record.KindHosts), before+1)
	}
}
