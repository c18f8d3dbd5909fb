package mako

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxIncludes limits how many templates include each other.
const maxIncludes = 16

var includeLine = regexp.MustCompile(`(?m)^#[ \t]*Ginclude[ \t]+(?:"([^"\r\n]*)"|'([^'\r\n]*)')[^\r\n]*`)

// Include replaces each line # Ginclude "name" by the text of that template, and so on in those texts. Find gives the text
// of a template. A text that is included must pass the check too.
func Include(text string, find func(name string) (string, error), limits Limits) (string, error) {
	return include(text, find, limits, nil)
}

func include(text string, find func(string) (string, error), limits Limits, inside []string) (string, error) {
	var b strings.Builder
	begin := 0
	for _, m := range includeLine.FindAllStringSubmatchIndex(text, -1) {
		name := ""
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				name = text[m[i]:m[i+1]]
			}
		}
		included, err := includeOne(name, find, limits, inside)
		if err != nil {
			return "", err
		}
		b.WriteString(text[begin:m[0]])
		b.WriteString(included)
		begin = m[1]
		if b.Len() > limits.Text {
			return "", &RenderError{Message: fmt.Sprintf("the template has more than %d bytes with what it includes", limits.Text)}
		}
	}
	b.WriteString(text[begin:])
	return b.String(), nil
}

func includeOne(name string, find func(string) (string, error), limits Limits, inside []string) (string, error) {
	if slices.Contains(inside, name) {
		chain := strings.Join(append(slices.Clone(inside), name), " → ")
		return "", &RenderError{Message: "templates include each other in a circle: " + chain}
	}
	if len(inside) >= maxIncludes {
		return "", &RenderError{Message: fmt.Sprintf("more than %d templates include each other", maxIncludes)}
	}
	text, err := find(name)
	if err != nil {
		return "", err
	}
	if err := Check(text); err != nil {
		return "", err
	}
	return include(text, find, limits, append(slices.Clone(inside), name))
}

// Blanks replaces tabs by four blanks: GSEKit does that to a configuration file before anything else.
func Blanks(text string) string { return strings.ReplaceAll(text, "\t", "    ") }
