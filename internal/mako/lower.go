package mako

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The names in a Starlark program: v_ are variables of the template, b_ are lists of one element for variables that
// closures assign to, k_ are functions of this package (given as pk_), and others are temporary.

// lowering writes a Python block as a Starlark program. Most operations become calls of functions in this package, because
// Starlark means something else by them. Starlark itself has the control flow, the variables and the functions.
type lowering struct {
	text   strings.Builder
	lines  []int // the line of the template for each line of the program
	indent int
	temps  int
	scope  *scope
	body   *scope
	early  map[string]bool // variables of the template that are read from the context
	loops  []string        // the loop variables of control lines that are open
	exact  bool            // nothing is joined
}

// scope is a function, a comprehension or a class.
type scope struct {
	parent   *scope
	class    bool
	names    map[string]bool // assigned in it
	boxed    map[string]bool // of those, the ones that closures assign to
	declared map[string]bool // of the body: assigned so far
	keywords string          // the parameter of a lambda that takes keyword arguments
	loops    []*openLoop     // in the closure that is being written
	outer    int             // loops outside of that closure
	try      int             // how many closures deep
}

// openLoop is a loop around the statement that is being written.
type openLoop struct{ broken string } // the flag that a break sets, if there is an else

// program is a Starlark program and the lines of the template that its lines come from.
type program struct {
	text  string
	lines []int
}

// lowerBlock writes a program that defines the function render. In an exact program, each text and each value is written before the
// next one is made.
func lowerBlock(block *node, exact bool) (p *program, err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ours := r.(*ParseError)
		if !ours {
			panic(r)
		}
		p, err = nil, fault
	}()

	l := &lowering{indent: 1, exact: exact}
	l.body = newScope(nil)
	l.body.collect(block, false)
	l.body.settle()
	l.scope = l.body
	l.statements(block)

	head := &lowering{}
	for _, name := range usedKernel(l.text.String()) {
		head.emit(1, name+" = p"+name)
	}
	head.emit(1, "def render():")
	head.indent = 1
	for _, name := range sortedNames(l.early) {
		head.emitf(1, "v_%s = k_ctx(%s)", name, strconv.Quote(name))
	}
	for _, name := range sortedNames(l.body.boxed) {
		head.emitf(1, "b_%s = [k_ctx(%s)]", name, strconv.Quote(name))
	}
	return &program{head.text.String() + l.text.String(), append(head.lines, l.lines...)}, nil
}

var kernelName = regexp.MustCompile(`\b(?:k_[a-z]+)\b`)

// usedKernel are the functions of the kernel that a program may use. Programs make global variables of them, which Starlark finds
// faster than names that it was given.
func usedKernel(text string) []string {
	used := map[string]bool{"k_ctx": true}
	for _, name := range kernelName.FindAllString(text, -1) {
		if kernel.Has("p" + name) {
			used[name] = true
		}
	}
	return sortedNames(used)
}

