package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzUnpack: with any content of a backup only the files of the list are written, none larger than the input.
func FuzzUnpack(f *testing.F) {
	dir := f.TempDir()
	if _, err := signing.OpenSigner(dir, nil); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, RecordFile), bytes.Repeat([]byte("record"), 100), 0o600); err != nil {
		f.Fatal(err)
	}

	m := Manifest{Version: formatVersion, Taken: time.Now(), Program: "x", Epoch: 1}
	for _, name := range []string{RecordFile, SigningFile} {
		d, err := describe(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		m.Files = append(m.Files, d)
	}

	var seed bytes.Buffer
	if err := pack(&seed, &m, dir, nil); err != nil {
		f.Fatal(err)
	}
	if _, err := unpack(bytes.NewReader(seed.Bytes()), f.TempDir(), nil); err != nil {
		f.Fatal(err)
	}

	z := fuzztest.New(f)
	z.Add(seed.Bytes())
	z.Add(seed.Bytes()[:1024])
	z.Add([]byte{})
	above := f.TempDir()
	z.Fuzz(func(t *testing.T, in []byte) {
		out := filepath.Join(above, "out")
		if err := os.Mkdir(out, 0o700); err != nil {
			t.Fatal(err)
		}

		_, _ = unpack(bytes.NewReader(in), out, nil) // mostly rejected

		if list, err := os.ReadDir(above); err != nil || len(list) != 1 {
			t.Errorf("something got out: %v, %v", list, err)
		}

		list, err := os.ReadDir(out)
		if err != nil || len(list) > len(known) {
			t.Errorf("written: %v, %v", list, err)
		}

		for _, e := range list {
			if st, err := e.Info(); err != nil || !st.Mode().IsRegular() || st.Size() > int64(len(in)) {
				t.Errorf("written: %v, %v", st, err)
			}
		}

		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	})
}
