//go:build linux

package faults_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/pgtest"
)

// quickPart are the tests that make test runs with the record in PostgreSQL, too. make faults-postgres runs all.
var quickPart = []string{"TestRecordOfTheRig", "TestV1ServerKilledUnderLoad", "TestK10KilledFirstStart", "TestTR1KilledServer",
	"TestKeysOfUsers", "TestTR1SignedCheckpoints"}

// TestQuickPartOnPostgres runs a part of these tests again, in a process of its own, with the records of all servers in
// PostgreSQL. None of them may be skipped.
func TestQuickPartOnPostgres(t *testing.T) {
	if ft.InPostgres(t) {
		return // this is that process, or make faults-postgres
	}
	if !pgtest.Available() {
		t.Skip("not run: there is no PostgreSQL")
	}
	t.Parallel() // it mostly waits
	program := ft.Binary(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.parallel=2", "-test.timeout=10m",
		"-test.run=^("+strings.Join(quickPart, "|")+")$")
	cmd.Env = append(os.Environ(), ft.RecordVariable+"=postgres", "GOZZARD_BINARY="+program)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("with the record in PostgreSQL: %v\n%s", err, out)
	}
	for _, name := range quickPart {
		if err == nil && !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}

// TestRecordOfTheRig: servers of these tests have their records where GOZZARD_TEST_RECORD says.
func TestRecordOfTheRig(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	_, err := os.Stat(filepath.Join(s.Data, "gozzard.db"))
	if ft.InPostgres(t) != os.IsNotExist(err) {
		t.Errorf("in PostgreSQL: %v; the file: %v", ft.InPostgres(t), err)
	}
	if !ft.InPostgres(t) {
		return
	}
	pg, name := ft.DatabaseOf(t, s.Data)
	if n := pg.Exec(name, "SELECT COUNT(*) FROM installation"); n != "1" {
		t.Errorf("the database has %s installations", n)
	}
}
