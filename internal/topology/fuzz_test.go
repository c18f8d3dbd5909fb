package topology_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzParse: for any bytes Parse returns either an error with faults, or a business without faults. Format writes that
// business, and Parse reads the same again.
func FuzzParse(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte(sample))
	files, err := filepath.Glob(filepath.Join("testdata", "faults", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}

	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		z.Add(doc)
	}

	z.Fuzz(func(t *testing.T, doc []byte) {
		b, err := topology.Parse(doc)
		if err != nil {
			var e *gozzard.Error
			if !errors.As(err, &e) || e.Kind != gozzard.ErrInvalid || len(e.Faults) == 0 || b != nil {
				t.Fatalf("%v, %v", b, err)
			}
			return
		}

		if faults := b.Check(); len(faults) > 0 {
			t.Fatalf("read with faults: %v", faults)
		}

		text, err := topology.Format(b)
		if err != nil {
			t.Fatal(err)
		}

		again, err := topology.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := gocmp.Diff(b, again, sameAddrs); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
		if _, err := topology.Number(nil, b); err != nil {
			t.Fatal(err)
		}
	})
}
