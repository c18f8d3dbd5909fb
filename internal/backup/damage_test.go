package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/gozzard/gozzard/internal/backup"
)

// TestTT6DamagedBackupIsRefused: bits that flipped anywhere in the file, and ends that are missing, are found by
// the restore drill, every time.
func TestTT6DamagedBackupIsRefused(t *testing.T) {
	r := newRig(t)
	file := r.create(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	temp, bad := t.TempDir(), filepath.Join(t.TempDir(), "bad.age")
	refused, tried := 0, 0
	try := func(what string, b []byte) {
		tried++
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Verify(t.Context(), db, bad, r.ids, temp, nil); err == nil {
			t.Errorf("%s: taken for good", what)
		} else {
			refused++
		}
	}

	const places = 64
	for i := range places {
		at := i * (len(whole) - 1) / (places - 1) // the first and the last byte among them
		b := bytes.Clone(whole)
		b[at] ^= 1 << (i % 8)
		try(fmt.Sprintf("bit %d of byte %d", i%8, at), b)
	}

	for at := range 200 { // the head is small and has parts of every kind
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		try(fmt.Sprintf("bit %d of byte %d", at%8, at), b)
	}

	for _, n := range []int{0, 1, 100, 200, len(whole) / 3, len(whole) / 2, len(whole) - 64<<10, len(whole) - 1024,
		len(whole) - 17, len(whole) - 1} {
		try(fmt.Sprintf("cut to %d bytes", n), whole[:n])
	}

	try("a byte more", append(bytes.Clone(whole), 0))
	try("twice", append(bytes.Clone(whole), whole...))
	t.Logf("%d of %d damaged backups were refused", refused, tried)

	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left after the drills: %v, %v", left, err)
	}
	if _, err := backup.Verify(t.Context(), db, file, r.ids, temp, nil); err != nil {
		t.Errorf("the whole one: %v", err)
	}
}

// entry is a file of a tar as somebody may make one.
type entry struct {
	tar.Header
	body []byte
}

func tarOf(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(e.body))
		if e.Typeflag == 0 {
			e.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.body); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}

// contents takes a good backup apart.
func (r *rig) contents(t testing.TB) []entry {
	t.Helper()
	f, err := os.Open(r.create(t))
	if err != nil {
		t.Fatal(err)
	}

	defer f.Close()
	plain, err := age.Decrypt(f, r.ids...)
	if err != nil {
		t.Fatal(err)
	}

	var all []entry
	for tr := tar.NewReader(plain); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{tar.Header{Name: h.Name, Mode: h.Mode}, b})
	}
}

func (r *rig) encrypt(t testing.TB, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, r.recipients...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "forged.age")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

