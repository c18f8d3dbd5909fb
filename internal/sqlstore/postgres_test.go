//go:build !windows

package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/pgtest"
)

// startPostgres starts a PostgreSQL server and returns its address.
func startPostgres(t testing.TB, fsync string) (address string) {
	t.Helper()
	return pgtest.Start(t, fsync).DSN()
}

func execPostgres(t testing.TB, address, text string) {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), text)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// openPostgres opens a store in a schema.
func openPostgres(t testing.TB, address, schema string, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	execPostgres(t, address, `CREATE SCHEMA IF NOT EXISTS "`+schema+`"`)
	s, err := sqlstore.OpenPostgres(t.Context(), address+" search_path="+schema, o)
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

// inDatabase is the address of another database of a server.
func inDatabase(address, name string) string {
	return strings.Replace(address, "dbname=postgres", "dbname="+name, 1)
}

// migratePostgres makes a database with an empty store, to be copied, and returns its name.
func migratePostgres(t testing.TB, address string) (name string) {
	t.Helper()
	const migrated = "migrated"
	execPostgres(t, address, "CREATE DATABASE "+migrated)
	s, err := sqlstore.OpenPostgres(t.Context(), inDatabase(address, migrated), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return migrated
}

// copyPostgres opens a store in a copy of a database. That takes a small part of the time that the migrations take.
func copyPostgres(t testing.TB, address, from, name string) *sqlstore.Store {
	t.Helper()
	execPostgres(t, address, "CREATE DATABASE "+name+" TEMPLATE "+from)
	return openPostgres(t, inDatabase(address, name), "public", sqlstore.Options{Sole: true}) // as a server does
}

func TestPostgres(t *testing.T) {
	address := startPostgres(t, "off")
	migrated := migratePostgres(t, address)
	var n atomic.Int64
	t.Run("contract", func(t *testing.T) {
		contract(t, func(t *testing.T) *sqlstore.Store {
			return copyPostgres(t, address, migrated, fmt.Sprintf("s%d", n.Add(1)))
		})
	})

	t.Run("two servers", func(t *testing.T) { twoServers(t, address) })
	t.Run("events of two servers", func(t *testing.T) { twoServersEvents(t, address) })
	t.Run("quotas of two servers", func(t *testing.T) { twoServersQuota(t, address) })

	t.Run("newer schema", func(t *testing.T) {
		s := openPostgres(t, address, "newer", sqlstore.Options{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		execPostgres(t, address, `INSERT INTO newer.schema_version (version_id, is_applied) VALUES (999, TRUE)`)
		_, err := sqlstore.OpenPostgres(t.Context(), address+" search_path=newer", sqlstore.Options{})
		if err == nil || !strings.Contains(err.Error(), "schema version 999") {
			t.Fatalf("a newer schema was opened: %v", err)
		}

		// It says from which program on it can be used.
		for from, fits := range map[int]bool{1: true, 998: false} {
			execPostgres(t, address, fmt.Sprintf(`UPDATE newer.counters SET value = CASE name WHEN 'compatible_at' THEN 999 ELSE %d END
				WHERE name IN ('compatible_at', 'compatible_from')`, from))
			s, err := sqlstore.OpenPostgres(t.Context(), address+" search_path=newer", sqlstore.Options{})
			if (err == nil) != fits {
				t.Errorf("a schema that fits programs of %d: %v", from, err)
			}
			if err == nil {
				err = s.Close()
			}
			if err != nil && fits {
				t.Error(err)
			}
		}
	})

	t.Run("connections cut", func(t *testing.T) { connectionsCut(t, address) })
}

// twoServers: two stores on one database share numbers, idempotency keys and sessions.
func twoServers(t *testing.T, address string) {
	stores := []*sqlstore.Store{openPostgres(t, address, "two", sqlstore.Options{}),
		openPostgres(t, address, "two", sqlstore.Options{})}
	var wg sync.WaitGroup
	var mu sync.Mutex
	created, seqs := 0, map[gozzard.TaskSeq]bool{}
	for i := range 60 {
		wg.Go(func() {
			task := benchTask(3)

			if i%2 == 0 {
				task.IdempotencyKey = "once"
			}

			acc, err := stores[i/2%2].Accept(t.Context(), task)
			if err != nil {
				t.Error(err)
				return
			}

			mu.Lock()
			defer mu.Unlock()
			seqs[acc.Task.Seq] = true
			if i%2 == 0 && !acc.Known {
				created++
			}
		})
	}

	wg.Wait()

	if created != 1 || len(seqs) != 31 {
		t.Fatalf("the key made %d tasks, there are %d in all", created, len(seqs))
	}

	opened := atomic.Int64{}
	for i := range 40 {
		wg.Go(func() {
			_, ok, err := stores[i%2].OpenSession(t.Context(),
				record.Host{Info: gozzard.HostInfo{Agent: "a"}, Session: 7})
			if err != nil {
				t.Error(err)
			}
			if ok {
				opened.Add(1)
			}
		})
	}

	wg.Wait()

	if opened.Load() != 1 {
		t.Fatalf("one session was opened %d times", opened.Load())
	}
}

// connectionsCut: when connections break, calls under way fail or are repeated, and later calls work.
func connectionsCut(t *testing.T, address string) {
	s := openPostgres(t, address, "cut", sqlstore.Options{})
	acked := map[gozzard.TaskSeq]bool{}
	for i := range 60 {
		if i%15 == 7 {
			execPostgres(t, address,
				`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE application_name = 'gozzard' AND pid <> pg_backend_pid()`)
		}
		acc, err := s.Accept(t.Context(), benchTask(1))
		if err != nil {
			if gozzard.KindOf(err) != gozzard.ErrUnavailable {
				t.Fatal(err)
			}
			continue
		}
		acked[acc.Task.Seq] = true
	}

	if len(acked) < 50 {
		t.Fatalf("only %d of 60 calls succeeded", len(acked))
	}

	for seq := range acked {
		if _, err := s.Attempts(context.WithoutCancel(t.Context()), seq); err != nil {
			t.Fatal(err)
		}
	}
}
