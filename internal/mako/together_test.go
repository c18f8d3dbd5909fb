package mako_test

import (
	"errors"
	"testing"

	"github.com/gozzard/gozzard/internal/mako"
)

// TestJoinedInOrder: texts and values that one call writes look as if they were written one by one, also where an expression
// changes a value or writes a text. The outputs are those of CPython 3.11 and Mako 1.2.
func TestJoinedInOrder(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for text, want := range map[string]string{
		"<% l = [1] %>a${l}b${l.append(2)}c${l}d":                                                                           "a[1]bNonec[1, 2]d",
		"<% l = [1, 2] %>${l.pop()}${l}${l}":                                                                                "2[1][1]",
		"<% d = {} %>x${d}${d.setdefault('a', 1)}${d} ${d['a'] + 1}":                                                        "x{}1{'a': 1} 2",
		"<%\nl = [1]\ndef f():\n    l.append(2)\n    return 'f'\n%>${l}${f()}${l}":                                          "[1]f[1, 2]",
		"% try:\na ${InstID} b ${1 // 0} c\n% except ZeroDivisionError:\nno\n% endtry\n":                                    "a 1 b no\n",
		"<%\nl = [0]\nclass C:\n    def __str__(me):\n        l[0] += 1\n        return 'c'\nc = C()\n%>${l[0]}${c}${l[0]}": "0c1",
	} {
		if got, err := render(text, with); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestJoinedFaults: the first fault of a template is the one that is reported, with its line.
func TestJoinedFaults(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for text, want := range map[string]mako.RenderError{
		"a\n${missing}\n${1 // 0}\n":          {Line: 2, Source: "${missing}", Message: "Undefined"},
		"a ${InstID}\n\nb ${1 // 0}\n${gone}": {Line: 3, Source: "b ${1 // 0}", Message: "integer division or modulo by zero"},
	} {
		_, err := render(text, with)
		var fault *mako.RenderError
		if !errors.As(err, &fault) || *fault != want {
			t.Errorf("%q: %#v, want %#v", text, fault, want)
		}
	}
}
