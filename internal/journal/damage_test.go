package journal_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/test/fuzztest"
)

var update = flag.Bool("update", false, "write the golden files")

// reopen opens a folder whose journal has the given bytes.
func reopen(t *testing.T, data []byte) (id [16]byte, recs []journal.Record, side []byte) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "journal"), data, 0o600))
	o := journal.Options{Reserve: -1, NoSync: true} // there are thousands of cases, and they do not test the disk
	j, recs, err := journal.Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}

	id = j.ID()
	lsn := j.Written()
	if got, err := j.Append(false, entry(99)); err != nil || got != lsn+1 {
		t.Fatalf("Append after damage = %d, %v, want %d", got, err, lsn+1)
	}

	closeIt(t, j)
	j, again, err := journal.Open(dir, o)
	if err != nil || len(again) != len(recs)+1 || j.ID() != id {
		t.Fatalf("after the repair: %d records of %d, same id %v, %v", len(again), len(recs)+1, j.ID() == id, err)
	}

	closeIt(t, j)
	side, _ = os.ReadFile(filepath.Join(dir, "journal.damaged.1"))
	return id, recs, side
}

// whole counts the complete records before a byte.
func whole(data []byte, at int) int {
	recs, _, _ := journal.Scan(data)
	n, end := 0, 64
	for _, r := range recs {
		end += 17 + len(r.Body)
		if end > at {
			break
		}
		n++
	}
	return n
}

// A8: a synced journal that is cut at any byte keeps every complete record and gets a new id.
func TestTruncatedAnywhere(t *testing.T) {
	id, data := fill(t, t.TempDir(), 6)
	for cut := range len(data) {
		got, recs, side := reopen(t, data[:cut])
		checkPrefix(t, recs)
		if len(recs) != whole(data, cut) {
			t.Errorf("cut at %d: %d records, want %d", cut, len(recs), whole(data, cut))
		}
		if got == id {
			t.Errorf("cut at %d of %d: the id stayed though synced records are gone", cut, len(data))
		}
		if end := 64 + len(side); cut > 64 && len(side) > 0 && end > cut {
			t.Errorf("cut at %d: side file has %d bytes", cut, len(side))
		}
	}
}

// A8: one flipped bit anywhere never loses a record before it, and a new id shows that something may be lost.
func TestFlippedBitAnywhere(t *testing.T) {
	id, data := fill(t, t.TempDir(), 3)
	for at := range data {
		padding := at >= 44 && at < 48 || at >= 60 && at < 64
		want := whole(data, at)
		if at < 64 {
			want = 3
		}
		for bit := range 8 {
			bad := append([]byte(nil), data...)
			bad[at] ^= 1 << bit
			recs, _, lost := journal.Scan(bad)
			checkPrefix(t, recs)
			if len(recs) != want || lost == padding {
				t.Errorf("byte %d bit %d: %d records, want %d; lost %v", at, bit, len(recs), want, lost)
			}
			if bit != at%8 { // only one bit of each byte through Open
				continue
			}
			got, recs, _ := reopen(t, bad)
			checkPrefix(t, recs)
			if len(recs) != want || (got == id) != padding {
				t.Errorf("byte %d bit %d: %d records, want %d; same id %v", at, bit, len(recs), want, got == id)
			}
		}
	}
}

// A record that was written, not synced, and torn by a crash is no loss.
func TestTornTailKeepsID(t *testing.T) {
	id := [16]byte{1, 2, 3}
	entries := []journal.Entry{entry(0), entry(1), entry(2)}
	data := journal.Encode(id, 0, 2, entries...)
	end := len(journal.Encode(id, 0, 2, entries[:2]...))
	for cut := end; cut <= len(data); cut++ {
		got, recs, side := reopen(t, data[:cut])
		checkPrefix(t, recs)
		if want := whole(data, cut); got != id || len(recs) != want || len(side) > 0 {
			t.Errorf("cut at %d: same id %v, %d records, want %d, side file %d bytes", cut, got == id, len(recs),
				want, len(side))
		}
	}

	zeros := append(append([]byte(nil), data[:end]...), make([]byte, 500)...) // size reached the disk, data did not
	if got, recs, _ := reopen(t, zeros); got != id || len(recs) != 2 {
		t.Errorf("zeros at the end: same id %v, %d records", got == id, len(recs))
	}
}

// A whole record behind a bad one is not a torn end, whatever the mark says.
func TestRecordBehindDamageChangesID(t *testing.T) {
	id := [16]byte{1, 2, 3}
	data := journal.Encode(id, 0, 1, entry(0), entry(1), entry(2))
	at := len(journal.Encode(id, 0, 1, entry(0)))
	for i := at; i < at+17; i++ {
		data[i] = 0
	}
	got, recs, side := reopen(t, data)
	if got == id || len(recs) != 1 || string(side) != string(data[at:]) {
		t.Errorf("same id %v, %d records, side file %d bytes of %d", got == id, len(recs), len(side), len(data)-at)
	}
}

func TestNotAJournalAtAll(t *testing.T) {
	for _, text := range []string{"", "x",
		"hello, this is no journal but it is longer than a header of one would be, by far"} {
		_, recs, side := reopen(t, []byte(text))
		if len(recs) != 0 || string(side) != text {
			t.Errorf("%q: %d records, side file %q", text, len(recs), side)
		}
	}
}

func TestOnlySomeDamagedFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	for range 12 {
		must(t, os.WriteFile(filepath.Join(dir, "journal"), []byte("garbage"), 0o600))
		j, _ := open(t, dir)
		closeIt(t, j)
	}
	found, err := filepath.Glob(filepath.Join(dir, "journal.damaged.*"))
	if err != nil || len(found) != 8 {
		t.Errorf("%d side files, %v", len(found), err)
	}
}

// The golden files were written by the program of each version and must stay readable.
func TestGolden(t *testing.T) {
	entries := []journal.Entry{{Type: 1, Body: []byte(`{"session":1}`)}, {Type: 200},
		{Type: 3, Body: []byte("进程\x00\xff")}}
	data := journal.Encode([16]byte{0xA1, 0xB2, 15: 0xFF}, 41, 43, entries...)

	if *update {
		must(t, os.WriteFile("testdata/v3.journal", data, 0o600))
		newer := []byte("GOZZJRNL\x04\x00\x00\x00\x00\x00\x00\x00what a later version has to say")
		copy(newer[12:], journal.Checksum(newer[:12]))
		must(t, os.WriteFile("testdata/newer.journal", newer, 0o600))
	}

	golden, err := os.ReadFile("testdata/v3.journal")
	must(t, err)

	if d := cmp.Diff(golden, data); d != "" {
		t.Errorf("what is written has changed; that needs a new format version (-golden +now):\n%s", d)
	}

	want := []journal.Record{{LSN: 42, Type: 1, Body: entries[0].Body}, {LSN: 43, Type: 200, Body: []byte{}},
		{LSN: 44, Type: 3, Body: entries[2].Body}}
	for _, name := range []string{"v1", "v2", "v3"} {
		golden, err := os.ReadFile("testdata/" + name + ".journal")
		must(t, err)
		recs, end, lost := journal.Scan(golden)
		if d := cmp.Diff(want, recs); d != "" || end != len(golden) || lost {
			t.Errorf("%s: end %d of %d, lost %v, records (-want +got):\n%s", name, end, len(golden), lost, d)
		}
	}
}

// A journal of version 1 gets this version and keeps its id. An agent of version 1 that is installed again rejects the
// file and does not change it.
func TestOlderFormatGoesOn(t *testing.T) {
	dir := t.TempDir()
	old, err := os.ReadFile("testdata/v1.journal")
	must(t, err)
	file := filepath.Join(dir, "journal")
	must(t, os.WriteFile(file, old, 0o600))

	for i := range 2 {
		j, recs := open(t, dir)
		if len(recs) != 3+i || j.ID() != [16]byte{0xA1, 0xB2, 15: 0xFF} {
			t.Fatalf("%d records, id %x", len(recs), j.ID())
		}
		_, err = j.Append(true, journal.Entry{Type: 11, Body: []byte("{}")})
		must(t, err)
		closeIt(t, j)
	}

	data, err := os.ReadFile(file)
	must(t, err)

	if data[8] != journal.FormatVersion {
		t.Errorf("marked with version %d", data[8])
	}
}

// A program on trial leaves the version as it is, also when it compacts, so that the previous program can go on.
func TestOlderFormatIsKeptOnTrial(t *testing.T) {
	dir := t.TempDir()
	old, err := os.ReadFile("testdata/v2.journal")
	must(t, err)
	file := filepath.Join(dir, "journal")
	must(t, os.WriteFile(file, old, 0o600))

	version := func() byte {
		data, err := os.ReadFile(file)
		must(t, err)
		return data[8]
	}

	j, recs, err := journal.Open(dir, journal.Options{KeepVersion: true})
	must(t, err)
	_, err = j.Append(true, journal.Entry{Type: 3, Body: []byte("{}")})
	must(t, err)
	if version() != 2 || len(recs) != 3 {
		t.Errorf("version %d, %d records", version(), len(recs))
	}
	must(t, j.Compact([]journal.Entry{{Type: 1, Body: []byte("{}")}}))
	if version() != 2 {
		t.Errorf("version %d after a compaction", version())
	}

	must(t, j.RaiseVersion())
	must(t, j.RaiseVersion())
	if version() != journal.FormatVersion {
		t.Errorf("version %d after the trial", version())
	}
	closeIt(t, j)

	j, recs = open(t, dir)
	if len(recs) != 1 {
		t.Errorf("%d records", len(recs))
	}
	closeIt(t, j)
}

func FuzzScan(f *testing.F) {
	z := fuzztest.New(f)
	golden, err := os.ReadFile("testdata/v1.journal")
	if err != nil {
		f.Fatal(err)
	}

	z.Add(golden)
	z.Add(golden[:len(golden)-3])
	z.Add([]byte{})

	z.Fuzz(func(t *testing.T, data []byte) {
		recs, end, _ := journal.Scan(data)
		if end > len(data) {
			t.Fatalf("valid prefix of %d in %d bytes", end, len(data))
		}

		for i := 1; i < len(recs); i++ {
			if recs[i].LSN != recs[i-1].LSN+1 {
				t.Fatalf("lsn %d behind %d", recs[i].LSN, recs[i-1].LSN)
			}
		}

		again, _, _ := journal.Scan(data[:end])
		if len(again) != len(recs) {
			t.Fatalf("prefix has %d records, whole file %d", len(again), len(recs))
		}
	})
}
