package yamldoc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/yamldoc"
)

// simple converts a tree to Go values: nil, strings, lists and maps.
func simple(n *yamldoc.Node) any {
	switch n.Kind {
	case yamldoc.Null:
		return nil
	case yamldoc.List:
		list := []any{}
		for i := range n.Kids {
			list = append(list, simple(&n.Kids[i]))
		}
		return list
	case yamldoc.Mapping:
		m := map[string]any{}
		for i := range n.Kids {
			m[n.Kids[i].Key] = simple(&n.Kids[i])
		}
		return m
	}
	return n.Text
}

type m = map[string]any
type l = []any

// readable has an example of everything that Parse reads.
var readable = []struct {
	name, src string
	want      any
}{
	{"empty", "", nil},
	{"comments only", "# a\n\n  # b\n", nil},
	{"block mapping", "a: 1\nb: x y\nc:\nd: ~\n", m{"a": "1", "b": "x y", "c": nil, "d": nil}},
	{"nested", "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", m{"a": m{"b": m{"c": "1"}, "d": "2"}, "e": "3"}},
	{"list", "- 1\n- a\n-\n- b: 1\n  c: 2\n", l{"1", "a", nil, m{"b": "1", "c": "2"}}},
	{"list in the key's column", "a:\n- 1\n- 2\nb: 3\n", m{"a": l{"1", "2"}, "b": "3"}},
	{"list below its key", "a:\n  - x: 1\n    y:\n    - 2\n  - x: 3\n",
		m{"a": l{m{"x": "1", "y": l{"2"}}, m{"x": "3"}}}},
	{"lists in lists", "- - 1\n  - 2\n- - 3\n", l{l{"1", "2"}, l{"3"}}},
	{"item on the next line", "-\n  a: 1\n- \n  - 2\n", l{m{"a": "1"}, l{"2"}}},
	{"flow", "a: [1, {b: c}, 'x, y', \"z\"]\n", m{"a": l{"1", m{"b": "c"}, "x, y", "z"}}},
	{"flow over lines", "a: {b: [ # why\n  1,\n2\n ], # and\n c: d }\n", m{"a": m{"b": l{"1", "2"}, "c": "d"}}},
	{"flow with trailing commas", "[1, 2,]", l{"1", "2"}},
	{"flow without values", "{a: , b: }", m{"a": nil, "b": nil}},
	{"empty flows", "a: []\nb: {}\n", m{"a": l{}, "b": m{}}},
	{"JSON", `{"a":1,"b":[true,null,"\u4e2d\/\ud83d\ude00"],"c":{"":-1.5e3}}`,
		m{"a": "1", "b": l{"true", nil, "中/😀"}, "c": m{"": "-1.5e3"}}},
	{"JSON over lines", "{\n\t\"a\": 1,\n\t\"b\": [\n\t\t2\n\t]\n}\n", m{"a": "1", "b": l{"2"}}},
	{"colons", "a: http://x:80/y\nb: c:d\n'e: f': g\n", m{"a": "http://x:80/y", "b": "c:d", "e: f": "g"}},
	{"colons in flow", "{a: http://x:80/y, \"b\":c}", m{"a": "http://x:80/y", "b": "c"}},
	{"comments", "a: b # c\nd: e#f\n#g\nh: '#i'\n", m{"a": "b", "d": "e#f", "h": "#i"}},
	{"quotes", `a: 'it''s'` + "\n" + `b: "\t\"\\\x41\u00e9\U0001F600\e"` + "\n", m{"a": "it's", "b": "\t\"\\Aé😀\x1b"}},
	{"literal", "a: |\n  x\n   y\n\n  z\nb: 1\n", m{"a": "x\n y\n\nz\n", "b": "1"}},
	{"literal stripped", "a: |-\n  x\n\n\nb: 1\n", m{"a": "x", "b": "1"}},
	{"literal kept", "a: |+\n  x\n\nb: 1\n", m{"a": "x\n\n", "b": "1"}},
	{"literal with indent", "a: |2\n    x\n  y\n", m{"a": "  x\ny\n"}},
	{"literal in a list", "- |\n x\n- y\n", l{"x\n", "y"}},
	{"literal with a comment sign", "a: | # comment\n  # text\n", m{"a": "# text\n"}},
	{"marks", "--- # begin\na: 1\n...\n# end\n", m{"a": "1"}},
	{"byte order mark", "\ufeffa: 1", m{"a": "1"}},
	{"line ends of Windows", "a: 1\r\nb:\r\n  - x\r\n  - |\r\n    y\r\n    z\r\n", m{"a": "1", "b": l{"x", "y\nz\n"}}},
	{"Chinese", "名字: 蓝鲸 平台\n列表: [甲, 乙]\n", m{"名字": "蓝鲸 平台", "列表": l{"甲", "乙"}}},
	{"dashes that are texts", "a: -1\nb: --x\n", m{"a": "-1", "b": "--x"}},
}

