//go:build linux

package faults_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to forge a record as its owner can

	"github.com/gozzard/gozzard"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTR1SignedCheckpoints: the owner of the record rewrites the whole chain, so that it verifies. The checkpoints that
// the server signed before show the forgery, in the data folder and in a log that was collected elsewhere.
func TestTR1SignedCheckpoints(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "", "--audit-checkpoint", "100ms")
	for range 5 {
		s.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "gse", "name": "x"}, "op_type": 1,
			"hosts": []ft.J{ft.Host(1)}})
	}

	log := filepath.Join(t.TempDir(), "collected.log")
	ft.Until(t, time.Minute, s.Output, func() bool { return strings.Count(s.Output(), "audit checkpoint") > 0 })
	s.Kill(syscall.SIGTERM)
	<-s.Done()

	if err := os.WriteFile(log, []byte(s.Output()), 0o600); err != nil {
		t.Fatal(err)
	}

	verify := func(args ...string) (string, error) {
		out, err := exec.Command(ft.Binary(t), slices.Concat([]string{"audit", "verify"}, inFolder(t, s.Data),
			args)...).CombinedOutput()
		return string(out), err
	}

	if out, err := verify("--checkpoints", log); err != nil || !strings.Contains(out, "of them match their checkpoints") {
		t.Fatalf("%v: %s", err, out)
	}

	forgeAudit(t, s.Data)

	if out, err := verify(); err == nil || !strings.Contains(out, "does not have the expected hash") {
		t.Errorf("a forged audit, by the file of checkpoints: %v: %s", err, out)
	}
	if err := os.Remove(filepath.Join(s.Data, "audit.checkpoints")); err != nil {
		t.Fatal(err)
	}
	if out, err := verify(); err != nil {
		t.Errorf("the forged chain should be whole in itself: %v: %s", err, out)
	}
	if out, err := verify("--checkpoints", log); err == nil ||
		!strings.Contains(out, "does not have the expected hash") {
		t.Errorf("a forged audit, by the collected log: %v: %s", err, out)
	}
}

// forgeAudit changes the user in every row and computes the chain again.
func forgeAudit(t *testing.T, data string) {
	t.Helper()
	f, err := openAudit(t, data)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := f.AuditAfter(t.Context(), 0, 1000)
	if err != nil || len(rows) == 0 || f.Close() != nil {
		t.Fatal(len(rows), err)
	}

	driver, source := "sqlite", filepath.Join(data, "gozzard.db")
	if ft.InPostgres(t) {
		pg, name := ft.DatabaseOf(t, data)
		driver, source = "pgx", pg.URL(name)
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	var prev gozzard.AuditHash

	change := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}

	for i := range rows {
		rows[i].Caller.User = "mallory"
		prev = rows[i].Chain(prev)
		change(`UPDATE audit SET caller = 'mallory', hash = $1 WHERE seq = $2`, prev[:], rows[i].Seq)
	}

	change(`UPDATE audit_head SET hash = $1`, prev[:])
}
