package sqlstore_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// raw runs SQL on the database of a store that is closed.
func raw(t *testing.T, path string, texts ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// filled makes a record with some tasks, closes it and returns its path.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	for range 5 {
		if _, err := s.Accept(t.Context(), benchTask(200)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// refused checks that opening fails with a text, and that it changes no file of the database.
func refused(t *testing.T, path, text string) {
	t.Helper()

	sums := func() map[string][32]byte {
		m := map[string][32]byte{}
		names, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}

		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, ".lock") {
				m[name] = sha256.Sum256(b)
			}
		}

		return m
	}

	before := sums()
	_, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want an error with %q", err, text)
	}
	if after := sums(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Fatalf("files were touched: %d before, %d after", len(before), len(after))
	}
}

func TestDamaged(t *testing.T) {
	for _, at := range []float64{0.3, 0.6, 0.9} {
		path := filled(t)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := int(float64(len(b))*at) / 4096 * 4096
		copy(b[page:], bytes.Repeat([]byte{0xA5}, 4096))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "is damaged; it was not changed")
	}
}

// A large database is opened without a check of all its pages. The check beside the work finds the damage.
func TestLargeIsCheckedAfterOpen(t *testing.T) {
	path := filled(t)
	raw(t, path, `CREATE TABLE padding (x BLOB)`, `INSERT INTO padding VALUES (zeroblob(20000000))`)
	check := func() error {
		s := openSQLite(t, path, sqlstore.Options{})
		fault, err := s.CheckStructure(t.Context())
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return fault
	}
	if fault := check(); fault != nil {
		t.Fatalf("an intact database: %v", fault)
	}

	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, 4096), 2500*4096); err != nil {
		t.Fatal(err)
	}
	if check() == nil {
		t.Fatal("no damage was found")
	}
}

func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "is damaged; it was not changed")
}

func TestOtherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	raw(t, path, "CREATE TABLE songs (title TEXT)")
	refused(t, path, "database of another program")
}

func TestNewerSchema(t *testing.T) {
	path := filled(t)
	raw(t, path, "INSERT INTO schema_version (version_id, is_applied) VALUES (999, 1)")
	refused(t, path, "schema version 999, this program knows only")
}

func TestNoFolder(t *testing.T) {
	_, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "missing", "record.db"), sqlstore.Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
}

// TestSettings: the settings that durability depends on are in effect, and only the owner can read the files.
func TestSettings(t *testing.T) {
	path := filled(t)

	if runtime.GOOS != "windows" {
		for _, name := range []string{path, path + ".lock", path + ".reserve"} {
			st, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if st.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", name, st.Mode())
			}
		}
	}

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Fatalf("journal mode %q, %v", mode, err)
	}
}

// TestClose: calls after Close, and calls that wait meanwhile, return ErrStopped, and no goroutine is left.
func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "record.db"), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	acked := make(chan gozzard.TaskSeq, 10_000)
	for range 8 {
		wg.Go(func() {
			for {
				acc, err := s.Accept(t.Context(), benchTask(1))
				if errors.Is(err, record.ErrStopped) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				acked <- acc.Task.Seq
			}
		})
	}

	<-acked

	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	wg.Wait()

	if _, err := s.Task(t.Context(), 1); !errors.Is(err, record.ErrStopped) {
		t.Fatalf("a read after Close: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, record.ErrStopped) {
		t.Fatalf("a ping after Close: %v", err)
	}
}

// TestObserve: every call is reported together with its error.
func TestObserve(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	s := openSQLite(t, filepath.Join(t.TempDir(), "record.db"),
		sqlstore.Options{Observe: func(op string, d time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				op += " failed"
			}
			seen[op]++
		}})

	if _, err := s.Accept(t.Context(), benchTask(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Task(t.Context(), 99); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Fatal(err)
	}

	mu.Lock()
	defer mu.Unlock()

	for _, op := range []string{"accept", "commit", "task failed"} {
		if seen[op] != 1 {
			t.Errorf("%q was reported %d times of %v", op, seen[op], seen)
		}
	}
}

// TestNothingGrows: after pruning, nothing of the tasks is left, and definitions that no process has are gone.
func TestNothingGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	var kept []byte
	for i := range 20 {
		n := benchTask(50)
		n.IdempotencyKey = fmt.Sprint(i)
		for j := range n.Attempts {
			n.Attempts[j].State = gozzard.AttemptFailed
			n.Attempts[j].Spec = gozzard.EncodeSpec(&gozzard.Spec{ReportID: int64(i*1000 + j)})
		}
		kept = n.Attempts[0].Spec // each task registers the process again, so it has the last definition
		n.Register = []record.Process{{ID: gozzard.ProcID{Agent: "a", Key: gozzard.Key{Namespace: "n", Name: "p"}},
			Spec: kept}}
		if _, err := s.Accept(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}

	for n := 1; n > 0; {
		var err error
		if n, err = s.Prune(t.Context(), time.Now().Add(time.Hour), 7); err != nil {
			t.Fatal(err)
		}
	}

	for p, err := range s.Processes(t.Context(), nil) {
		if err != nil || !bytes.Equal(p.Spec, kept) {
			t.Fatalf("the process has %s, %v", p.Spec, err)
		}
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()

	for table, want := range map[string]int{"tasks": 0, "items": 0, "attempts": 0, "garbage": 0, "idempotency": 0,
		"specs": 1, "audit": 40} {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil || n != want {
			t.Errorf("%s has %d rows, want %d (%v)", table, n, want, err)
		}
	}
}
