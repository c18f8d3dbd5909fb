package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gozzard/gozzard/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func entry(i int) journal.Entry {
	return journal.Entry{Type: journal.Type(i%5 + 1), Body: fmt.Appendf(nil, "body %d", i)}
}

func open(t *testing.T, dir string) (*journal.Journal, []journal.Record) {
	t.Helper()
	j, recs, err := journal.Open(dir, journal.Options{Reserve: 4096,
		Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, recs
}

func closeIt(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// fill makes a journal of n synced records and returns its bytes.
func fill(t *testing.T, dir string, n int) (id [16]byte, data []byte) {
	t.Helper()
	j, _ := open(t, dir)
	for i := range n {
		if _, err := j.Append(false, entry(i)); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}

	id = j.ID()
	closeIt(t, j)
	data, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}

	return id, data
}

func checkPrefix(t *testing.T, recs []journal.Record) {
	t.Helper()
	for i, r := range recs {
		want := entry(i)
		if r.LSN != uint64(i)+1 || r.Type != want.Type || string(r.Body) != string(want.Body) {
			t.Fatalf("record %d is %+v, want %+v", i, r, want)
		}
	}
}

func TestWhatWasAppendedIsReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	id, _ := fill(t, dir, 20)
	j, recs := open(t, dir)
	if len(recs) != 20 || j.ID() != id || j.Synced() != 20 || j.Written() != 20 {
		t.Fatalf("got %d records, same id %v, synced %d, written %d", len(recs), j.ID() == id, j.Synced(), j.Written())
	}

	checkPrefix(t, recs)

	if lsn, err := j.Append(false, entry(20), entry(21)); lsn != 22 || err != nil {
		t.Fatalf("Append = %d, %v", lsn, err)
	}

	closeIt(t, j)

	if _, err := j.Append(true, entry(1)); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}

	_, recs = open(t, dir)
	if len(recs) != 22 {
		t.Errorf("got %d records", len(recs))
	}

	checkPrefix(t, recs)
}

func TestTooLargeIsRefused(t *testing.T) {
	j, _ := open(t, t.TempDir())
	if _, err := j.Append(true, journal.Entry{Body: make([]byte, journal.MaxBody+1)}); !errors.Is(err,
		journal.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if lsn, err := j.Append(true, journal.Entry{Type: 1}); lsn != 1 || err != nil {
		t.Errorf("got %d, %v", lsn, err)
	}
}

func TestConcurrentAppendsShareSyncs(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	var syncs atomic.Int64
	gate := make(chan struct{})
	journal.SetSync(j, func(*os.File) error {
		if syncs.Add(1) == 1 {
			<-gate // the others gather behind a slow disk
		}
		return nil
	})

	const n = 200
	seen := make([]uint64, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			lsn, err := j.Append(false, entry(i))
			if err != nil || j.Synced() < lsn {
				t.Errorf("lsn %d: synced %d, %v", lsn, j.Synced(), err)
			}
			seen[i] = lsn
		})
	}

	for j.Written() < n {
		runtime.Gosched()
	}

	close(gate)
	wg.Wait()

	if got := syncs.Load(); got != 2 {
		t.Errorf("%d syncs for %d records written during the first, want 2", got, n)
	}

	unique := map[uint64]bool{}
	for _, lsn := range seen {
		unique[lsn] = true
	}

	if len(unique) != n {
		t.Errorf("%d different numbers for %d records", len(unique), n)
	}
}

func TestFailedSyncIsFatalAndNeverRepeated(t *testing.T) {
	var fatal []error
	j, _, err := journal.Open(t.TempDir(), journal.Options{Reserve: -1,
		Fatal: func(err error) { fatal = append(fatal, err) }})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = j.Close() })
	boom := errors.New("input/output error")
	calls := 0
	journal.SetSync(j, func(*os.File) error { calls++; return boom })

	for range 3 {
		if _, err := j.Append(true, entry(1)); !errors.Is(err, boom) {
			t.Errorf("Append: %v", err)
		}
	}

	if err := j.Compact(nil); !errors.Is(err, boom) {
		t.Errorf("Compact: %v", err)
	}
	if len(fatal) != 1 || !errors.Is(fatal[0], boom) || calls != 1 || j.Synced() != 0 {
		t.Errorf("fatal %v, %d syncs, synced %d", fatal, calls, j.Synced())
	}
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	_, _, err := journal.Open(dir, journal.Options{})
	if want := fmt.Sprintf("state folder in use by pid %d", os.Getpid()); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("second Open: %v, want %q", err, want)
	}
	closeIt(t, j)
	open(t, dir)
}

