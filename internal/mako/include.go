package mako

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of what a template includes.
const (
	maxIncludeDepth = 16  // templates inside of each other
	maxIncludes     = 512 // lines with an include, in all texts
)

var includeLine = regexp.MustCompile(`(?m)^#[ \t]*Ginclude[ \t]+(?:"([^"\r\n]*)"|'([^'\r\n]*)')[^\r\n]*`)

// Find gives the text of a template by its name: the version that is in use. Its error goes to the caller as it is, for
// example that there is no such template, or that it has no version in use.
type Find func(name string) (text string, err error)

// Load makes the template of a configuration file, as GSEKit does: tabs become blanks, the text must pass Check, each line
// # Ginclude "name" becomes the text of that template, and then Compile reads it all. What is included must pass Check too.
// It is checked where it stands, because it may have one half of a control line. Lines of errors count in the text with
// what it includes.
//
// The error is a *CheckError (GSEKit's 4101007), a *RenderError (4101004), or an error of find.
func Load(text string, find Find, limits Limits) (_ *Template, err error) {
	defer ownFault(&err)
	text = Blanks(text)
	if len(text) > limits.Text { // before the check reads it
		return nil, limits.tooLong(len(text))
	}
	if err := Check(text); err != nil {
		return nil, err
	}

	whole, err := Include(text, find, limits)
	if err != nil {
		return nil, err
	}
	if whole != text {
		if err := Check(whole); err != nil {
			return nil, err
		}
	}
	return Compile(whole, limits)
}

// Blanks replaces tabs by four blanks: GSEKit does that to a configuration file before anything else.
func Blanks(text string) string { return strings.ReplaceAll(text, "\t", "    ") }

// Include replaces each line # Ginclude "name" by the text of that template, and so on in those texts. It checks nothing. The
// error is a *RenderError, if templates include each other in a circle or too much is included, or an error of find.
func Include(text string, find Find, limits Limits) (string, error) {
	i := &includer{find: find, limits: limits, known: map[string]string{}}
	return i.expand(text, nil)
}

// includer expands one template.
type includer struct {
	find   Find
	limits Limits
	known  map[string]string // texts that were found
	lines  int               // with an include, so far
	size   int               // bytes of texts that were included, so far
}

// expand replaces the includes of a text that stands inside of others.
func (i *includer) expand(text string, inside []string) (string, error) {
	var b strings.Builder
	begin := 0
	for _, m := range includeLine.FindAllStringSubmatchIndex(text, -1) {
		name := ""
		for k := 2; k < len(m); k += 2 {
			if m[k] >= 0 {
				name = text[m[k]:m[k+1]]
			}
		}

		included, err := i.one(name, inside)
		if err != nil {
			return "", err
		}
		b.WriteString(text[begin:m[0]])
		b.WriteString(included)
		begin = m[1]
	}
	b.WriteString(text[begin:])
	return b.String(), nil
}

// one gives the text for an include.
func (i *includer) one(name string, inside []string) (string, error) {
	switch i.lines++; {
	case slices.Contains(inside, name):
		chain := strings.Join(append(slices.Clone(inside), name), " → ")
		return "", &RenderError{Message: "templates include each other in a circle: " + chain}
	case len(inside) >= maxIncludeDepth:
		return "", &RenderError{Message: fmt.Sprintf("more than %d templates include each other", maxIncludeDepth)}
	case i.lines > maxIncludes:
		return "", &RenderError{Message: fmt.Sprintf("the template has more than %d includes, with those of what it includes", maxIncludes)}
	}

	text, known := i.known[name]
	if !known {
		found, err := i.find(name)
		if err != nil {
			return "", err
		}
		text = Blanks(found)
		i.known[name] = text
	}
	if i.size += len(text); i.size > i.limits.Text {
		return "", &RenderError{Message: fmt.Sprintf("the template has more than %d bytes with what it includes", i.limits.Text)}
	}
	return i.expand(text, append(slices.Clone(inside), name))
}

func (l Limits) tooLong(size int) error {
	return &RenderError{Message: fmt.Sprintf("the template has %d bytes; at most %d are allowed", size, l.Text)}
}
