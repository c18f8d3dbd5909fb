package job_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/esb"
	"github.com/gozzard/gozzard/internal/job"
)

var update = flag.Bool("update", false, "write what is answered into the golden files")

// The real plane fits the door.
var _ job.Plane = (*control.Plane)(nil)

func newDoor(t testing.TB) (*esb.Handler, *fake) {
	t.Helper()
	secret := []auth.Digest{auth.Hash("xxx")}
	book, err := auth.New(auth.Config{
		Apps:   []auth.App{{Code: "esb_test", Secrets: secret}, {Code: "bk_monitor", Secrets: secret, AssertsUsers: true}},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("xxx")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	plane := &fake{results: tasks()}
	return job.New(job.Options{Plane: plane, Auth: book, MaxHosts: 10}), plane
}

// golden is one request with what the plane is asked for it and what is answered.
type golden struct {
	About   string            `json:"about"`
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Plane   json.RawMessage   `json:"plane"`
	Status  int               `json:"status"`
	Answer  json.RawMessage   `json:"answer"`
}

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g golden
			if err := json.Unmarshal(raw, &g); err != nil {
				t.Fatal(err)
			}
			door, plane := newDoor(t)
			status, answer := g.send(door)
			asked := pretty(t, plane.calls)
			if *update {
				g.Plane, g.Status, g.Answer = asked, status, answer
				if err := os.WriteFile(file, append(pretty(t, g), '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if status != g.Status {
				t.Errorf("HTTP %d, want %d", status, g.Status)
			}
			if d := cmp.Diff(string(pretty(t, g.Answer)), string(pretty(t, answer))); d != "" {
				t.Errorf("answer (-want +got):\n%s", d)
			}
			if d := cmp.Diff(string(pretty(t, g.Plane)), string(asked)); d != "" {
				t.Errorf("plane (-want +got):\n%s", d)
			}
		})
	}
}

func (g *golden) send(h http.Handler) (int, json.RawMessage) {
	method := g.Method
	if method == "" {
		method = http.MethodPost
	}
	r := httptest.NewRequest(method, g.Path, bytes.NewReader(g.Body))
	for k, v := range g.Headers {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	id := w.Header().Get("X-Bkapi-Request-Id")
	return w.Code, bytes.ReplaceAll(bytes.TrimSpace(w.Body.Bytes()), []byte(id), []byte(strings.Repeat("0", 32)))
}

func pretty(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