// edit changes the manifest, which is the first entry.
func edit(t testing.TB, all []entry, change func(m map[string]any)) []entry {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(all[0].body, &m); err != nil {
		t.Fatal(err)
	}
	change(m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append([]entry{{tar.Header{Name: all[0].Name}, b}}, all[1:]...)
}

// TestForgedBackups: whoever knows the public key can write a backup; nothing in it gets out of its folder, and
// nothing but a whole one is taken.
func TestForgedBackups(t *testing.T) {
	r := newRig(t)
	good := r.contents(t)
	if _, err := backup.Verify(t.Context(), db, r.encrypt(t, tarOf(t, good)), r.ids, t.TempDir(), nil); err != nil {
		t.Fatalf("taken apart and put together again: %v", err)
	}

	with := func(i int, e entry) []entry { return append(append(append([]entry{}, good[:i]...), e), good[i:]...) }
	instead := func(i int, e entry) []entry { return append(append(append([]entry{}, good[:i]...), e), good[i+1:]...) }
	files := func(m map[string]any) []any { return m["files"].([]any) }
	firstFile := func(m map[string]any) map[string]any { return files(m)[0].(map[string]any) }
	sum := sha256.Sum256([]byte("x"))
	outside := filepath.Join(t.TempDir(), "escaped")
	for name, all := range map[string][]entry{
		"nothing":           {},
		"no manifest":       good[1:],
		"two manifests":     with(0, good[0]),
		"a file is missing": good[:len(good)-1],
		"a file twice":      with(2, good[1]),
		"a file more":       append(append([]entry{}, good...), entry{tar.Header{Name: "extra"}, []byte("x")}),
		"out of order":      {good[0], good[2], good[1], good[3]},
		"absolute name":     with(1, entry{tar.Header{Name: outside}, []byte("x")}),
		"name that climbs":  with(1, entry{tar.Header{Name: "../escaped"}, []byte("x")}),
		"symbolic link": instead(1, entry{tar.Header{Name: "gozzard.db", Typeflag: tar.TypeSymlink,
			Linkname: outside}, nil}),
		"hard link": instead(1, entry{tar.Header{Name: "gozzard.db", Typeflag: tar.TypeLink,
			Linkname: "/etc/passwd"}, nil}),
		"device": instead(1, entry{tar.Header{Name: "gozzard.db", Typeflag: tar.TypeChar, Devmajor: 1,
			Devminor: 5}, nil}),
		"pipe":   instead(1, entry{tar.Header{Name: "gozzard.db", Typeflag: tar.TypeFifo}, nil}),
		"folder": instead(1, entry{tar.Header{Name: "gozzard.db", Typeflag: tar.TypeDir}, nil}),
		"extended header": instead(1, entry{tar.Header{Name: "gozzard.db", Format: tar.FormatPAX,
			PAXRecords: map[string]string{"comment": "x"}}, good[1].body}),
		"another record": instead(1, entry{tar.Header{Name: "gozzard.db"},
			append(bytes.Clone(good[1].body), 'x')}),
		"a changed record": instead(1, entry{tar.Header{Name: "gozzard.db"},
			append(bytes.Clone(good[1].body[:len(good[1].body)-1]), 'x')}),
		"manifest is no JSON": instead(0, entry{tar.Header{Name: "manifest.json"}, []byte("{")}),
		"manifest is huge": instead(0, entry{tar.Header{Name: "manifest.json"},
			bytes.Repeat([]byte(" "), 1<<20)}),
		"manifest says more":     edit(t, good, func(m map[string]any) { m["more"] = 1 }),
		"a newer format":         edit(t, good, func(m map[string]any) { m["version"] = 2 }),
		"no files":               edit(t, good, func(m map[string]any) { m["files"] = nil }),
		"no epoch":               edit(t, good, func(m map[string]any) { delete(m, "epoch") }),
		"another epoch":          edit(t, good, func(m map[string]any) { m["epoch"] = 2 }),
		"another audit":          edit(t, good, func(m map[string]any) { m["audit"].(map[string]any)["seq"] = 49 }),
		"manifest climbs":        edit(t, good, func(m map[string]any) { firstFile(m)["name"] = "../gozzard.db" }),
		"a size below zero":      edit(t, good, func(m map[string]any) { firstFile(m)["size"] = -1 }),
		"a size above all disks": edit(t, good, func(m map[string]any) { firstFile(m)["size"] = int64(1) << 50 }),
		"another checksum": edit(t, good,
			func(m map[string]any) { firstFile(m)["sha256"] = hex.EncodeToString(sum[:]) }),
		"no checksum": edit(t, good, func(m map[string]any) { firstFile(m)["sha256"] = "" }),
		"a great key": edit(t, good,
			func(m map[string]any) { files(m)[1].(map[string]any)["size"] = 2 << 20 }),
		"a file nobody knows": edit(t, good, func(m map[string]any) {
			m["files"] = append(files(m), map[string]any{"name": "x", "size": 1, "sha256": hex.EncodeToString(sum[:])})
		}),
		"record is something":     forgeFile(t, good, 1, []byte("x")),
		"key is something":        forgeFile(t, good, 3, []byte("x")),
		"authority is something":  forgeFile(t, good, 2, []byte("x")),
		"a record of other tools": forgeFile(t, good, 1, bytes.Repeat([]byte("SQLite format 3\x00"), 4096)),
	} {
		data := filepath.Join(t.TempDir(), "data")
		_, err := backup.Restore(t.Context(), backup.RestoreOptions{Database: db, File: r.encrypt(t, tarOf(t, all)),
			Identities: r.ids, Data: data})
		if err == nil || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: restored (%v)", name, err)
		}
		if list, err := os.ReadDir(data); err != nil || len(list) > 0 {
			t.Errorf("%s: left behind %v, %v", name, list, err)
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Fatalf("%s: got out", name)
		}
	}

	trailing := append(tarOf(t, good), "more"...)
	if _, err := backup.Verify(t.Context(), db, r.encrypt(t, trailing), r.ids, t.TempDir(), nil); err == nil {
		t.Error("something follows the tar and is taken")
	}
}

// forgeFile gives a file another content, with the manifest to match.
func forgeFile(t testing.TB, good []entry, i int, body []byte) []entry {
	t.Helper()
	sum := sha256.Sum256(body)
	all := edit(t, good, func(m map[string]any) {
		f := m["files"].([]any)[i-1].(map[string]any)
		f["size"], f["sha256"] = len(body), hex.EncodeToString(sum[:])
	})
	all[i] = entry{tar.Header{Name: good[i].Name}, body}
	return all
}
