//go:build linux

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/pgtest"
)

// V16: a server with its record in PostgreSQL. The database crashes and the server is killed under load.
func TestV16PostgresKilledUnderLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	pg := pgtest.Start(t, "on")
	pg.Exec("postgres", "CREATE DATABASE fleet")
	s := ft.StartServer(t, "", "--record", pg.URL("fleet"))
	s.StartAgent(t, 1, "")
	if _, err := os.Stat(filepath.Join(s.Data, "gozzard.db")); err == nil {
		t.Error("there is a record in the data folder, too")
	}

	l := ledger.New(t, s.API)
	stop := l.Load(8, 1, 2000**scale)
	kills := 3 * *scale
	for i := range kills {
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond) // operations are under way
		pg.End(syscall.SIGQUIT)
		pg.Again()
		if i == 0 {
			s.Kill(syscall.SIGKILL)
			s.Again()
			s.AwaitReady()
		}
	}
	s.AwaitOnline(t, 1)
	time.Sleep(time.Second) // some operations without a fault
	stop()

	l.Afterwards(24, 1)
	fmt.Printf("fault V16: PostgreSQL crashed %d times, the server was killed once\n", kills)
	l.Judge("V16", ledger.Floor{OK: 40, Percent: 25})
}

// A record belongs to the keys of one data folder, and to one server at a time.
func TestV16RecordAndFolderBelongTogether(t *testing.T) {
	t.Parallel() // it mostly waits
	pg := pgtest.Start(t, "off")
	for _, name := range []string{"mine", "other", "empty"} {
		pg.Exec("postgres", "CREATE DATABASE "+name)
	}
	s := ft.StartServer(t, "", "--record", pg.URL("mine"))
	refused := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"server", "--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0"}, args...)
		p := ft.Start(t, "refused", nil, args...)
		select {
		case <-p.Done():
		case <-time.After(time.Minute):
			t.Fatalf("it did not end: %s", p.Output())
		}
		if p.ExitCode() == 0 || !strings.Contains(p.Output(), want) {
			t.Errorf("%q: exit code %d, no %q in %s", args, p.ExitCode(), want, p.Output())
		}
	}

	// While the server runs: another server, with another folder and with a copy of this one.
	refused("another server uses this record", "--data", t.TempDir(), "--record", pg.URL("mine"))
	refused("another server uses this record", "--data", s.Data, "--record", pg.URL("mine"))

	// After it has ended: other folders and other databases.
	s.Kill(syscall.SIGTERM)
	refused("belongs to another installation", "--data", t.TempDir(), "--record", pg.URL("mine"))
	refused("is empty, but", "--data", s.Data, "--record", pg.URL("empty"))
	refused("use --record", "--data", s.Data, "--record", "") // as without the flag, wherever records of tests are
	refused("--backup-to copies a record in the data folder", "--data", s.Data, "--record", pg.URL("mine"), "--backup-to",
		t.TempDir(), "--backup-recipient", "age1x")
	refused("this is not an address of PostgreSQL", "--data", t.TempDir(), "--record", "mysql://x/y")
	sqlite := ft.StartServer(t, "", "--record", "")
	sqlite.Kill(syscall.SIGTERM)
	refused("but the record of this data folder is", "--data", sqlite.Data, "--record", pg.URL("other"))

	// The folder and its database go on.
	s.Again()
	s.AwaitReady()
}
