package mako

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/antchfx/xpath"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Limits bound what one render may use.
type Limits struct {
	Text   int           // bytes of the template
	Output int           // bytes that the template writes
	Memory int           // bytes that its values take, all added up
	Steps  uint64        // steps of Starlark
	Time   time.Duration // of the clock
}

// DefaultLimits are far above what a configuration file needs.
func DefaultLimits() Limits {
	return Limits{Text: 1 << 20, Output: 16 << 20, Memory: 256 << 20, Steps: 20_000_000, Time: 10 * time.Second}
}

const (
	maxText  = 4 << 20 // bytes of the text of a list or another value
	maxValue = 64 << 20
	maxCalls = 900 // functions inside of each other: about Python's limit
	runKey   = "run"
	errTime  = "the template takes too long"
)

// Context has what a template sees.
type Context struct {
	Values map[string]Value // by name
	// Globals are the names that the variable global_variables has, in their order; nil: there is no such variable.
	Globals []string
	Tree    *Element // the variable cc; nil: there is none
	// This are the set, the module and the host of the process in the tree.
	This   struct{ Set, Module, Host *Element }
	Now    time.Time  // for datetime and time
	Random *rand.Rand // for random; nil: that module cannot be imported
}

// RenderError says why a template cannot be rendered. Line counts from 1 and is 0 if the whole template is meant.
type RenderError struct {
	Line    int
	Source  string // the text of that line
	Message string
}

func (e *RenderError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Source, e.Message)
}

// Template is a template that can be rendered any number of times, also at the same time.
type Template struct {
	lines   []string
	program *starlark.Program
	origin  []int // the line of the template for each line of the program
	simple  []piece
	names   []string
}

// piece is a text, or a name whose value is shown: most templates have nothing else, and need no program.
type piece struct {
	text, name string
	line       int
}

// Compile reads a template. The error is a *RenderError.
func Compile(text string, limits Limits) (*Template, error) {
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

	p, err := lowerBlock(block)
	if err != nil {
		return nil, t.fault(err)
	}
	options := &syntax.FileOptions{Set: true, While: true, Recursion: true}
	_, program, err := starlark.SourceProgramOptions(options, "template", p.text, kernel.Has)
	if err != nil {
		return nil, t.programFault(err, p)
	}
	t.program, t.origin = program, p.lines
	return t, nil
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

// run is one render.
type run struct {
	ctx    context.Context
	limits Limits
	with   *Context
	thread *starlark.Thread
	out    strings.Builder
	spent  int
	calls  int          // of spend
	unused []*call      // to be used again
	caught []*exception // the exceptions whose handlers run
	paths  map[string]*xpath.Expr
	all    Value // global_variables
}

// spend counts bytes, and fails when there are too many or the time is over: functions of ours take no steps of Starlark. What
// a function needs for a moment is not counted, and may be several times the size of a value: so no value is very large.
func (r *run) spend(n int) error {
	if n < 0 || n > maxValue || n > r.limits.Memory-r.spent {
		return &limitError{"the template uses too much memory"}
	}
	r.spent += n
	if r.calls++; r.calls%4096 == 0 && r.ctx.Err() != nil {
		return &limitError{errTime}
	}
	return nil
}

// spendEach counts n times size bytes.
func (r *run) spendEach(n, size int) error {
	if n > 0 && size > r.limits.Memory/n {
		return &limitError{"the template uses too much memory"}
	}
	return r.spend(n * size)
}

func (r *run) write(text string) error {
	if len(text) > r.limits.Output-r.out.Len() {
		return &limitError{fmt.Sprintf("the template writes more than %d bytes", r.limits.Output)}
	}
	r.out.WriteString(text)
	return nil
}

// Render renders a template. The error is a *RenderError.
func (t *Template) Render(ctx context.Context, with *Context, limits Limits) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	r := &run{ctx: ctx, limits: limits, with: with}
	if t.simple != nil {
		return t.renderSimple(r)
	}

	r.thread = &starlark.Thread{Name: "template"}
	r.thread.Print = func(*starlark.Thread, string) {}
	r.thread.SetLocal(runKey, r)
	r.thread.SetMaxExecutionSteps(limits.Steps)
	stop := context.AfterFunc(ctx, func() { r.thread.Cancel(errTime) })
	defer stop()

	globals, err := t.program.Init(r.thread, kernel)
	if err == nil {
		_, err = starlark.Call(r.thread, globals["render"], nil, nil)
	}
	if err != nil {
		return "", t.failure(err, r)
	}
	return r.out.String(), nil
}

func (t *Template) renderSimple(r *run) (string, error) {
	for _, p := range t.simple {
		text := p.text
		if p.name != "" {
			v := r.lookup(p.name)
			if _, unknown := v.(undefined); unknown {
				return "", t.at(p.line, "Undefined")
			}
			text = str(v)
		}
		if err := r.write(text); err != nil {
			return "", t.at(p.line, err.Error())
		}
	}
	return r.out.String(), nil
}

// lookup is the value of a name: of the context, else a function of Python, else undefined.
func (r *run) lookup(name string) Value {
	if v, ok := r.with.Values[name]; ok {
		return v
	}
	switch {
	case name == "cc" && r.with.Tree != nil:
		return &element{r.with.Tree}
	case name == "this" && r.with.Tree != nil:
		return &thisValue{r.with.This.Set, r.with.This.Module, r.with.This.Host}
	case name == "global_variables" && r.with.Globals != nil:
		return r.globals()
	}
	if v, ok := python[name]; ok {
		return v
	}
	return undefined{}
}

// globals is the dict of all variables, itself included. Each render has its own, because a template may change it.
func (r *run) globals() Value {
	if r.all == nil {
		all := starlark.NewDict(len(r.with.Globals) + 1)
		r.all = all
		for _, name := range append(slices.Clone(r.with.Globals), "global_variables") {
			_ = all.SetKey(starlark.String(name), r.lookup(name)) // a string can be a key
		}
	}
	return r.all
}

// failure makes the error of a render: the innermost line of the template, and what Python would say.
func (t *Template) failure(err error, r *run) error {
	message := ""
	if e, ok := asException(err); ok {
		message = e.String()
	} else {
		var limit *limitError
		switch {
		case errors.As(err, &limit):
			message = limit.message
		case r.ctx.Err() != nil:
			message = errTime
		default:
			message = "the template takes too many steps"
		}
	}

	var eval *starlark.EvalError
	if errors.As(err, &eval) {
		for i := len(eval.CallStack) - 1; i >= 0; i-- {
			line := int(eval.CallStack[i].Pos.Line)
			if line > 0 && line <= len(t.origin) && eval.CallStack[i].Pos.Filename() == "template" {
				return t.at(t.origin[line-1], message)
			}
		}
	}
	return &RenderError{Message: message}
}