// TestHolder: the process that uses a folder is named, without a change of the folder.
func TestHolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks of folders")
	}
	dir := t.TempDir()
	if got := journal.Holder(dir); got != "" {
		t.Errorf("%q holds a new folder", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	j, _ := open(t, dir)
	if got, want := journal.Holder(dir), strconv.Itoa(os.Getpid()); got != want {
		t.Errorf("%q holds the folder, want %s", got, want)
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if got := journal.Holder(dir); got != "?" {
		t.Errorf("%q holds a folder whose lock file is gone", got)
	}
	closeIt(t, j)
	for _, none := range []string{dir, filepath.Join(dir, "none")} {
		if got := journal.Holder(none); got != "" {
			t.Errorf("%q holds %s", got, none)
		}
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("access lists are the installer's")
	}

	dir := t.TempDir()
	fill(t, dir, 3)

	check := func(what, want string) {
		t.Helper()
		_, _, err := journal.Open(dir, journal.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}

	file := filepath.Join(dir, "journal")
	must(t, os.Chmod(dir, 0o770))
	check("folder writable by group", "other users can write to it")
	must(t, os.Chmod(dir, 0o700))
	must(t, os.Chmod(file, 0o602))
	check("journal writable by all", "other users can write to it")
	must(t, os.Chmod(file, 0o600))
	must(t, os.Rename(file, file+".x"))
	must(t, os.Symlink(file+".x", file))
	check("journal behind a link", "not a regular file")
	must(t, os.Remove(file))
	must(t, os.Rename(file+".x", file))

	if os.Geteuid() == 0 {
		must(t, os.Chown(file, 12345, -1))
		check("journal of another user", "belongs to user 12345")
		must(t, os.Chown(file, 0, -1))
		must(t, os.Chown(dir, 12345, -1))
		check("folder of another user", "belongs to user 12345")
		must(t, os.Chown(dir, 0, -1))
	}

	_, recs := open(t, dir)
	checkPrefix(t, recs)

	if len(recs) != 3 {
		t.Errorf("%d records left", len(recs))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCompactionKeepsIDAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	j, _, err := journal.Open(dir, journal.Options{Reserve: -1, CompactAt: 1000})
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	id := j.ID()
	n := 0
	for ; !j.WantsCompact(); n++ {
		if _, err := j.Write(false, entry(n)); err != nil {
			t.Fatal(err)
		}
	}

	live := []journal.Entry{{Type: 7, Body: []byte("all")}, {Type: 8, Body: []byte("there is")}}
	must(t, j.Compact(live))

	if j.WantsCompact() {
		t.Error("wants compaction right after one")
	}
	if j.Synced() != uint64(n+2) || j.ID() != id {
		t.Errorf("synced %d of %d, same id %v", j.Synced(), n+2, j.ID() == id)
	}
	if _, err := j.Append(false, entry(3)); err != nil {
		t.Fatal(err)
	}

	closeIt(t, j)
	must(t, os.WriteFile(filepath.Join(dir, "journal.new"), []byte("left by a crash"), 0o600))
	j, recs := open(t, dir)
	want := []journal.Record{
		{LSN: uint64(n) + 1, Type: 7, Body: []byte("all")},
		{LSN: uint64(n) + 2, Type: 8, Body: []byte("there is")},
		{LSN: uint64(n) + 3, Type: 4, Body: []byte("body 3")},
	}
	if d := cmp.Diff(want, recs); d != "" || j.ID() != id {
		t.Errorf("same id %v, records (-want +got):\n%s", j.ID() == id, d)
	}
	if _, err := os.Stat(filepath.Join(dir, "journal.new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftover of a compaction: %v", err)
	}
}

func TestNewerFormatIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/newer.journal")
	must(t, err)
	file := filepath.Join(dir, "journal")
	must(t, os.WriteFile(file, data, 0o600))
	_, _, err = journal.Open(dir, journal.Options{})
	var newer *journal.NewerError
	if !errors.As(err, &newer) || newer.Version != 4 {
		t.Fatalf("got %v", err)
	}

	after, err := os.ReadFile(file)
	must(t, err)

	if string(after) != string(data) {
		t.Error("the file was touched")
	}
}

// The lock of a program that was just killed may exist for a moment: a child that has not executed its own program yet
// has the lock as well.
func TestLockThatIsAboutToEnd(t *testing.T) {
	dir := t.TempDir()
	first, _, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}

	time.AfterFunc(200*time.Millisecond, func() {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})

	second, _, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}
