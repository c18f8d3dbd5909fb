package mako_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/mako"
)

// stored gives templates that tests include, and counts how often each is asked for.
func stored(asked map[string]int) mako.Find {
	texts := map[string]string{
		"a": "A\n# Ginclude 'b'\nZ", "b": "B ${1}", "c": "# Ginclude \"d\"", "d": "# Ginclude \"c\"\n", "bad": "${open('x')}",
		"self": "# Ginclude 'self'", "big": strings.Repeat("x", 60<<10), "tab": "a\tb", "begin": "% if InstID == 1:", "end": "% endif",
		"broken": "% if x", "fails": "first\n${1/0}", "empty": "", "tag": "<%include file='/etc/passwd'/>",
	}
	for i := range 20 { // each includes the next one, once and a hundred times
		texts[fmt.Sprint("n", i)] = fmt.Sprintf("# Ginclude \"n%d\"\n", i+1)
		texts[fmt.Sprint("w", i)] = strings.Repeat(fmt.Sprintf("# Ginclude \"w%d\"\n", i+1), 100)
	}
	return func(name string) (string, error) {
		asked[name]++
		text, ok := texts[name]
		if !ok {
			return "", &missingError{name}
		}
		return text, nil
	}
}

// TestLoad follows lines with Ginclude.
func TestLoad(t *testing.T) {
	asked := map[string]int{}
	find := stored(asked)
	with := &mako.Context{Values: map[string]mako.Value{"InstID": mako.Int(1)}}
	for text, want := range map[string]string{
		"x\n# Ginclude \"a\"\ny\n":                    "x\nA\nB 1\nZ\ny\n",
		"# Ginclude \"a\"\r\ny":                       "A\nB 1\nZ\r\ny",
		" # Ginclude \"a\"\n":                         " # Ginclude \"a\"\n",
		"# Ginclude a\n#Gincluded\n":                  "# Ginclude a\n#Gincluded\n",
		"# Ginclude 'tab'\n\t|":                       "a    b\n    |",
		"# Ginclude 'begin'\nyes\n# Ginclude 'end'\n": "yes\n",
		"# Ginclude 'empty'":                          "",
		strings.Repeat("# Ginclude 'b'\n", 500):       strings.Repeat("B 1\n", 500),
	} {
		compiled, err := mako.Load(text, find, small())
		if err != nil {
			t.Errorf("%.60q: %v", text, err)
			continue
		}
		if got, err := compiled.Render(context.Background(), with, small()); err != nil || got != want {
			t.Errorf("%.60q: %.60q %v, want %.60q", text, got, err, want)
		}
	}
	if asked["b"] > 8 {
		t.Errorf("a template was asked for %d times", asked["b"])
	}
}

// TestTT5Includes: what is included passes the same check and the same limits, and the error says which of both it was.
func TestTT5Includes(t *testing.T) {
	find := stored(map[string]int{})
	for _, c := range []struct{ text, kind, says string }{
		{"# Ginclude \"c\"", "render", "c → d → c"},
		{"# Ginclude \"self\"", "render", "self → self"},
		{"# Ginclude \"x\"", "missing", "[x]"},
		{"# Ginclude 'bad'", "check", "[open]"},
		{"${open('x')}\n# Ginclude 'x'", "check", "[open]"},
		{"# Ginclude 'broken'", "check", "line: 1"},
		{"# Ginclude 'tag'", "check", "[IncludeTag]"},
		{"# Ginclude 'n0'", "render", "more than 16"},
		{"# Ginclude 'w0'", "render", "more than 16"},
		{"# Ginclude 'w18'", "missing", "[w20]"},
		{strings.Repeat("# Ginclude 'empty'\n", 513), "render", "more than 512"},
		{"# Ginclude 'big'\n# Ginclude 'big'\n", "render", "more than 65536 bytes"},
		{strings.Repeat("\t", 20<<10), "render", "has 81920 bytes"},
	} {
		_, err := mako.Load(c.text, find, small())
		kind := kindOf(err)
		if kind != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%.60q: %s %v, want %s %s", c.text, kind, err, c.kind, c.says)
		}
	}
}

// kindOf is which of the errors of Load an error is.
func kindOf(err error) string {
	var check *mako.CheckError
	var fault *mako.RenderError
	var missing *missingError
	switch {
	case errors.As(err, &check):
		return "check"
	case errors.As(err, &fault):
		return "render"
	case errors.As(err, &missing):
		return "missing"
	}
	return "none"
}

// TestIncludedLine: the line of an error counts in the text with what it includes.
func TestIncludedLine(t *testing.T) {
	compiled, err := mako.Load("x\n# Ginclude 'fails'\n", stored(map[string]int{}), small())
	if err != nil {
		t.Fatal(err)
	}
	_, err = compiled.Render(context.Background(), &mako.Context{}, small())
	var fault *mako.RenderError
	if !errors.As(err, &fault) || fault.Line != 3 || fault.Source != "${1/0}" || fault.Message != "division by zero" {
		t.Errorf("got %+v", err)
	}
}
