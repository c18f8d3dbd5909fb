//go:build linux

package fleettest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gozzard/gozzard/test/pgtest"
)

// RecordVariable chooses where servers of tests have their records: "postgres", or "" for a file.
const RecordVariable = "GOZZARD_TEST_RECORD"

// InPostgres reports whether servers of tests have their records in PostgreSQL. `gozzard dev` always has a file.
func InPostgres(t testing.TB) bool {
	t.Helper()
	switch v := os.Getenv(RecordVariable); v {
	case "":
		return false
	case "postgres":
		return true
	default:
		t.Fatalf("%s is %q: use postgres, or do not set it", RecordVariable, v)
		return false
	}
}

// FileOnly skips a test that is about the file of a record, when records are in PostgreSQL. `make faults-postgres` accepts
// only the skips that .ci/skips-postgres lists.
func FileOnly(t testing.TB, why string) {
	t.Helper()
	if InPostgres(t) {
		t.Skipf("about a record in a file: %s", why)
	}
}

// RecordEnv is the environment that gives a server a database of its own, when records are in PostgreSQL. All servers on one
// data folder have the same.
func RecordEnv(t testing.TB, args, env []string) []string {
	t.Helper()
	if !InPostgres(t) || len(args) == 0 || args[0] != "server" || slices.Contains(args, "--record") ||
		slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GOZZARD_RECORD=") }) {
		return nil
	}
	i := slices.Index(args, "--data")
	if i < 0 || i+1 == len(args) {
		return nil // it is rejected before it opens a record
	}
	name := postgres.database(t, filepath.Clean(args[i+1]))
	return []string{"GOZZARD_RECORD=" + postgres.server.URL(name)}
}

// DatabaseOf is where the record of the server on a data folder is, when records are in PostgreSQL: for tests that look into
// it.
func DatabaseOf(t testing.TB, data string) (server *pgtest.Server, name string) {
	t.Helper()
	name = postgres.database(t, filepath.Clean(data))
	return postgres.server, name
}

// sharedPostgres is one PostgreSQL server for all tests of a process.
type sharedPostgres struct {
	mu     sync.Mutex // also: one database is made at a time, because PostgreSQL locks the one that it copies
	server *pgtest.Server
	owner  processOwner
	names  map[string]string // databases by data folder
	made   int
}

var postgres sharedPostgres

func (p *sharedPostgres) started(t testing.TB) *pgtest.Server {
	t.Helper()
	if p.server != nil {
		return p.server
	}
	if !pgtest.Available() {
		t.Fatalf("%s=postgres: there is no PostgreSQL on this machine (Debian: apt-get install postgresql)", RecordVariable)
	}
	p.server = pgtest.Start(&p.owner, "off")
	return p.server
}

// database makes a database for a data folder, once, and returns its name. It is removed at the end of the test.
func (p *sharedPostgres) database(t testing.TB, data string) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.started(t)
	if name, ok := p.names[data]; ok {
		return name
	}

	// Make it.
	p.made++
	name := fmt.Sprintf("t%d", p.made)
	s.Exec("postgres", "CREATE DATABASE "+name+" TEMPLATE template0")
	if p.names == nil {
		p.names = map[string]string{}
	}
	p.names[data] = name

	// Programs that the test starts from now on end before this.
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.names, data)
		s.Exec("postgres", "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return name
}

// end ends the server after the last test.
func (p *sharedPostgres) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner.end()
}

// processOwner stands for all tests of a process: what it owns ends after the last of them.
type processOwner struct{ cleanups []func() }

var _ pgtest.TB = (*processOwner)(nil)

func (*processOwner) Helper()                    {}
func (o *processOwner) Cleanup(f func())         { o.cleanups = append(o.cleanups, f) }
func (*processOwner) Error(args ...any)          { fmt.Fprintln(os.Stderr, args...) }
func (*processOwner) Fatal(args ...any)          { panic(fmt.Sprintln(args...)) }
func (*processOwner) Fatalf(f string, a ...any)  { panic(fmt.Sprintf(f, a...)) }
func (o *processOwner) Skipf(f string, a ...any) { o.Fatalf(f, a...) }

func (o *processOwner) end() {
	for _, f := range slices.Backward(o.cleanups) {
		f()
	}
	o.cleanups = nil
}
