package sqlstore_test

import (
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// openSQLite opens a store. It starts with a copy of an empty database if there is none at the path: migrations take half
// a second under the race detector.
func openSQLite(t testing.TB, path string, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	storetest.NewSQLite(t, path)

	if o.Fatal == nil {
		o.Fatal = func(err error) { t.Errorf("fatal: %v", err) }
	}

	s, err := sqlstore.OpenSQLite(t.Context(), path, o)
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

func TestSQLiteContract(t *testing.T) {
	open := func(t *testing.T) *sqlstore.Store {
		return openSQLite(t, filepath.Join(t.TempDir(), "记录 #1?.db"), sqlstore.Options{})
	}
	contract(t, open)
}

// contract runs all contracts of a store.
func contract(t *testing.T, open func(*testing.T) *sqlstore.Store) {
	storetest.Run(t, func(t *testing.T) control.Store { return open(t) })

	t.Run("notify", func(t *testing.T) {
		storetest.RunNotify(t, func(t *testing.T) storetest.NotifyRecord { return open(t) })
	})

	t.Run("topology", func(t *testing.T) {
		storetest.RunTopology(t, func(t *testing.T) storetest.TopologyRecord { return open(t) })
	})

	t.Run("jobs", func(t *testing.T) {
		storetest.RunJobs(t, func(t *testing.T) storetest.JobRecord { return open(t) })
	})

	t.Run("config", func(t *testing.T) {
		storetest.RunConfigs(t, func(t *testing.T) storetest.ConfigRecord { return open(t) })
	})

	t.Run("enrol", func(t *testing.T) {
		storetest.RunEnrol(t, func(t *testing.T) storetest.EnrolRecord { return open(t) })
	})

	t.Run("releases", func(t *testing.T) {
		storetest.RunReleases(t, func(t *testing.T) storetest.ReleaseRecord { return open(t) })
	})

	t.Run("audit", func(t *testing.T) {
		storetest.RunAudit(t, func(t *testing.T) storetest.AuditRecord { return open(t) })
	})

	t.Run("servers", func(t *testing.T) {
		storetest.RunServers(t, func(t *testing.T) storetest.ServerRecord { return open(t) })
	})

	t.Run("accounts", func(t *testing.T) {
		storetest.RunAccounts(t, func(t *testing.T) storetest.AccountRecord { return open(t) })
	})
}
