package api_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// parseDefinition reads a definition; ok is false if the server rejects the request.
func parseDefinition(t *testing.T, s *server, in client.DefinitionText) (out client.ParsedDefinition, ok bool) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		return out, false
	}
	r := s.call(http.MethodPost, "/api/v1/definitions/parse", string(body))
	if r.code >= http.StatusInternalServerError {
		t.Fatalf("%q: %d %s", body, r.code, r.body)
	}
	if r.code != http.StatusOK {
		return out, false
	}
	r.decode(t, &out)
	return out, true
}

// FuzzParseDefinition: every document becomes a text that is read as the same document.
func FuzzParseDefinition(f *testing.F) {
	z := fuzztest.New(f)
	for _, doc := range []string{`{}`, `{"name":"a: b","env":{"A":"\u2028\n \t","B":"- x"},"l":[1,[],{}]}`,
		`{"":"\u0000\r","~":"null"}`, `{"a":"|\n  x","b":"'\"","c":"yes","d":1e999,"e":-0}`, `{"a":"\ud800"}`} {
		z.Add(doc)
	}

	s := newServer(f)
	z.Fuzz(func(t *testing.T, doc string) {
		if len(doc) > 4096 || !json.Valid([]byte(doc)) {
			return
		}
		there, ok := parseDefinition(t, s, client.DefinitionText{Document: json.RawMessage(doc)})
		var was, is any
		if !ok || json.Unmarshal([]byte(doc), &was) != nil || was == nil || there.Text == "" {
			return
		}

		back, ok := parseDefinition(t, s, client.DefinitionText{Text: there.Text})
		if !ok || back.Document == nil {
			return // the document has a character that no YAML may have: it is edited as a form
		}
		if err := json.Unmarshal(back.Document, &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%q becomes\n%s\nand then %s", doc, there.Text, back.Document)
		}
	})
}

// TestParseLongDefinition: a long definition is converted, one that is too long is rejected.
func TestParseLongDefinition(t *testing.T) {
	s := newServer(t)
	long := strings.Repeat("a 'b' \\ # :\n", 30000)
	doc, err := json.Marshal(map[string]any{"name": "web", "command": long})
	if err != nil {
		t.Fatal(err)
	}
	out, ok := parseDefinition(t, s, client.DefinitionText{Document: doc})
	if !ok || len(out.Text) < len(long) {
		t.Errorf("%v, %d bytes", ok, len(out.Text))
	}
	if _, ok := parseDefinition(t, s, client.DefinitionText{Text: long + long}); ok {
		t.Error("a text that is too long is read")
	}
	doc = append(append([]byte(`{"name":"`), strings.Repeat("a", 600<<10)...), `"}`...)
	if _, ok := parseDefinition(t, s, client.DefinitionText{Document: doc}); ok {
		t.Error("a document that is too long is read")
	}
}

// TestParseWideDefinition: a document with very many values stays in the form of JSON, which is YAML, too. To write it as
// YAML would take seconds of processor time.
func TestParseWideDefinition(t *testing.T) {
	s := newServer(t)
	for n, want := range map[int]string{100: "args:\n- 1\n", 100_000: "{\n  \"args\": [\n"} {
		doc := `{"args":[` + strings.Repeat("1,", n) + `1]}`
		out, ok := parseDefinition(t, s, client.DefinitionText{Document: json.RawMessage(doc)})
		if !ok || !strings.HasPrefix(out.Text, want) {
			t.Errorf("%d values: %v, %.40q, want %q", n, ok, out.Text, want)
		}
	}
}
