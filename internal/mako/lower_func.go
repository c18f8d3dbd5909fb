package mako

import (
	"maps"
	"strconv"
	"strings"
)

// closure writes a block as a function without a name in the template, and gives its name.
func (l *lowering) closure(block *node, parameter string, first func()) string {
	name := l.temp("f")
	l.emitf(block.line, "def %s(%s):", name, parameter)
	s := l.scope
	loops, outer := s.loops, s.outer
	s.loops, s.outer = nil, outer+len(loops)
	s.try++

	l.indent++
	if first != nil {
		first()
	}
	l.statements(block)
	l.indent--

	s.loops, s.outer = loops, outer
	s.try--
	return name
}

// try writes a try statement: its blocks are closures, which k_try calls. A closure returns None, or a pair that says how
// the block was left: b for break, c for continue, r for return with the value.
func (l *lowering) try(n *node) {
	body := l.closure(n.kids[0], "", nil)
	var handlers strings.Builder
	for _, h := range n.kids[3:] {
		types := "None"
		if h.kids[0] != nil {
			types = "lambda: " + l.expr(h.kids[0])
		}
		name := l.closure(h.kids[1], "x", func() {
			if h.name != "" {
				l.store(h.line, h.name, "x")
			}
		})
		handlers.WriteString("(" + types + ", " + name + "), ")
	}

	rest := [2]string{"None", "None"}
	for i := range rest {
		if block := n.kids[1+i]; block != nil {
			rest[i] = l.closure(block, "", nil)
		}
	}
	left := l.temp("r")
	l.emitf(n.line, "%s = k_try(%s, [%s], %s, %s)", left, body, handlers.String(), rest[0], rest[1])
	l.afterTry(n, left)
}

// afterTry leaves the loop or the function as a block of a try statement did.
func (l *lowering) afterTry(n *node, left string) {
	s := l.scope
	branch := func(code, statement string) {
		l.emitf(n.line, "if %s != None and %s[0] == %q:", left, left, code)
		l.indent++
		if code == "b" && len(s.loops) > 0 && s.loops[len(s.loops)-1].broken != "" {
			l.emitf(n.line, "%s = True", s.loops[len(s.loops)-1].broken)
		}
		l.emit(n.line, statement)
		l.indent--
	}

	switch {
	case len(s.loops) > 0:
		branch("b", "break")
		branch("c", "continue")
	case s.outer > 0:
		branch("b", "return "+left)
		branch("c", "return "+left)
	}
	if s.try > 0 {
		branch("r", "return "+left)
	} else {
		branch("r", "return "+left+"[1]")
	}
}

// parameters writes the parameters of a function and declares them.
func (l *lowering) parameters(params *node, s *scope) string {
	var all []string
	for _, q := range params.kids {
		name := strings.TrimLeft(q.name, "*")
		stars := q.name[:len(q.name)-len(name)]
		if name == "" {
			all = append(all, stars)
			continue
		}
		text := stars + "v_" + name
		if len(q.kids) > 0 {
			text += "=" + l.expr(q.kids[0]) // in the scope around the function
		}
		all = append(all, text)
		s.names[name] = true
		if stars == "**" {
			s.keywords = name
		}
	}
	return strings.Join(all, ", ")
}

func (l *lowering) def(n *node) {
	s := newScope(l.scope)
	params := l.parameters(n.kids[0], s)
	given := maps.Clone(s.names)
	s.collect(n.kids[1], false)
	s.forget(n.kids[1])
	s.settle()
	name := l.temp("f")
	l.emitf(n.line, "def %s(%s):", name, params)

	outside, loops := l.scope, l.loops
	l.scope, l.loops = s, nil
	l.indent++
	if s.keywords != "" {
		l.emitf(n.line, "v_%s = k_unkw(v_%s)", s.keywords, s.keywords)
		s.keywords = ""
	}
	for _, boxed := range sortedNames(s.boxed) {
		value := "k_undefined"
		if given[boxed] {
			value = "v_" + boxed
		}
		l.emitf(n.line, "b_%s = [%s]", boxed, value)
	}
	l.statements(n.kids[1])
	l.indent--
	l.scope, l.loops = outside, loops

	decorators := n.kids[2:]
	if n.paren { // the last one is the type of the result
		decorators = decorators[:len(decorators)-1]
	}
	for i := len(decorators) - 1; i >= 0; i-- {
		l.emitf(n.line, "%s = k_call(%s)(%s)", name, l.expr(decorators[i]), name)
	}
	l.store(n.line, n.name, name)
}

// forget removes the names that a function declares as names of the outside.
func (s *scope) forget(n *node) {
	if n == nil || n.kind == kDef || n.kind == kClass {
		return
	}
	if n.kind == kGlobal || n.kind == kNonlocal {
		for _, name := range n.names {
			delete(s.names, name)
			delete(s.boxed, name)
		}
	}
	for _, k := range n.kids {
		s.forget(k)
	}
}

// class writes a class: a function whose variables become the attributes.
func (l *lowering) class(n *node) {
	if n.paren {
		l.fail(n, "decorators of classes are not supported")
	}
	bases := make([]string, 0, len(n.kids))
	for _, k := range n.kids[1:] {
		if k.kind == kKeyword || k.kind == kStarred {
			l.fail(n, "this class is not supported")
		}
		bases = append(bases, l.expr(k))
	}

	s := newScope(l.scope)
	s.class = true
	s.collect(n.kids[0], false)
	s.settle()
	name := l.temp("f")
	l.emitf(n.line, "def %s():", name)
	outside, loops := l.scope, l.loops
	l.scope, l.loops = s, nil
	l.indent++
	for _, boxed := range sortedNames(s.boxed) {
		l.emitf(n.line, "b_%s = [k_undefined]", boxed)
	}
	l.statements(n.kids[0])
	var attributes strings.Builder
	for _, a := range sortedNames(s.names) {
		attributes.WriteString(strconv.Quote(a) + ": " + l.load(a) + ", ")
	}
	l.emit(n.line, "return {"+attributes.String()+"}")
	l.indent--
	l.scope, l.loops = outside, loops
	l.store(n.line, n.name, "k_class("+strconv.Quote(n.name)+", ["+strings.Join(bases, ", ")+"], "+name+"())")
}
