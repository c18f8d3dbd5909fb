package specjson_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/specjson"
)

var update = flag.Bool("update", false, "write docs/definition.md and docs/definition.schema.json")

const page = "../../docs/definition.md"

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
	const begin, end = "<!-- begin of keys -->\n", "<!-- end of keys -->\n"
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
