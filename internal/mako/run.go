package mako

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/antchfx/xpath"
	"go.starlark.net/starlark"
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
	// NoTree is the error of a template that uses cc or this; nil: it may use them.
	NoTree *RenderError
	// This are the set, the module and the host of the process in the tree.
	This   struct{ Set, Module, Host *Element }
	Now    time.Time  // for datetime and time
	Random *rand.Rand // for random; nil: that module cannot be imported
	// Unknown says more about a name that is not there, for people; nil: nothing is said.
	Unknown func(name string) string
}

// RenderError says why a template cannot be rendered. Line counts from 1 and is 0 if the whole template is meant.
type RenderError struct {
	Line    int
	Source  string // the text of that line
	Message string // what Python says
	Hint    string // more about it for people; may be ""
}

func (e *RenderError) Error() string {
	text := e.Message
	if e.Line != 0 {
		text = fmt.Sprintf("line %d: %s: %s", e.Line, e.Source, e.Message)
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
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
	noTree bool  // the template has asked for a tree that it may not use
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
func (t *Template) Render(ctx context.Context, with *Context, limits Limits) (text string, err error) {
	defer ownFault(&err)
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	r := &run{ctx: ctx, limits: limits, with: with}
	out, err := t.render(r)
	if r.noTree { // whatever the template made of it
		return "", with.NoTree
	}
	var wrong *RenderError
	if with.Unknown != nil && errors.As(err, &wrong) && strings.Contains(wrong.Message, "Undefined") {
		if name := t.unknownIn(r, wrong.Source); name != "" {
			wrong.Hint = with.Unknown(name)
		}
	}
	return out, err
}

// unknownIn is the first name in a line of the template that its context does not have; "" is none.
func (t *Template) unknownIn(r *run, line string) string {
	first, at := "", len(line)
	for _, name := range t.names {
		found := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).FindStringIndex(line)
		if found == nil || found[0] >= at {
			continue
		}
		if _, unknown := r.lookup(name).(undefined); unknown {
			first, at = name, found[0]
		}
	}
	return first
}

// ownFault makes an error of a fault of this package: templates of one business must not end the server of all.
func ownFault(err *error) {
	if r := recover(); r != nil {
		*err = &RenderError{Message: fmt.Sprintf("this template meets a fault of the program, please report it: %v", r)}
	}
}

func (t *Template) render(r *run) (string, error) {
	if t.simple != nil {
		return t.renderSimple(r)
	}

	r.out.Grow(int(t.size.Load()))
	err := r.execute(t.main)
	if err == nil {
		t.size.Store(int64(r.out.Len()))
		return r.out.String(), nil
	}
	if _, raised := asException(err); !raised || !mayJoin(t.block) {
		return "", t.failure(err, r, t.main)
	}

	exact, err := t.exact() // it says which fault comes first
	if err != nil {
		return "", err
	}
	again := &run{ctx: r.ctx, limits: r.limits, with: r.with}
	err = again.execute(exact)
	r.noTree = r.noTree || again.noTree
	if err != nil {
		return "", t.failure(err, again, exact)
	}
	return again.out.String(), nil
}

// execute runs a program.
func (r *run) execute(p *compiled) error {
	r.thread = &starlark.Thread{Name: "template"}
	r.thread.Print = func(*starlark.Thread, string) {}
	r.thread.SetLocal(runKey, r)
	r.thread.SetMaxExecutionSteps(r.limits.Steps)
	stop := context.AfterFunc(r.ctx, func() { r.thread.Cancel(errTime) })
	defer stop()

	globals, err := p.program.Init(r.thread, kernel)
	if err == nil {
		_, err = starlark.Call(r.thread, globals["render"], nil, nil)
	}
	return err
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
	case (name == "cc" || name == "this") && r.with.NoTree != nil:
		r.noTree = true
		return undefined{}
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
func (t *Template) failure(err error, r *run, p *compiled) error {
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
			if line > 0 && line <= len(p.origin) && eval.CallStack[i].Pos.Filename() == "template" {
				return t.at(p.origin[line-1], message)
			}
		}
	}
	return &RenderError{Message: message}
}
