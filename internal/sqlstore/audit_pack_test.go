package sqlstore

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"
	"testing"
)

// Packers are shared between calls. Every text must still be packed whole and alone.
func TestPackTextsAtTheSameTime(t *testing.T) {
	var calls sync.WaitGroup
	for c := range byte(8) {
		calls.Go(func() {
			for n := range 20 {
				want := bytes.Repeat([]byte{'a' + c, byte(n)}, minPacked*(n+1))
				list, err := packTexts([][]byte{want[:minPacked-1], want})
				if err != nil {
					t.Error(err)
					return
				}

				if list[0].packed || !bytes.Equal(list[0].body, want[:minPacked-1]) {
					t.Error("a short text was changed")
				}
				got, err := io.ReadAll(flate.NewReader(bytes.NewReader(list[1].body)))
				if err != nil || !list[1].packed || !bytes.Equal(got, want) {
					t.Errorf("a text of %d bytes came back with %d, error %v", len(want), len(got), err)
				}
			}
		})
	}
	calls.Wait()
}
