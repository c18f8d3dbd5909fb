//go:build !windows

package sqlstore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

const bareAttempts = `CREATE TABLE attempts (task_seq BIGINT, idx INTEGER, item INTEGER, op_id TEXT, agent_id TEXT, cloud INTEGER,
	ip TEXT, result_key TEXT, state INTEGER, session BIGINT, outcome TEXT, deadline BIGINT, expires BIGINT,
	PRIMARY KEY (task_seq, idx))`

func bareRow(task, i int) []any {
	return []any{task, i, i % 25, fmt.Sprintf("%032x", i), fmt.Sprintf("%032x", i*7919), 0, "127.1.200.200",
		fmt.Sprintf("%d:bench:worker", i), 2, 3, "", int64(1_700_000_000_000), int64(1_700_000_000_000)}
}

// BenchmarkLargeTask accepts a task about 25 registered processes on each of 2,000 hosts, beside a bare transaction with
// as many rows.
func BenchmarkLargeTask(b *testing.B) {
	const names, hosts = 25, 2000

	b.Run("bare", func(b *testing.B) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
			"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		if err != nil {
			b.Fatal(err)
		}

		defer db.Close()
		if _, err := db.ExecContext(b.Context(), bareAttempts); err != nil {
			b.Fatal(err)
		}

		for n := 0; b.Loop(); n++ {
			bareTask(b, db, n, names*hosts)
		}
	})

	b.Run("store", func(b *testing.B) {
		s := openSQLite(b, filepath.Join(b.TempDir(), "record.db"), sqlstore.Options{})
		if _, err := s.Accept(b.Context(), largeTask(4*names, hosts)); err != nil {
			b.Fatal(err)
		}

		for b.Loop() {
			b.StopTimer()
			t := largeTask(names, hosts)
			b.StartTimer()
			if _, err := s.Accept(b.Context(), t); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLargePostgres accepts a task about processes that are registered already, beside a bare COPY of as many rows.
func BenchmarkLargePostgres(b *testing.B) {
	const names, hosts = 25, 2000
	address := startPostgres(b, "on")

	b.Run("bare", func(b *testing.B) {
		c, err := pgx.Connect(b.Context(), address)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close(b.Context())
		if _, err := c.Exec(b.Context(), bareAttempts); err != nil {
			b.Fatal(err)
		}

		columns := strings.Split("task_seq idx item op_id agent_id cloud ip result_key state session outcome deadline expires", " ")
		for n := 0; b.Loop(); n++ {
			rows := pgx.CopyFromSlice(names*hosts, func(i int) ([]any, error) { return bareRow(n, i), nil })
			if _, err := c.CopyFrom(b.Context(), pgx.Identifier{"attempts"}, columns, rows); err != nil {
				b.Fatal(err)
			}
		}
	})

	b.Run("store", func(b *testing.B) {
		s := openPostgres(b, address, "large", sqlstore.Options{})
		if _, err := s.Accept(b.Context(), largeTask(4*names, hosts)); err != nil {
			b.Fatal(err)
		}

		for b.Loop() {
			b.StopTimer()
			t := largeTask(names, hosts)
			t.Register = nil
			b.StartTimer()
			if _, err := s.Accept(b.Context(), t); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// largeTask operates on names of processes on hosts, and brings their definitions.
func largeTask(names, hosts int) *record.NewTask {
	t := benchTask(hosts)
	one := t.Attempts
	t.Attempts, t.Task.Targets = nil, names*hosts

	for n := range names {
		name := fmt.Sprintf("worker-%03d", n)
		spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: name, User: "root",
			SetupPath: "/data/worker", PIDPath: "/data/worker/pid"}, Policy: gozzard.DefaultPolicy()})
		labels := map[string]string{"proc_name": name}

		for _, a := range one {
			a.Op, a.Key.Name, a.Spec, a.Labels, a.State = gozzard.NewOpID(), name, spec, labels, gozzard.AttemptDispatched
			t.Register = append(t.Register, record.Process{ID: gozzard.ProcID{Agent: a.Agent, Key: a.Key}, Labels: a.Labels,
				Spec: a.Spec, RegisteredAt: t.Task.At, Attempt: int32(len(t.Attempts))})
			t.Attempts = append(t.Attempts, a)
		}
	}

	t.Audit.SetHosts(gozzard.HostLines(t.Attempts))
	return t
}

// bareTask records a row for each target in one transaction.
func bareTask(b *testing.B, db *sql.DB, task, targets int) {
	b.Helper()
	tx, err := db.BeginTx(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}

	st, err := tx.PrepareContext(b.Context(), `INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		b.Fatal(err)
	}

	for i := range targets {
		if _, err := st.ExecContext(b.Context(), bareRow(task, i)...); err != nil {
			b.Fatal(err)
		}
	}

	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}
