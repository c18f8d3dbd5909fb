package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/journal"
)

// smallDisk mounts a small file system, or skips the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// A11: when the disk is full, new operations are rejected, begun ones can still end, and everything works again when
// there is space.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t, "512k")
	dir := filepath.Join(disk, "state")
	now := time.Unix(1000, 0)
	j, _, err := journal.Open(dir, journal.Options{Reserve: 128 << 10, Now: func() time.Time { return now }})
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	id := j.ID()
	filler := filepath.Join(disk, "filler")
	must(t, os.WriteFile(filler, make([]byte, 64<<10), 0o600))

	big := journal.Entry{Type: 9, Body: make([]byte, 3000)}
	taken := uint64(0)
	for {
		lsn, err := j.Append(false, big)
		if err != nil {
			if !errors.Is(err, journal.ErrNoSpace) {
				t.Fatalf("after %d records: %v", taken, err)
			}
			break
		}
		taken = lsn
	}

	if taken < 50 {
		t.Fatalf("only %d records fitted", taken)
	}

	for range 20 {
		taken++
		if lsn, err := j.Append(true, big); err != nil || lsn != taken {
			t.Fatalf("vital record: lsn %d, want %d, %v", lsn, taken, err)
		}
	}

	if _, err := j.Append(false, entry(1)); !errors.Is(err, journal.ErrNoSpace) {
		t.Errorf("a new record without reserve: %v", err)
	}

	for { // the reserve ends as well
		if _, err := j.Append(true, big); err != nil {
			if !errors.Is(err, journal.ErrNoSpace) {
				t.Fatal(err)
			}
			break
		}
		taken++
	}

	if err := j.Compact([]journal.Entry{entry(1)}); !errors.Is(err, journal.ErrNoSpace) {
		t.Errorf("compaction without a byte left: %v", err)
	}

	must(t, os.Remove(filler))
	must(t, j.Compact([]journal.Entry{entry(1)}))
	taken++
	now = now.Add(time.Minute)

	if lsn, err := j.Append(false, entry(2)); err != nil || lsn != taken+1 {
		t.Errorf("after room was made: lsn %d, want %d, %v", lsn, taken+1, err)
	}
	if st, err := os.Stat(filepath.Join(dir, "journal.reserve")); err != nil || st.Size() != 128<<10 {
		t.Errorf("reserve: %v", err)
	}

	must(t, j.Close())
	j, recs, err := journal.Open(dir, journal.Options{Reserve: -1})
	must(t, err)
	defer func() { _ = j.Close() }()

	if len(recs) != 2 || j.ID() != id {
		t.Errorf("%d records, same id %v", len(recs), j.ID() == id)
	}
}

// An agent with a journal also starts on a full disk.
func TestOpenOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "128k")
	dir := filepath.Join(disk, "state")
	j, _, err := journal.Open(dir, journal.Options{Reserve: -1})
	must(t, err)
	_, err = j.Append(true, entry(0))
	must(t, err)
	closeIt(t, j)

	if err := os.WriteFile(filepath.Join(disk, "fill"), make([]byte, 256<<10), 0o600); err == nil {
		t.Fatal("the disk is not small")
	}

	j, recs, err := journal.Open(dir, journal.Options{Reserve: 64 << 10})
	must(t, err)
	defer func() { _ = j.Close() }()
	checkPrefix(t, recs)

	if _, err := j.Append(false, entry(1)); len(recs) != 1 || !errors.Is(err, journal.ErrNoSpace) {
		t.Errorf("%d records, %v", len(recs), err)
	}
}

// TestTD19EndingsHaveHeadroom: a process takes every block that becomes free, the reserve too. What ends something is
// still recorded, and so is how it went, also by a journal that is opened then.
func TestTD19EndingsHaveHeadroom(t *testing.T) {
	disk := smallDisk(t, "2m")
	dir := filepath.Join(disk, "state")
	options := journal.Options{Reserve: 256 << 10}
	j, _, err := journal.Open(dir, options)
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })

	// Take everything, again after each record.
	hog, err := os.Create(filepath.Join(disk, "hog"))
	must(t, err)
	defer hog.Close()
	at := int64(0)
	take := func() {
		for unix.Fallocate(int(hog.Fd()), unix.FALLOC_FL_KEEP_SIZE, at, 4096) == nil {
			at += 4096
		}
	}
	take()

	// Nothing new begins, but what ends something does.
	big := journal.Entry{Type: 9, Body: make([]byte, 1000)}
	var last uint64
	both := func(n int) {
		t.Helper()
		for _, err := j.Append(false, big); err == nil; _, err = j.Append(false, big) { // the last page
			take()
		}
		for range n {
			if _, err := j.Append(false, big); !errors.Is(err, journal.ErrNoSpace) {
				t.Fatalf("something new: %v", err)
			}
			if _, err = j.WriteEnding(big); err != nil {
				t.Fatalf("an ending: %v", err)
			}
			take()
			if last, err = j.Append(true, big); err != nil {
				t.Fatalf("its end: %v", err)
			}
			take()
		}
	}
	both(20)
	must(t, j.Close())
	var recs []journal.Record
	j, recs, err = journal.Open(dir, options)
	must(t, err)
	if uint64(len(recs)) != last {
		t.Fatalf("%d records of %d", len(recs), last)
	}
	both(5)

	// Endings leave room for the ends of what was begun.
	begun := 0
	for _, err = j.WriteEnding(big); err == nil; _, err = j.WriteEnding(big) {
		begun++
		take()
	}
	if !errors.Is(err, journal.ErrNoSpace) || begun == 0 {
		t.Fatalf("after %d endings: %v", begun, err)
	}
	for range begun {
		if _, err := j.Append(true, big); err != nil {
			t.Fatalf("the end of one of %d: %v", begun, err)
		}
		take()
	}
}
