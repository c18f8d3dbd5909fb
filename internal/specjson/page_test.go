package specjson_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/specjson"
)

var update = flag.Bool("update", false, "write docs/definition.md and docs/definition.schema.json")

const (
	page    = "../../docs/definition.md"
	chinese = "../../docs/zh/definition.md"
)

// Marks around the table of a page.
const begin, end = "<!-- begin of keys -->\n", "<!-- end of keys -->\n"

// keyTable is the table of the page.
func keyTable() string {
	var b strings.Builder
	b.WriteString("| key | value | default | example | BlueKing's name | meaning |\n|---|---|---|---|---|---|\n")
	for _, k := range specjson.Keys() {
		twins := "ours"
		if len(k.Twins) > 0 {
			twins = "`" + strings.Join(k.Twins, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s | %s |\n", k.Name, k.Form, k.Default, k.Example, twins, k.Meaning)
	}
	return b.String()
}

// TestPage compares the table of docs/definition.md with the keys that the program reads.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no marks around its table", page)
	}
	want := head + begin + keyTable() + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s differs from the program: go test ./internal/specjson -update", page)
	}
}

// TestChinesePage compares what stands in code in the table of docs/zh/definition.md with the keys that the program reads.
// The other texts of that table are written by hand.
func TestChinesePage(t *testing.T) {
	text, err := os.ReadFile(chinese)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), begin)
	table, _, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no marks around its table", chinese)
	}

	want, got := strings.Split(keyTable(), "\n"), strings.Split(table, "\n")
	if len(got) != len(want) {
		t.Fatalf("%s has %d lines in its table, the program %d", chinese, len(got), len(want))
	}
	code := regexp.MustCompile("`[^`]+`")
	for i := range want {
		if w, g := code.FindAllString(want[i], -1), code.FindAllString(got[i], -1); !slices.Equal(w, g) {
			t.Errorf("%s has in line %d of its table\n%s\nthe program has\n%s", chinese, i+1, g, w)
		}
	}
}

// TestSchemaFile compares docs/definition.schema.json with the schema that the server serves.
func TestSchemaFile(t *testing.T) {
	const file = "../../docs/definition.schema.json"
	if *update {
		if err := os.WriteFile(file, specjson.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, specjson.Schema()) {
		t.Errorf("%s differs from the program: go test ./internal/specjson -update", file)
	}
}
