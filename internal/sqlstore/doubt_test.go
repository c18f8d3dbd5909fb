//go:build !windows

package sqlstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// cutter stands between a store and PostgreSQL. When it is armed, it lets the next COMMIT through, waits for its answer
// and ends the connection instead of passing the answer on; or it ends the connection before the database sees it.
type cutter struct {
	l      net.Listener
	to     string // path of the database's socket
	after  atomic.Int32
	before atomic.Int32
	cuts   atomic.Int32
}

func startCutter(t *testing.T, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{l: l, to: to}
	t.Cleanup(func() { _ = l.Close() }) // the test may have closed it
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(client)
		}
	}()
	return c
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", c.to)
	if err != nil {
		return
	}
	defer server.Close()

	// Answers of the database. Once the commit is on its way, its answer is read and not passed on.
	var dropAnswers atomic.Bool
	go func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || dropAnswers.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()

	// Requests of the store. The commit is a prepared statement: its execution follows the mark.
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if commits(buf[:n]) {
			if c.before.CompareAndSwap(1, 0) {
				c.cuts.Add(1)
				return
			}
			if c.after.CompareAndSwap(1, 0) {
				c.cuts.Add(1)
				dropAnswers.Store(true)
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// commits reports whether a message executes the prepared statement COMMIT. pgx names a statement by the hash of its
// text, and begins an execution with the message Bind.
func commits(b []byte) bool {
	sum := sha256.Sum256([]byte("COMMIT"))
	return len(b) > 0 && b[0] == 'B' && strings.Contains(string(b), "stmt_"+hex.EncodeToString(sum[:24]))
}

// openCut opens a store of a new PostgreSQL through a cutter.
func openCut(t *testing.T, o sqlstore.Options) (*sqlstore.Store, *cutter) {
	t.Helper()
	address := startPostgres(t, "off")
	dir := strings.TrimPrefix(strings.Fields(address)[0], "host=")
	c := startCutter(t, filepath.Join(dir, ".s.PGSQL.5432"))
	host, port, err := net.SplitHostPort(c.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	s, err := sqlstore.OpenPostgres(t.Context(), strings.Replace(address, "host="+dir, "host="+host+" port="+port, 1), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

// TestCommitInDoubt: when the connection breaks at a commit, the caller hears what is true, and nothing is done twice.
func TestCommitInDoubt(t *testing.T) {
	s, c := openCut(t, sqlstore.Options{Sole: true})

	var last gozzard.TaskSeq
	for name, armed := range map[string]*atomic.Int32{"answer lost": &c.after, "commit lost": &c.before} {
		for range 3 {
			cuts := c.cuts.Load()
			armed.Store(1)
			acc, err := s.Accept(t.Context(), benchTask(2))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if c.cuts.Load() != cuts+1 {
				t.Fatalf("%s: nothing was cut", name)
			}
			if acc.Task.Seq != last+1 {
				t.Errorf("%s: task %d after task %d", name, acc.Task.Seq, last)
			}
			last = acc.Task.Seq
			if list, err := s.Attempts(t.Context(), last); err != nil || len(list) != 2 {
				t.Errorf("%s: %d attempts, %v", name, len(list), err)
			}
		}
	}
}

// TestSoleWriter: a second server on the same record is rejected, and takes over when the first one is gone.
func TestSoleWriter(t *testing.T) {
	address := startPostgres(t, "off")
	first, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Sole: true})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := sqlstore.OpenPostgres(short, address, sqlstore.Options{Sole: true}); err == nil ||
		!strings.Contains(err.Error(), "another server uses this record") {
		t.Fatalf("a second writer: %v", err)
	}

	if _, err := first.Accept(t.Context(), benchTask(1)); err != nil {
		t.Errorf("the first writer: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Sole: true})
	if err != nil {
		t.Fatalf("after the end of the first one: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// TestInstallation: a record keeps the first installation that it is given.
func TestInstallation(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "record.db"), sqlstore.Options{})
	for _, id := range []string{"one", "two"} {
		if err := s.SetInstallation(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Installation(t.Context()); got != "one" || err != nil {
			t.Errorf("installation %q, %v", got, err)
		}
	}
}

// TestMarks: a store that connects again goes on with the record that it knows only. One that was set back, or that another
// server has changed, is given up.
func TestMarks(t *testing.T) {
	address := startPostgres(t, "off")
	for _, c := range []struct {
		name string
		harm func(t *testing.T)
		want string // in the answer to the next write; "": it is accepted
	}{
		{"nothing", func(*testing.T) {}, ""},
		{"set back", func(t *testing.T) {
			execPostgres(t, address, `UPDATE marks SET mark = mark - 3 * (1 << 22)`)
		}, "the record was set back"},
		{"another branch", func(t *testing.T) {
			execPostgres(t, address, `UPDATE marks SET mark = mark # 1`) // as many transactions, but not the same
		}, "the record was set back"},
		{"all lost", func(t *testing.T) { execPostgres(t, address, `DELETE FROM marks`) }, "the record was set back"},
		{"another server", func(t *testing.T) {
			other, err := sqlstore.OpenPostgres(t.Context(), address, sqlstore.Options{Sole: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = other.Accept(t.Context(), benchTask(1))
			if err := errors.Join(err, other.Close()); err != nil {
				t.Fatal(err)
			}
		}, "another server has changed the record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fatal := atomic.Int32{}
			s := openPostgres(t, address, "public", sqlstore.Options{Sole: true, Fatal: func(error) { fatal.Add(1) }})
			for range 2 {
				if _, err := s.Accept(t.Context(), benchTask(1)); err != nil {
					t.Fatal(err)
				}
			}
			if found, err := s.Marked(t.Context()); err != nil || found != s.LastMark() || sqlstore.SetBack(found, found) {
				t.Fatalf("the record has mark %d, the store %d: %v", found, s.LastMark(), err)
			}
			execPostgres(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE application_name = 'gozzard' AND pid <> pg_backend_pid()`)

			c.harm(t)
			_, err := s.Accept(t.Context(), benchTask(1))
			switch {
			case c.want == "" && (err != nil || fatal.Load() != 0):
				t.Errorf("%v, given up %d times", err, fatal.Load())
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || fatal.Load() != 1):
				t.Errorf("%v, given up %d times", err, fatal.Load())
			}
		})
	}
}