func TestParse(t *testing.T) {
	for _, tt := range readable {
		t.Run(tt.name, func(t *testing.T) {
			n, err := yamldoc.Parse([]byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, simple(n)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		line      int
		text      string
	}{
		{"anchor", "a: 1\nb: &x 2\n", 2, "anchors"},
		{"alias", "a: *x\n", 1, "aliases"},
		{"tag", "a: !!binary x\n", 1, "tags"},
		{"merge key", "a:\n  <<: {b: 1}\n", 2, "merge keys"},
		{"directive", "%YAML 1.2\n---\na: 1\n", 1, "directives"},
		{"two documents", "a: 1\n---\nb: 2\n", 2, "only one document"},
		{"complex key", "? a\n: b\n", 1, "keys after ?"},
		{"duplicate key", "a: 1\nb: 2\na: 3\n", 3, `"a" is given twice, first at line 1`},
		{"duplicate key in flow", "{a: 1,\n a: 2}", 2, "given twice"},
		{"tab", "a:\n\tb: 1\n", 2, "a tab"},
		{"tab after spaces", "a:\n  \tb: 1\n", 2, "a tab"},
		{"folded", "a: >\n  b\n", 1, "folded"},
		{"text over lines", "a: b\n  c\n", 2, "indented more"},
		{"quotes over lines", "a: \"b\n  c\"\n", 1, "not closed"},
		{"unclosed list", "a: 1\nb: [1,\n 2\n", 2, "not closed"},
		{"unclosed mapping", "{a: 1", 1, "not closed"},
		{"wrong bracket", "a: [1, 2}\n", 1, "expected"},
		{"no comma", "a: [1\n  2]\n", 2, "expected a comma"},
		{"no colon", "a: 1\nb\n", 2, "expected a colon"},
		{"no space", "{a:1}", 1, "expected a colon"},
		{"two keys", "a: b: c\n", 1, "second key"},
		{"list on its key's line", "a: - b\n", 1, "own line"},
		{"list inside of a mapping", "a: 1\n- b\n", 2, "list begins inside"},
		{"mapping inside of a list", "- a\nb: 1\n", 2, "does not belong"},
		{"less indented", "  a: 1\n b: 2\n", 2, "does not belong"},
		{"something after a list", "a: [1] 2\n", 1, "after a value"},
		{"escape", `a: "\q"`, 1, `unknown escape \q`},
		{"half a character", `a: "\ud83d"`, 1, "escape"},
		{"short escape", `a: "\u12"`, 1, "short"},
		{"control character", "a: \x01\n", 1, "U+0001"},
		{"lone carriage return", "a: 1\rb: 2", 1, "U+000D"},
		{"direction", "a: 1\nb: \u202ex\n", 2, "U+202E"},
		{"UTF-8", "a: 1\nb: \xff\n", 2, "UTF-8"},
		{"reserved", "a: @b\n", 1, "in quotes"},
		{"deep flow", strings.Repeat("[", 40), 1, "deeper"},
		{"very deep flow", strings.Repeat("[", 1<<20), 1, "deeper"},
		{"deep block", strings.Repeat("- ", 1<<20), 1, "deeper"},
		{"deep mapping", strings.Repeat("{a: ", 1<<18), 1, "deeper"},
		{"block in brackets", "a: [|\n x]\n", 1, "inside of brackets"},
		{"odd block", "a: |x\n", 1, "after |"},
		{"wide empty lines", "a: |\n     \n  x\n", 3, "empty lines"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := yamldoc.Parse([]byte(tt.src))
			var e *yamldoc.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Line != tt.line || !strings.Contains(e.Text, tt.text) {
				t.Errorf("got line %d: %s, want line %d: %s", e.Line, e.Text, tt.line, tt.text)
			}
		})
	}
}

func TestLines(t *testing.T) {
	n, err := yamldoc.Parse([]byte("# first\na: 1\nb:\n  - x\n  - {c: 2,\n     d: [3,\n  4]}\ne: |\n  y\nf: 5\n"))
	if err != nil {
		t.Fatal(err)
	}

	b := n.Get("b")
	d := b.Kids[1].Get("d")
	for name, tt := range map[string]struct {
		n    *yamldoc.Node
		line int32
	}{
		"a": {n.Get("a"), 2}, "b": {b, 4}, "x": {&b.Kids[0], 4}, "mapping": {&b.Kids[1], 5},
		"d": {d, 6}, "4": {&d.Kids[1], 7}, "e": {n.Get("e"), 8}, "f": {n.Get("f"), 10},
	} {
		if tt.n.Line != tt.line {
			t.Errorf("%s is at line %d, want %d", name, tt.n.Line, tt.line)
		}
	}
}

func TestScalars(t *testing.T) {
	n, err := yamldoc.Parse([]byte(`[7, -3, 007, +1, 1.0, 1e3, "7", 99999999999999999999, true, "true", yes]`))
	if err != nil {
		t.Fatal(err)
	}

	var numbers []int
	var bools []bool
	for i := range n.Kids {
		if x, ok := n.Kids[i].Int(); ok {
			numbers = append(numbers, x)
		}
		if x, ok := n.Kids[i].Bool(); ok {
			bools = append(bools, x)
		}
	}

	if !cmp.Equal(numbers, []int{7, -3}) || !cmp.Equal(bools, []bool{true}) {
		t.Errorf("numbers %v, bools %v", numbers, bools)
	}
}

func TestSize(t *testing.T) {
	if _, err := yamldoc.Parse(make([]byte, yamldoc.MaxSize+1)); err == nil ||
		!strings.Contains(err.Error(), "at most") {
		t.Errorf("got %v", err)
	}
}
