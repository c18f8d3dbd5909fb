package gse_test

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
	"github.com/gozzard/gozzard/internal/gse"
)

var update = flag.Bool("update", false, "write what is answered into the golden files")

// The real plane fits the door.
var _ gse.Plane = (*control.Plane)(nil)

func book(t testing.TB) *auth.Book {
	t.Helper()
	secret := []auth.Digest{auth.Hash("secret")}
	b, err := auth.New(auth.Config{
		Apps: []auth.App{
			{Code: "bk_gsekit", Secrets: secret, AssertsUsers: true}, {Code: "bk_nodeman", Secrets: secret, AssertsUsers: true},
			{Code: "bk_cmdb", Secrets: secret, AssertsUsers: true, MissingOpTypeMeansStart: true}, {Code: "web", Secrets: secret},
		},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("token")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newDoor(t testing.TB) (*esb.Handler, *fake) {
	t.Helper()
	plane := &fake{results: tasks(), rows: 3, hosts: fleet()}
	return gse.New(gse.Options{Plane: plane, Auth: book(t)}), plane
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
	if err != nil || len(files) < 40 {
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
