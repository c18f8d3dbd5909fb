// Package goldentest compares a door with its golden files: each has a request, what the door asks the control plane
// for it, and the answer.
package goldentest

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
)

var update = flag.Bool("update", false, "write what is answered into the golden files")

// Case is one request, what the door asks the control plane for it, and the answer.
type Case struct {
	About   string            `json:"about"`
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Plane   json.RawMessage   `json:"plane"`
	Status  int               `json:"status"`
	Answer  json.RawMessage   `json:"answer"`
}

// Run sends the request of every golden file to a new door. There must be at least that many files. asked is what that
// door has asked the plane for.
func Run(t *testing.T, least int, open func(t *testing.T) (door http.Handler, asked func() any)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < least {
		t.Fatalf("%d golden files, %v", len(files), err)
	}

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			var g Case
			if err := json.Unmarshal(raw, &g); err != nil {
				t.Fatal(err)
			}

			door, calls := open(t)
			status, answer := g.Send(door)
			asked := pretty(t, calls())

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

// Send sends the request and removes the request id, if there is one, from the answer.
func (g *Case) Send(h http.Handler) (int, json.RawMessage) {
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
	answer := bytes.TrimSpace(w.Body.Bytes())
	if id := w.Header().Get("X-Bkapi-Request-Id"); id != "" {
		answer = bytes.ReplaceAll(answer, []byte(id), []byte(strings.Repeat("0", 32)))
	}
	return w.Code, answer
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
