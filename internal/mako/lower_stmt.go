package mako

import (
	"strconv"
	"strings"
)

// statements writes the statements of a block, at least one.
func (l *lowering) statements(block *node) {
	before := len(l.lines)
	if block != nil {
		for i := 0; i < len(block.kids); {
			i += l.next(block.kids[i:])
		}
	}
	if len(l.lines) == before {
		l.emit(1, "pass")
	}
}

// inner writes a block one level deeper.
func (l *lowering) inner(block *node) {
	l.indent++
	l.statements(block)
	l.indent--
}

func (l *lowering) statement(n *node) {
	switch n.kind {
	case kWrite:
		l.emit(n.line, "k_write("+strconv.Quote(n.name)+")")
	case kShow:
		if value := shown(n); value != nil { // most have no filter: one call instead of two
			l.emit(n.line, "k_out("+l.expr(value)+")")
			return
		}
		l.emit(n.line, "k_write("+l.show(n)+")")
	case kExpression:
		l.emit(n.line, l.expr(n.kids[0])+"")
	case kAssign:
		l.assignment(n)
	case kAugmented:
		l.augmented(n)
	case kReturn:
		l.returns(n)
	case kDelete:
		l.deletes(n.kids[0])
	case kPass, kGlobal, kNonlocal:
	case kBreak, kContinue:
		l.leaveLoop(n)
	case kAssert:
		message := ""
		if len(n.kids) > 1 {
			message = ", lambda: " + l.expr(n.kids[1])
		}
		l.emit(n.line, "k_assert("+l.expr(n.kids[0])+message+")")
	case kRaise:
		value := ""
		if len(n.kids) > 0 {
			value = l.expr(n.kids[0])
		}
		l.emit(n.line, "k_raise("+value+")")
	case kImport:
		for i := 0; i < len(n.names); i += 2 {
			l.store(n.line, n.names[i+1], "k_import("+strconv.Quote(n.names[i])+")")
		}
	case kImportFrom:
		for i := 0; i < len(n.names); i += 2 {
			l.store(n.line, n.names[i+1], "k_importfrom("+strconv.Quote(n.name)+", "+strconv.Quote(n.names[i])+")")
		}
	default:
		l.compound(n)
	}
}

// show is the text of an expression after its filters.
func (l *lowering) show(n *node) string {
	plain := false
	for _, f := range n.kids[1:] {
		plain = plain || f.kind == kString && f.name == "n"
	}
	args := make([]string, len(n.kids[0].kids))
	for i, k := range n.kids[0].kids {
		args[i] = l.expr(k)
	}
	value := "k_str(" + strings.Join(args, ", ") + ")"
	if plain && len(args) == 1 {
		value = args[0]
	}

	for _, f := range n.kids[1:] {
		switch {
		case f.kind == kString && f.name == "n":
		case f.kind == kString:
			value = "k_filter(" + strconv.Quote(f.name) + ", " + value + ")"
		default:
			value = "k_call(" + l.expr(f) + ")(" + value + ")"
		}
	}
	return value
}

func (l *lowering) assignment(n *node) {
	targets, value := n.kids[:len(n.kids)-1], l.expr(n.kids[len(n.kids)-1])
	if len(targets) > 1 || targets[0].kind != kName { // the value comes first, then what the target is made of
		t := l.temp("t")
		l.emitf(n.line, "%s = %s", t, value)
		value = t
	}
	for _, target := range targets {
		l.assign(target, value)
	}
}

func (l *lowering) augmented(n *node) {
	target, op, value := n.kids[0], strconv.Quote(n.name), l.expr(n.kids[1])
	switch target.kind {
	case kName:
		l.store(n.line, target.name, "k_iop("+op+", "+l.load(target.name)+", "+value+")")
	case kAttribute:
		l.emitf(n.line, "k_augattr(%s, %s, %s, %s)", l.expr(target.kids[0]), strconv.Quote(target.name), op, value)
	case kSubscript:
		l.emitf(n.line, "k_augindex(%s, %s, %s, %s)", l.expr(target.kids[0]), l.expr(target.kids[1]), op, value)
	default:
		l.fail(n, "illegal expression for augmented assignment")
	}
}

