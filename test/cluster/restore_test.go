//go:build linux

package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestRestoreOfSeveralServers: after the database was restored, one command at one server prepares the record for all. Before,
// none of them starts.
func TestRestoreOfSeveralServers(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	agent := b.join(faultHost(1))
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}

	// Set the database back.
	dump := filepath.Join(i.pg.Dir, "dump")
	i.pg.Tool("pg_dump", "--format=custom", "--file="+dump, "fleet")
	time.Sleep(5 * time.Second) // each server records that it runs, and notes that it did
	for _, m := range i.servers {
		m.Kill(syscall.SIGTERM)
	}
	i.pg.Tool("pg_restore", "--clean", "--if-exists", "--create", "--exit-on-error", "--dbname=postgres", dump)
	a.isSetBack()
	b.isSetBack()

	// A command that fails in the middle is not enough at the server where it was run.
	mark := []string{"record", "mark-restored", "--data", a.data, "--record", i.pg.URL("fleet")}
	key := filepath.Join(a.data, "signing.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(ft.Binary(t), mark...).CombinedOutput(); err == nil {
		t.Fatalf("without a key: %s", out)
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	a.isSetBack()

	// Prepare it once.
	a.cliLocal(mark...)
	for _, m := range i.servers {
		m.Again()
		m.answers()
	}
	i.sameKey()
	if !strings.Contains(b.Output(), "was prepared for that at another server") {
		t.Errorf("the second server does not say that the record was restored: %s", b.Output())
	}

	// A confirmation at one server counts for all.
	b.cli("hosts", "confirm-restore", "--confirm", "1")
	soon(t, "the other server waits for a confirmation", func() bool {
		out, err := a.try("hosts", "confirm-restore", "--confirm", "1")
		return err != nil && strings.Contains(out, "confirmed already")
	})
	agent.Kill(syscall.SIGTERM) // the agent retries by itself too, but its pauses have grown by now
	agent.Again()
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}
	(&loaded{installation: i}).eachServes()
}

// isSetBack starts a server that must refuse the record.
func (m *member) isSetBack() {
	m.i.t.Helper()
	before := strings.Count(m.Output(), "was set back")
	m.Again()
	select {
	case <-m.Done():
	case <-time.After(time.Minute):
		m.i.t.Fatalf("a server starts on a record that was set back: %s", m.Output())
	}
	if m.ExitCode() == 0 || strings.Count(m.Output(), "was set back") == before {
		m.i.t.Fatalf("exit code %d: %s", m.ExitCode(), m.Output())
	}
}
