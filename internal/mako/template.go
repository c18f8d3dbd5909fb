package mako

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Template is a template that can be rendered any number of times, also at the same time.
type Template struct {
	lines  []string
	block  *node
	main   *compiled
	exact  func() (*compiled, error) // the same without joined statements: it has the right order of faults
	simple []piece
	names  []string
	size   atomic.Int64 // bytes of the last text: the next one is about as long
}

// compiled is a program that renders a template.
type compiled struct {
	program *starlark.Program
	origin  []int // the line of the template for each line of the program
}

// piece is a text, or a name whose value is shown: most templates have nothing else, and need no program.
type piece struct {
	text, name string
	line       int
}

// Compile reads a template. The error is a *RenderError.
func Compile(text string, limits Limits) (_ *Template, err error) {
	defer ownFault(&err)
	if len(text) > limits.Text {
		return nil, limits.tooLong(len(text))
	}
	if !utf8.ValidString(text) {
		return nil, &RenderError{Message: "the template is not valid UTF-8"}
	}
	if strings.Contains(text, "\x00") {
		return nil, &RenderError{Message: "the template has a NUL character"}
	}
	t := &Template{lines: strings.Split(text, "\n")}

	parts, err := lex(text)
	if err != nil {
		return nil, t.fault(err)
	}
	block, err := assemble(parts)
	if err != nil {
		return nil, t.fault(err)
	}
	t.names = usedNames(block)
	if t.simple = simplePieces(block); t.simple != nil {
		return t, nil
	}

	t.block = block
	t.exact = sync.OnceValues(func() (*compiled, error) { return t.compile(true) })
	if !mayJoin(block) {
		t.main, err = t.exact()
		return t, err
	}
	t.main, err = t.compile(false)
	return t, err
}

// compile makes a program of a template.
func (t *Template) compile(exact bool) (*compiled, error) {
	p, err := lowerBlock(t.block, exact)
	if err != nil {
		return nil, t.fault(err)
	}
	options := &syntax.FileOptions{Set: true, While: true, Recursion: true}
	_, program, err := starlark.SourceProgramOptions(options, "template", p.text, kernel.Has)
	if err != nil {
		return nil, t.programFault(err, p)
	}
	return &compiled{program, p.lines}, nil
}

// Names are the names that a template uses and may take from its context.
func (t *Template) Names() []string { return t.names }

func usedNames(block *node) []string {
	seen := map[string]bool{}
	block.walk(func(n *node) bool {
		if n.kind == kName {
			seen[n.name] = true
		}
		return true
	})
	return sortedNames(seen)
}

// simplePieces gives the pieces of a template that has only texts and names, else nil.
func simplePieces(block *node) []piece {
	pieces := make([]piece, 0, len(block.kids))
	for _, k := range block.kids {
		switch {
		case k.kind == kWrite:
			pieces = append(pieces, piece{text: k.name, line: k.line})
		case k.kind == kShow && len(k.kids) == 1 && len(k.kids[0].kids) == 1 && k.kids[0].kids[0].kind == kName:
			pieces = append(pieces, piece{name: k.kids[0].kids[0].name, line: k.line})
		default:
			return nil
		}
	}
	return pieces
}

// fault makes the error of a step before the render.
func (t *Template) fault(err error) error {
	var parse *ParseError
	if errors.As(err, &parse) {
		return t.at(parse.Line, parse.Message)
	}
	return &RenderError{Message: err.Error()}
}

func (t *Template) at(line int, message string) error {
	e := &RenderError{Line: line, Message: message}
	if line > 0 && line <= len(t.lines) {
		e.Source = strings.TrimSuffix(t.lines[line-1], "\r")
	}
	return e
}

// programFault is an error of Starlark's own parser: something that the translator should have rejected.
func (t *Template) programFault(err error, p *program) error {
	line := 0
	var fault syntax.Error
	if errors.As(err, &fault) {
		line = int(fault.Pos.Line)
	}
	if line > 0 && line <= len(p.lines) {
		return t.at(p.lines[line-1], "this is not supported: "+err.Error())
	}
	return &RenderError{Message: "this template is not supported: " + err.Error()}
}