func sortedNames(set map[string]bool) []string {
	var all []string
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func newScope(parent *scope) *scope {
	return &scope{parent: parent, names: map[string]bool{}, boxed: map[string]bool{}, declared: map[string]bool{}}
}

// emit writes one line.
func (l *lowering) emit(line int, text string) {
	l.text.WriteString(strings.Repeat(" ", l.indent))
	l.text.WriteString(text)
	l.text.WriteByte('\n')
	l.lines = append(l.lines, line)
}

func (l *lowering) emitf(line int, format string, args ...any) {
	l.emit(line, fmt.Sprintf(format, args...))
}

func (l *lowering) temp(prefix string) string {
	l.temps++
	return prefix + strconv.Itoa(l.temps)
}

func (l *lowering) fail(n *node, format string, args ...any) {
	panic(&ParseError{fmt.Sprintf(format, args...), n.line, 1})
}

// collect finds the names that statements assign to, and those of them that closures assign to.
func (s *scope) collect(n *node, try bool) {
	if n == nil {
		return
	}
	assign := func(name string) {
		s.names[name] = true
		if try {
			s.boxed[name] = true
		}
	}

	switch n.kind {
	case kAssign:
		for _, target := range n.kids[:len(n.kids)-1] {
			targetNames(target, assign)
		}
	case kAugmented, kFor:
		targetNames(n.kids[0], assign)
	case kDelete:
		targetNames(n.kids[0], assign)
	case kImport, kImportFrom:
		for i := 1; i < len(n.names); i += 2 {
			assign(n.names[i])
		}
	case kDef, kClass:
		assign(n.name)
		s.collectOuter(n)
		return
	case kLambda, kListOf, kSetOf, kDictOf, kGenerator:
		return
	case kHandler:
		if n.name != "" {
			assign(n.name)
		}
	case kTry:
		try = true
	}
	for _, k := range n.kids {
		s.collect(k, try)
	}
}

// collectOuter finds the names that an inner function declares as names of the outside.
func (s *scope) collectOuter(inner *node) {
	inner.walk(func(n *node) bool {
		if n.kind == kGlobal || n.kind == kNonlocal {
			for _, name := range n.names {
				s.boxed[name] = true
				if s.parent == nil {
					s.names[name] = true
				}
			}
		}
		return true
	})
}

// settle leaves only own names among those that closures assign to.
func (s *scope) settle() {
	maps.DeleteFunc(s.boxed, func(name string, _ bool) bool { return !s.names[name] })
}

// targetNames gives the names in what is assigned to.
func targetNames(n *node, each func(string)) {
	switch n.kind {
	case kName:
		each(n.name)
	case kTuple, kList, kStarred:
		for _, k := range n.kids {
			targetNames(k, each)
		}
	}
}

// load is the expression that reads a variable.
func (l *lowering) load(name string) string {
	for s := l.scope; s != nil; s = s.parent {
		if !s.names[name] || s.class && s != l.scope {
			continue
		}
		if s.keywords == name {
			return "k_unkw(v_" + name + ")"
		}
		if s.boxed[name] {
			return "b_" + name + "[0]"
		}
		if s == l.body && !s.declared[name] {
			l.fromContext(name)
		}
		return "v_" + name
	}

	if name == "loop" && len(l.loops) > 0 {
		return l.loops[len(l.loops)-1]
	}
	l.fromContext(name)
	return "v_" + name
}

func (l *lowering) fromContext(name string) {
	if l.early == nil {
		l.early = map[string]bool{}
	}
	l.early[name] = true
}

// store writes an assignment of an expression to a variable.
func (l *lowering) store(line int, name, value string) {
	for s := l.scope; s != nil; s = s.parent {
		if s.names[name] {
			s.declared[name] = true
			if s.boxed[name] {
				l.emitf(line, "b_%s[0] = %s", name, value)
				return
			}
			break
		}
	}
	l.emitf(line, "v_%s = %s", name, value)
}

// assign writes an assignment to any target.
func (l *lowering) assign(target *node, value string) {
	switch target.kind {
	case kName:
		l.store(target.line, target.name, value)
	case kAttribute:
		l.emitf(target.line, "k_setattr(%s, %s, %s)", l.expr(target.kids[0]), strconv.Quote(target.name), value)
	case kSubscript:
		if target.kids[1].kind == kSlice {
			l.fail(target, "assignment to a slice is not supported")
		}
		l.emitf(target.line, "k_setindex(%s, %s, %s)", l.expr(target.kids[0]), l.expr(target.kids[1]), value)
	case kTuple, kList:
		l.unpack(target, value)
	default:
		l.fail(target, "cannot assign to this expression")
	}
}

// unpack writes an assignment to several targets.
func (l *lowering) unpack(target *node, value string) {
	star := slices.IndexFunc(target.kids, func(k *node) bool { return k.kind == kStarred })
	names := make([]string, len(target.kids))
	for i := range names {
		names[i] = l.temp("t")
	}

	left := "(" + strings.Join(names, ", ") + ",)"
	if len(names) == 0 {
		l.emitf(target.line, "k_unpack(%s, 0, -1)", value)
		return
	}
	l.emitf(target.line, "%s = k_unpack(%s, %d, %d)", left, value, len(names), star)
	for i, k := range target.kids {
		if k.kind == kStarred {
			k = k.kids[0]
		}
		l.assign(k, names[i])
	}
}
