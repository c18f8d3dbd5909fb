package job_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/test/fuzztest"
	"github.com/gozzard/gozzard/test/goldentest"
)

// FuzzBody sends bodies to all calls: every answer is an envelope, never an internal error, and nothing reaches the
// plane without an identified caller.
func FuzzBody(f *testing.F) {
	z := fuzztest.New(f)
	names := []string{"operate_proc", "operate_process", "manage_proc", "get_proc_result"}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d golden files, %v", len(files), err)
	}

	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var g goldentest.Case
		if err := json.Unmarshal(raw, &g); err != nil {
			f.Fatal(err)
		}
		z.Add(uint8(i), []byte(g.Body))
	}

	for i := range names {
		z.Add(uint8(i), []byte(operate()))
	}

	h, plane := newDoor(f)
	z.Fuzz(func(t *testing.T, which uint8, body []byte) {
		path := bus + names[int(which)%len(names)]
		plane.calls = nil
		e := send(t, h, http.MethodPost, path, string(body))
		if len(plane.calls) > 0 && !bytes.Contains(body, []byte("xxx")) && !bytes.Contains(body, []byte(`\u`)) {
			t.Fatalf("a stranger got through: %s", body)
		}
		if e.Code == blueking.CodeBackend {
			t.Fatalf("internal error on %s: %s", path, body)
		}
	})
}
