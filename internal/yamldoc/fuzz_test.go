package yamldoc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/gozzard/gozzard/internal/yamldoc"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzParse: for any bytes Parse returns a tree, or an error with a line. It reads JSON as a JSON reader does.
func FuzzParse(f *testing.F) {
	z := fuzztest.New(f)
	for _, seed := range []string{
		"a: 1\nb: [x, {y: z}]\nc:\n- d: 'e'\n  f: \"g\\n\"\n- |\n  h\n",
		`{"a": [1, -2.5e3, {"b": null}], "c": "\ud83d\ude00\"\/"}`, "- - a\n  - b\n-\n  c: d # e\n",
		"---\na: |-\n  b\n\n c\n...\n",
	} {
		z.Add([]byte(seed))
	}

	z.Fuzz(func(t *testing.T, src []byte) {
		n, err := yamldoc.Parse(src)
		var other any
		d := json.NewDecoder(bytes.NewReader(src))
		d.UseNumber()
		isJSON := json.Valid(src) && d.Decode(&other) == nil

		if err != nil {
			var e *yamldoc.Error
			if !errors.As(err, &e) || e.Line < 1 {
				t.Fatalf("error without a line: %v", err)
			}
			if isJSON && !refusable(e.Text) {
				t.Fatalf("JSON refused: %v\n%s", err, src)
			}
			return
		}

		if isJSON {
			if why := differ(n, other); why != "" {
				t.Fatalf("%s\n%s", why, src)
			}
		}
	})
}

// refusable reports whether JSON may be rejected with this error.
func refusable(why string) bool {
	for _, reason := range []string{"given twice", "control", "UTF-8", "deeper", "merge keys", "escape", "a tab"} {
		if strings.Contains(why, reason) {
			return true
		}
	}
	return false
}

// TestLibrary: a library that reads all of YAML reads the same from everything that Parse reads.
func TestLibrary(t *testing.T) {
	for _, tt := range readable {
		if strings.ContainsAny(tt.src, "\t\r") { // the library drops these from texts
			continue
		}
		n, err := yamldoc.Parse([]byte(tt.src))
		if err != nil {
			t.Fatal(err)
		}
		var other any
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(tt.src, "\ufeff")), &other); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if why := differ(n, other); why != "" {
			t.Errorf("%s: %s", tt.name, why)
		}
	}
}

// differ says where the tree and the value of another reader differ, or "". Numbers and truth values of the other
// reader are not compared: the tree has them as they are written.
func differ(n *yamldoc.Node, other any) string {
	switch other := other.(type) {
	case nil:
		if n.Kind != yamldoc.Null {
			return fmt.Sprintf("%s %q at line %d, there nothing", n.Kind, n.Text, n.Line)
		}
	case string:
		if n.Text != other || n.Kind != yamldoc.Plain && n.Kind != yamldoc.Quoted {
			return fmt.Sprintf("%s %q at line %d, there %q", n.Kind, n.Text, n.Line, other)
		}
	case json.Number:
		if n.Kind != yamldoc.Plain || n.Text != other.String() {
			return fmt.Sprintf("%s %q at line %d, there %s", n.Kind, n.Text, n.Line, other)
		}
	case []any:
		if n.Kind != yamldoc.List || len(n.Kids) != len(other) {
			return fmt.Sprintf("%s of %d at line %d, there a list of %d", n.Kind, len(n.Kids), n.Line, len(other))
		}
		for i := range other {
			if why := differ(&n.Kids[i], other[i]); why != "" {
				return why
			}
		}
	case map[string]any:
		if n.Kind != yamldoc.Mapping || len(n.Kids) != len(other) {
			return fmt.Sprintf("%s of %d at line %d, there a mapping of %d", n.Kind, len(n.Kids), n.Line, len(other))
		}
		for key := range other {
			kid := n.Get(key)
			if kid == nil {
				return fmt.Sprintf("key %q is only there", key)
			}
			if why := differ(kid, other[key]); why != "" {
				return why
			}
		}
	default:
		if n.Kind != yamldoc.Plain {
			return fmt.Sprintf("%s at line %d, there %v", n.Kind, n.Line, other)
		}
	}
	return ""
}
