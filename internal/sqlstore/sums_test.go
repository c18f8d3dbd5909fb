//go:build !windows

package sqlstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// noPause lets a check of pages go on at once.
func noPause(int) {}

// large makes a closed record of at least largeRecord bytes and returns its path.
func large(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	for {
		if _, err := s.Accept(t.Context(), benchTask(5000)); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if st.Size() >= largeRecord {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// flip changes one bit of a file.
func flip(t testing.TB, path string, at int64, bit int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b[:], at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func checkFile(t testing.TB, path string) record.PageCheck {
	t.Helper()
	r, err := sqlstore.CheckFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestK4EveryFlippedBitIsFound: a bit that changes anywhere in a large record is found, in the page where it is.
// SQLite's own check finds only a part of them.
func TestK4EveryFlippedBitIsFound(t *testing.T) {
	path := large(t)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	anywhere := func() (at int64, bit int) { return 4096 + rand.Int64N(st.Size()-4096), rand.IntN(8) }

	// In the closed record, as "gozzard doctor" looks at it.
	structure := 0
	for range 5 {
		at, bit := anywhere()
		flip(t, path, at, bit)
		r, err := sqlstore.CheckFile(t.Context(), path)
		switch {
		case err != nil && strings.Contains(err.Error(), "is damaged"):
			structure++ // SQLite found it before the pages were compared
		case err != nil:
			t.Fatal(err)
		case !slices.Equal(r.Damaged, []uint32{uint32(at/4096) + 1}):
			t.Errorf("bit %d at %d: %s", bit, at, r.String())
		}
		flip(t, path, at, bit)
	}

	// In the record of an open store.
	s := openSQLite(t, path, sqlstore.Options{})
	const flips = 25
	for range flips {
		at, bit := anywhere()
		flip(t, path, at, bit)
		r, err := s.CheckPages(t.Context(), noPause)
		if err != nil || !slices.Equal(r.Damaged, []uint32{uint32(at/4096) + 1}) {
			t.Errorf("bit %d at %d: %s, %v", bit, at, r.String(), err)
		}
		flip(t, path, at, bit)
	}
	if r, err := s.CheckPages(t.Context(), noPause); err != nil || !r.Sound() || r.Pages < largeRecord/4096 {
		t.Fatalf("after all were put back: %s, %v", r.String(), err)
	}

	t.Logf("fault K4: %d bits flipped one by one in %d MB; by its structure SQLite found %d of 5", flips+5, st.Size()>>20,
		structure)
}

// TestK4FlippedRow: a changed letter in a row passes SQLite's own check. The open store finds it and names the table.
func TestK4FlippedRow(t *testing.T) {
	path := filled(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(b), "10.0.0.77:bk.game:gamesvr")
	if at < 0 {
		t.Fatal("the row is not in the file")
	}
	flip(t, path, int64(at)+3, 0) // 10.0.0.77 becomes 10.1.0.77

	s := openSQLite(t, path, sqlstore.Options{})
	r, err := s.CheckPages(t.Context(), noPause)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Damaged, []uint32{uint32(at/4096) + 1}) || !slices.Equal(r.Tables, []string{"attempts"}) {
		t.Fatalf("it found %s", r.String())
	}

	// A page that is written again is sound, and a copy of a damaged record is not made.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Copy(t.Context(), path, path+".copy"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("a copy of the damaged record: %v", err)
	}
}

// TestK4DamagedSums: damage in the file of checksums is not taken for damage of the record.
func TestK4DamagedSums(t *testing.T) {
	path := filled(t)
	flip(t, path+".sums", 32+8*3+1, 2)
	if r := checkFile(t, path); !r.Sound() {
		t.Fatalf("one wrong bit in the checksums: %s", r.String())
	}
	if err := os.Remove(path + ".sums"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.CheckFile(t.Context(), path); !errors.Is(err, sqlstore.ErrNoSums) {
		t.Fatalf("without checksums: %v", err)
	}
	s := openSQLite(t, path, sqlstore.Options{})
	if r, err := s.CheckPages(t.Context(), noPause); err != nil || !r.Sound() {
		t.Fatalf("with new checksums: %s, %v", r.String(), err)
	}
}

// TestK4NoFalseAlarm: while a process writes, checkpoints and is killed again and again, all pages fit.
func TestK4NoFalseAlarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	checks, grown := 0, 0
	for range killRounds {
		before := sizeOf(path)
		cmd, lines, _ := startChild(t, path, "large")
		done := make(chan struct{})
		go func() { defer close(done); readSeqs(t, lines, 1<<30) }()
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && sizeOf(path) < before+2<<20; checks++ {
			if r := checkFile(t, path); !r.Sound() {
				t.Fatalf("while it is written: %s", r.String())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
		_ = cmd.Wait() // killed

		if r := checkFile(t, path); !r.Sound() {
			t.Fatalf("after it was killed: %s", r.String())
		}
		s := openSQLite(t, path, sqlstore.Options{})
		if r, err := s.CheckPages(t.Context(), noPause); err != nil || !r.Sound() {
			t.Fatalf("after it was opened again: %s, %v", r.String(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if r := checkFile(t, path); !r.Sound() {
			t.Fatalf("after it was closed: %s", r.String())
		}
		if sizeOf(path) > before {
			grown++
		}
	}
	if grown < killRounds || checks < killRounds {
		t.Fatalf("the test proves nothing: the record has grown %d times, %d checks", grown, checks)
	}
}

// sizeOf is the size of a file, or 0 if there is none yet.
func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// TestK4CheckWhileWritten: the store checks its pages while it writes, prunes and shrinks them.
func TestK4CheckWhileWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			_, err = s.Accept(t.Context(), benchTask(1000))
		}
		done <- err
	}()

	end := time.Now().Add(2 * time.Minute)
	for i := 0; i < 15 || sizeOf(path) < 4<<20 && time.Now().Before(end); i++ {
		if r, err := s.CheckPages(t.Context(), noPause); err != nil || !r.Sound() {
			t.Errorf("while it is written: %s, %v", r.String(), err)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if sizeOf(path) < 4<<20 {
		t.Fatalf("the test proves nothing: %d bytes", sizeOf(path))
	}
}

// TestK4DamagedLog: SQLite takes a damaged frame of the write-ahead log for its end and drops what follows. The store
// refuses to open such a record, and accepts a log whose last transaction is incomplete.
func TestK4DamagedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	cmd, lines, _ := startChild(t, path, "")
	readSeqs(t, lines, 50)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed

	// Damage in the middle.
	wal := path + "-wal"
	st, err := os.Stat(wal)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, wal, st.Size()/2, 3)
	refused(t, path, "the write-ahead log")
	flip(t, wal, st.Size()/2, 3)

	// An incomplete end.
	if err := os.Truncate(wal, st.Size()-5000); err != nil {
		t.Fatal(err)
	}
	s := openSQLite(t, path, sqlstore.Options{})
	if r, err := s.CheckPages(t.Context(), noPause); err != nil || !r.Sound() {
		t.Fatalf("it found %s, %v", r.String(), err)
	}

	// Damage under the open store.
	if _, err := s.Accept(t.Context(), benchTask(5)); err != nil {
		t.Fatal(err)
	}
	flip(t, wal, 32+24+100, 1)
	if r, err := s.CheckPages(t.Context(), noPause); err != nil || !r.LogDamaged {
		t.Fatalf("after damage in the log: %s, %v", r.String(), err)
	}
	flip(t, wal, 32+24+100, 1)
}

// BenchmarkCheckPages compares all pages of a record of 20 MB.
func BenchmarkCheckPages(b *testing.B) {
	path := large(b)
	s := openSQLite(b, path, sqlstore.Options{})
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	for b.Loop() {
		if r, err := s.CheckPages(b.Context(), noPause); err != nil || !r.Sound() {
			b.Fatal(r.String(), err)
		}
	}
}
