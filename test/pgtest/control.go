//go:build linux

package pgtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// URLAs is the address of a database for a role of this server.
func (s *Server) URLAs(role, database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s", role, database, s.Dir)
}

// Script runs commands of psql as the owner of the server.
func (s *Server) Script(text string) {
	s.t.Helper()
	cmd := s.command("psql", "-h", s.Dir, "-U", User, "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-X", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", text, err, out)
	}
}

// TryAs runs SQL in a database as a role and returns what psql prints.
func (s *Server) TryAs(role, database, text string) (string, error) {
	out, err := s.command("psql", "-h", s.Dir, "-U", role, "-d", database, "-v", "ON_ERROR_STOP=1", "-Atc", text).CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

// Tool runs a program of PostgreSQL, such as pg_dump, as the account and on the socket of the server. It returns what the
// program prints.
func (s *Server) Tool(name string, args ...string) string {
	s.t.Helper()
	out, err := s.command(name, append([]string{"-h", s.Dir, "-U", User}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(bytes.TrimSpace(out))
}

// Standby starts a server that follows this one and answers queries. It ends with the test.
func (s *Server) Standby() *Server {
	s.t.Helper()
	b := &Server{t: s.t, bin: s.bin, fsync: s.fsync, as: s.as}
	b.makeFolder()
	s.copyTo(b)
	b.run()
	return b
}

// copyTo copies what the server has to one that will follow it.
func (s *Server) copyTo(b *Server) {
	s.t.Helper()
	s.Tool("pg_basebackup", "-D", b.data(), "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
}

// Follow makes a server that has ended a standby of another one. It keeps its socket and loses what it had.
func (s *Server) Follow(primary *Server) {
	s.t.Helper()
	if err := os.RemoveAll(s.data()); err != nil {
		s.t.Fatal(err)
	}
	primary.copyTo(s)
	s.Again()
}

// Synchronous makes commits wait for the standby, and waits until it follows. A standby that was made before does not wait
// for others when it is promoted.
func (s *Server) Synchronous() {
	s.t.Helper()
	s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")
	s.Exec("postgres", "SELECT pg_reload_conf()")
	const follows = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
	for deadline := time.Now().Add(time.Minute); s.Exec("postgres", follows) != "1"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the standby does not follow: ", s.log.String())
		}
	}
}

// SocketIn is the socket in a folder: a server listens there, and a program connects there whose address of the database has
// the folder as its host.
func SocketIn(dir string) string { return filepath.Join(dir, ".s.PGSQL.5432") }

// Promote makes a standby accept changes.
func (s *Server) Promote() {
	s.t.Helper()
	if got := s.Exec("postgres", "SELECT pg_promote()"); got != "t" {
		s.t.Fatalf("the standby was not promoted: %s", got)
	}
}

// Freeze stops all processes of the server as they are; connections stay. Thaw continues them.
func (s *Server) Freeze() {
	s.t.Helper()
	s.signalAll(syscall.SIGSTOP)
}

// Thaw ends what Freeze began.
func (s *Server) Thaw() {
	s.t.Helper()
	s.signalAll(syscall.SIGCONT)
}

// signalAll signals the first process, so that it starts no others meanwhile, and then those that it has started.
func (s *Server) signalAll(sig syscall.Signal) {
	s.t.Helper()
	s.Signal(sig)
	first := s.cmd.Process.Pid
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if parent, err := strconv.Atoi(fields[1]); err != nil || parent != first {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			s.t.Fatal(err)
		}
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
