package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/api"
)

var update = flag.Bool("update", false, "write the answers of the API, and the documents made from it, to their files")

// exchange is one request with its answer.
type exchange struct {
	method string
	path   string // as sent, with its query
	sent   string // the body of the request
	route  string // the pattern of the route that answered, "" for none
	status int
	kind   string // Content-Type
	body   string
}

// recorder sends requests to a handler and records them with their answers.
type recorder struct {
	golden
	t         *testing.T
	routes    *http.ServeMux // finds the route of a request
	exchanges []exchange
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{golden: newGolden(t), t: t, routes: http.NewServeMux()}
	for _, rt := range api.Routes() {
		r.routes.Handle(rt.Method+" "+rt.Path, http.NotFoundHandler())
	}
	return r
}

// send sends one request and returns its answer. edits change the request, for example its credentials.
func (r *recorder) send(method, path, body string, edits ...func(*http.Request)) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.RemoteAddr = "10.0.0.7:999"
	admin(req)
	for _, edit := range edits {
		edit(req)
	}

	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)

	_, pattern := r.routes.Handler(req)
	_, route, _ := strings.Cut(pattern, " ")
	r.exchanges = append(r.exchanges, exchange{method: method, path: path, sent: body, route: route, status: w.Code,
		kind: w.Header().Get("Content-Type"), body: w.Body.String()})

	return w
}

// text sends one request and returns one text of the JSON object in its answer.
func (r *recorder) text(field, method, path, body string, edits ...func(*http.Request)) string {
	r.t.Helper()
	var answer map[string]any
	check(r.t, json.Unmarshal(r.send(method, path, body, edits...).Body.Bytes(), &answer))
	text, ok := answer[field].(string)
	if !ok {
		r.t.Fatalf("%s %s answers no %s: %v", method, path, field, answer)
	}
	return text
}

// drawn finds what is random in an answer. Only strings match: numbers named id are of the topology.
var drawn = regexp.MustCompile(`"(secret|token|to|id|request_id|certificate|authority|key|uri|csrf|url|public|sealed|authorities)":"[^"]+"`)

// drawnCodes finds the recovery codes of a second factor, and the ids of receivers.
var drawnCodes = regexp.MustCompile(`"(recovery_codes|receivers)":\["[^]]+\]`)

// drawnPath finds what is random in a path: the ids of tokens, relays, receivers and subscriptions, the state of a login, and the epoch of live data.
var drawnPath = regexp.MustCompile(`(/tokens/|state=|epoch=).+|(/(?:relays|receivers|subscriptions)/)[a-z2-7]{12}`)

// sentence finds the sentences of an error. Other tests hold them; a golden file holds what a program reads.
var sentence = regexp.MustCompile(`"(message|text)":"(?:[^"\\]|\\.)*"`)

// transcript writes the exchanges as a golden file has them.
func (r *recorder) transcript() string {
	var b strings.Builder
	for _, e := range r.exchanges {
		body := drawn.ReplaceAllString(e.body, `"$1":"(drawn)"`)
		body = drawnCodes.ReplaceAllString(body, `"$1":["(drawn)"]`)
		if e.status >= 400 {
			body = sentence.ReplaceAllString(body, `"$1":"(sentence)"`)
		}

		switch e.route {
		case "/metrics":
			body = "(figures)\n"
		case "/api/v1/live/snapshot":
			body = "(columns)\n"
		case "/join":
			if e.status == http.StatusOK {
				body = "(script)\n"
			}
		case "/api/v1/openapi.json":
			body = "(docs/openapi.json)\n"
		case "/api/v1/definition.schema.json":
			body = "(docs/definition.schema.json)\n"
		}

		fmt.Fprintf(&b, "> %s %s\n< %d %s\n%s\n", e.method, drawnPath.ReplaceAllString(e.path, "$1$2(drawn)"),
			e.status, e.kind, body)
	}
	return b.String()
}

// TestGoldenAnswers compares the answers of every route with the recorded ones, byte by byte, and with the schemas of
// the OpenAPI document, which their requests must match too.
func TestGoldenAnswers(t *testing.T) {
	doc := parseOpenAPI(t)
	answered := make(map[string]bool)
	for name, play := range scenarios() {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			play(t, r)

			for _, e := range r.exchanges {
				answered[e.method+" "+e.route] = answered[e.method+" "+e.route] || e.status < 400
				if e.route == "" {
					continue
				}
				if text := checkAnswer(doc, e) + checkRequest(doc, e); text != "" {
					t.Errorf("%s %s: %s", e.method, e.path, text)
				}
			}

			compareFile(t, filepath.Join("testdata", "golden", name+".txt"), r.transcript())
		})
	}

	for _, rt := range api.Routes() {
		if !answered[rt.Method+" "+rt.Path] {
			t.Errorf("no golden answer of %s %s", rt.Method, rt.Path)
		}
	}
}

// compareFile compares a text with a committed file, or writes the file when the test runs with -update.
func compareFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