func (l *lowering) returns(n *node) {
	value := "None"
	if len(n.kids) > 0 {
		value = l.expr(n.kids[0])
	}
	if l.scope.try > 0 {
		value = `("r", ` + value + `)`
	}
	l.emit(n.line, "return "+value)
}

func (l *lowering) deletes(n *node) {
	switch n.kind {
	case kName:
		l.load(n.name)
		l.store(n.line, n.name, "k_undefined")
	case kSubscript:
		if n.kids[1].kind == kSlice {
			l.fail(n, "deletion of a slice is not supported")
		}
		l.emitf(n.line, "k_delindex(%s, %s)", l.expr(n.kids[0]), l.expr(n.kids[1]))
	case kTuple, kList:
		for _, k := range n.kids {
			l.deletes(k)
		}
	default:
		l.fail(n, "this deletion is not supported")
	}
}

// leaveLoop writes break or continue. In a closure of a try statement, that is a value which k_try returns.
func (l *lowering) leaveLoop(n *node) {
	word, code := "break", "b"
	if n.kind == kContinue {
		word, code = "continue", "c"
	}
	s := l.scope
	switch {
	case len(s.loops) > 0:
		if loop := s.loops[len(s.loops)-1]; n.kind == kBreak && loop.broken != "" {
			l.emitf(n.line, "%s = True", loop.broken)
		}
		l.emit(n.line, word)
	case s.outer > 0:
		l.emitf(n.line, "return (%q, None)", code)
	default:
		l.fail(n, "(SyntaxError) '%s' outside loop", word)
	}
}

func (l *lowering) compound(n *node) {
	switch n.kind {
	case kIf:
		l.ifs(n)
	case kWhile:
		l.loop(n, "while "+l.expr(n.kids[0])+":", n.kids[1], n.kids[2], nil)
	case kFor:
		l.fors(n)
	case kTry:
		l.try(n)
	case kWith:
		l.emit(n.line, "k_with("+l.expr(n.kids[0])+")")
	case kDef:
		l.def(n)
	case kClass:
		l.class(n)
	case kBlock:
		l.statements(n)
	default:
		l.fail(n, "this statement is not supported")
	}
}

func (l *lowering) ifs(n *node) {
	word := "if "
	for {
		l.emit(n.line, word+l.expr(n.kids[0])+":")
		l.inner(n.kids[1])
		rest := n.kids[2]
		if rest == nil {
			return
		}
		if len(rest.kids) == 1 && rest.kids[0].kind == kIf {
			n, word = rest.kids[0], "elif "
			continue
		}
		l.emit(rest.line, "else:")
		l.inner(rest)
		return
	}
}

func (l *lowering) fors(n *node) {
	items := l.expr(n.kids[1])
	counted := false
	if n.paren {
		n.kids[2].walk(func(k *node) bool {
			counted = counted || k.kind == kName && k.name == "loop"
			return !counted
		})
	}

	item := l.temp("t")
	if !counted {
		l.loop(n, "for "+item+" in k_iter("+items+"):", n.kids[2], n.kids[3], func() { l.assign(n.kids[0], item) })
		return
	}

	parent := "None"
	if k := len(l.loops); k > 0 {
		parent = l.loops[k-1]
	}
	counter := l.temp("l")
	l.emitf(n.line, "%s = k_loop(%s, %s)", counter, items, parent)
	l.loops = append(l.loops, counter)
	l.loop(n, "for "+item+" in "+counter+":", n.kids[2], n.kids[3], func() { l.assign(n.kids[0], item) })
	l.loops = l.loops[:len(l.loops)-1]
}

// loop writes a loop and its else.
func (l *lowering) loop(n *node, head string, body, otherwise *node, first func()) {
	open := &openLoop{}
	if otherwise != nil {
		open.broken = l.temp("x")
		l.emitf(n.line, "%s = False", open.broken)
	}
	l.emit(n.line, head)

	l.scope.loops = append(l.scope.loops, open)
	l.indent++
	if first != nil {
		first()
	}
	l.statements(body)
	l.indent--
	l.scope.loops = l.scope.loops[:len(l.scope.loops)-1]

	if otherwise != nil {
		l.emitf(otherwise.line, "if not %s:", open.broken)
		l.inner(otherwise)
	}
}
