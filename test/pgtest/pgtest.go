//go:build !windows

package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// User owns the databases of a server. It needs no password.
const User = "gozzard"

// TB is what a server needs of a test: a testing.TB, or what stands for all tests of a package.
type TB interface {
	Helper()
	Cleanup(func())
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

var _ TB = testing.TB(nil)

// Server is a PostgreSQL server.
type Server struct {
	Dir string // has the socket

	t     TB
	bin   string
	fsync string
	as    *syscall.Credential // nil: this user
	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan struct{}
}

// Start starts a server and waits until it answers. fsync is "off" for tests of behaviour and "on" for measurements. The
// server ends with the test.
func Start(t TB, fsync string) *Server {
	t.Helper()
	s := &Server{t: t, bin: binaries(t), fsync: fsync}
	if os.Geteuid() == 0 { // the server refuses to run as root
		s.as = account(t)
	}
	s.makeFolder()
	s.initialise()
	s.run()
	return s
}

// makeFolder makes the folder of the server. It is removed after the test.
func (s *Server) makeFolder() {
	s.t.Helper()

	// Not t.TempDir: another user must be able to enter it, and the path of a socket must be short.
	var err error
	if s.Dir, err = os.MkdirTemp("", "gzpg"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := os.RemoveAll(s.Dir); err != nil {
			s.t.Error(err)
		}
	})
	if err := os.Chmod(s.Dir, 0o755); err != nil { // servers of tests run as several accounts
		s.t.Fatal(err)
	}
	if s.as != nil {
		if err := os.Chown(s.Dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// run starts the server. It ends with the test.
func (s *Server) run() {
	s.t.Helper()
	s.Again()
	s.t.Cleanup(func() { s.End(syscall.SIGINT) })
}

// DSN is the address of the server's first database, as words.
func (s *Server) DSN() string {
	return fmt.Sprintf("host=%s user=%s dbname=postgres sslmode=disable", s.Dir, User)
}

// URL is the address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s", User, database, s.Dir)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) initialise() {
	s.t.Helper()
	args := []string{"-D", s.data(), "-U", User, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"}
	if help, err := s.command("initdb", "--help").CombinedOutput(); err == nil &&
		bytes.Contains(help, []byte("--icu-locale")) {
		args = append(args, "--locale-provider=icu", "--icu-locale=en-US") // the order of keys must not depend on it
	}
	if out, err := s.command("initdb", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("initdb: %v\n%s", err, out)
	}
}

// Again starts the server on its folder, after End, and waits until it answers.
func (s *Server) Again() {
	s.t.Helper()
	s.log.Reset()
	s.cmd = s.command("postgres", "-D", s.data(), "-k", s.Dir, "-c", "listen_addresses=", "-c", "fsync="+s.fsync, "-c",
		"max_connections=200")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}(s.cmd, s.ended)

	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		out, err := s.command("psql", "-h", s.Dir, "-U", User, "-d", "postgres", "-c", "SELECT 1").CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-s.ended:
			s.t.Fatalf("postgres ended:\n%s", s.log.String())
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("postgres does not answer: %v\n%s", err, out)
		}
	}
}

// End ends the server with a signal: SIGINT closes its sessions, SIGQUIT is like a crash.
func (s *Server) End(sig syscall.Signal) {
	s.t.Helper()
	s.Signal(sig)
	<-s.ended
}

// Signal sends a signal to the first process of the server.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
}

// Exec runs SQL in a database with psql and returns what it prints.
func (s *Server) Exec(database, text string) string {
	s.t.Helper()
	out, err := s.command("psql", "-h", s.Dir, "-U", User, "-d", database, "-v", "ON_ERROR_STOP=1", "-Atc", text).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(bytes.TrimSpace(out))
}

// Available reports whether a server can be started, or must be.
func Available() bool { return find() != "" || required() }

func required() bool { return os.Getenv("GOZZARD_TEST_POSTGRES") == "require" }

func binaries(t TB) string {
	t.Helper()
	dir := find()
	if dir == "" {
		missing(t, "no PostgreSQL server binaries (initdb, postgres) in /usr/lib/postgresql/*/bin or the path")
	}
	return dir
}

// find looks for the folder of the programs; "": there is none.
func find() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails only for a bad pattern
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, filepath.Dir(path))
	}
	for _, dir := range found {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir
		}
	}
	return ""
}

func account(t TB) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		missing(t, "PostgreSQL does not run as root and there is no user postgres")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func missing(t TB, why string) {
	t.Helper()
	if required() {
		t.Fatalf("GOZZARD_TEST_POSTGRES=require: %s", why)
	}
	t.Skipf("not run: %s", why)
}
