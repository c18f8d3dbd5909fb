//go:build linux

package compat_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false,
	"write the golden answers with GOZZARD_BINARY, which must be the program that made the fixtures")

// golden is a list of answers that is compared with a file. The file was written by the program that made the
// fixture.
type golden struct {
	t    *testing.T
	file string
	text bytes.Buffer
	own  map[int]bool // the answers, by their place, that are documents of our own API
	n    int          // how many were added
}

func newGolden(t *testing.T, version, name string) *golden {
	t.Helper()
	if *update && os.Getenv("GOZZARD_BINARY") == "" {
		t.Fatal("-update needs GOZZARD_BINARY: golden answers come from the program that made the fixture")
	}
	return &golden{t: t, file: filepath.Join("testdata", version, "golden", name+".txt"), own: map[int]bool{}}
}

// requestID is all that differs between two answers of a BlueKing door to the same question.
var requestID = regexp.MustCompile(`"request_id":"[0-9a-f]{32}"`)

// bytes adds an answer that must not change by a byte, except for what formerAnswer lists.
func (g *golden) bytes(question string, status int, answer []byte) {
	g.add(question, status, formerAnswer(requestID.ReplaceAll(answer, []byte(`"request_id":"*"`))))
}

// free are the keys of our own API that are not compared: sentences for people, which may be worded anew, and the
// number of a request.
var free = []string{"message", "reason", "request_id"}

// document adds an answer of our own API, which is compared as a JSON document: the order of keys and sentences may
// change. mask names further keys.
func (g *golden) document(question string, status int, answer []byte, mask ...string) {
	g.t.Helper()
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		g.t.Fatalf("%s: %v in %s", question, err, answer)
	}

	v = unresolved(v)
	withoutAdded(v)
	for _, key := range append(mask, free...) {
		hide(v, key)
	}

	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		g.t.Fatal(err)
	}

	g.own[g.n] = true
	g.add(question, status, b)
}

// hide replaces the values of a key that are not empty.
func hide(v any, key string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == key && e != nil && e != "" {
				v[k] = "*"
				continue
			}
			hide(e, key)
		}
	case []any:
		for _, e := range v {
			hide(e, key)
		}
	}
}

func (g *golden) add(question string, status int, answer []byte) {
	g.n++
	fmt.Fprintf(&g.text, "== %s\n%d\n%s\n", question, status, bytes.TrimRight(answer, "\n"))
}

// compare looks at everything that was added.
func (g *golden) compare() {
	g.t.Helper()

	if *update {
		if err := os.MkdirAll(filepath.Dir(g.file), 0o755); err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(g.file, g.text.Bytes(), 0o644); err != nil {
			g.t.Fatal(err)
		}
		return
	}

	want, got := sections(read(g.t, g.file)), sections(g.text.String())
	if len(got) != len(want) {
		g.t.Errorf("%s has %d answers, now there are %d", g.file, len(want), len(got))
	}

	for i := range min(len(want), len(got)) {
		if g.own[i] {
			want[i] = presentSection(g.t, want[i])
		}
		if got[i] != want[i] {
			g.t.Errorf("an answer is not as in %s\n--- then\n%s\n--- now\n%s", g.file, want[i], got[i])
		}
	}
}

func sections(text string) []string { return strings.Split(text, "\n== ") }
