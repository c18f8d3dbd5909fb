package mako_test

import (
	"context"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzRender checks and renders any text: it ends within its limits, and an error is one of ours, never of the translator.
func FuzzRender(f *testing.F) {
	z := fuzztest.New(f)
	v := readVectors(f)
	for _, c := range v.Render {
		z.Add(c.Text)
	}
	for _, c := range v.Sandbox {
		z.Add(c.Text)
	}
	z.Add("<%\ndef f(a, *b, c=1, **d):\n    try:\n        return [x for x in b if x]\n    except (KeyError, ValueError) as e:\n        raise\n    finally:\n        pass\n%>${f(1, 2)}")
	tree := readTree(f, v.Tree)
	limits := mako.Limits{Text: 8 << 10, Output: 64 << 10, Memory: 1 << 20, Steps: 20_000, Time: 5 * time.Second}

	z.Fuzz(func(t *testing.T, text string) {
		_ = mako.Check(text)
		with := processContext(t, tree)
		compiled, err := mako.Compile(text, limits)
		out := ""
		if err == nil {
			out, err = compiled.Render(context.Background(), with, limits)
		}
		var fault *mako.RenderError
		if err != nil && !errors.As(err, &fault) {
			t.Fatalf("%q: %T %v", text, err, err)
		}
		if len(out) > limits.Output || !utf8.ValidString(out) {
			t.Fatalf("%q: %d bytes %.100q", text, len(out), out)
		}
	})
}
