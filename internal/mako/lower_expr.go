package mako

import (
	"strconv"
	"strings"
)

// expr is a Python expression in Starlark.
func (l *lowering) expr(n *node) string {
	switch n.kind {
	case kName:
		return l.load(n.name)
	case kNumber:
		return n.name
	case kString:
		return strconv.Quote(n.name)
	case kConstant:
		if n.name == "..." {
			return "k_unsupported(\"Ellipsis\")"
		}
		return n.name
	case kFormatted:
		return l.formatted(n.kids)
	case kAttribute:
		return "k_attr(" + l.expr(n.kids[0]) + ", " + strconv.Quote(n.name) + ")"
	case kSubscript:
		return l.subscript(n)
	case kCall:
		return l.call(n)
	case kBinary:
		return "k_op(" + strconv.Quote(n.name) + ", " + l.expr(n.kids[0]) + ", " + l.expr(n.kids[1]) + ")"
	case kBool:
		return "(" + l.joined(n.kids, " "+n.name+" ") + ")"
	case kUnary:
		if n.name == "not" {
			return "(not " + l.expr(n.kids[0]) + ")"
		}
		return "k_unary(" + strconv.Quote(n.name) + ", " + l.expr(n.kids[0]) + ")"
	case kCompare:
		return l.compare(n)
	case kConditional:
		return "(" + l.expr(n.kids[1]) + " if " + l.expr(n.kids[0]) + " else " + l.expr(n.kids[2]) + ")"
	case kLambda:
		return l.lambda(n)
	default:
		return l.display(n)
	}
}

func (l *lowering) joined(kids []*node, separator string) string {
	all := make([]string, len(kids))
	for i, k := range kids {
		all[i] = l.expr(k)
	}
	return strings.Join(all, separator)
}

// display is a list, a dict, a comprehension, and what is not supported.
func (l *lowering) display(n *node) string {
	switch n.kind {
	case kTuple:
		if hasStar(n.kids) {
			return "k_tuple(" + l.concat(n.kids, "k_star") + ")"
		}
		if len(n.kids) == 0 {
			return "()"
		}
		return "(" + l.joined(n.kids, ", ") + ",)"
	case kList:
		if hasStar(n.kids) {
			return l.concat(n.kids, "k_star")
		}
		return "[" + l.joined(n.kids, ", ") + "]"
	case kSet:
		return "k_set(" + l.concat(n.kids, "k_star") + ")"
	case kDict:
		return l.dict(n)
	case kListOf, kGenerator:
		return "[" + l.comprehension(n, 1) + "]"
	case kSetOf:
		return "k_set([" + l.comprehension(n, 1) + "])"
	case kDictOf:
		return "k_dict([" + l.comprehension(n, 2) + "])"
	case kBytes:
		return `k_unsupported("bytes")`
	case kYield:
		return `k_unsupported("yield")`
	case kSlice:
		return `k_unsupported("slices of several dimensions")`
	}
	l.fail(n, "(SyntaxError) invalid syntax")
	return ""
}

func hasStar(kids []*node) bool {
	for _, k := range kids {
		if k.kind == kStarred {
			return true
		}
	}
	return false
}

// concat is a list of elements of which some are *iterables, which go through a function.
func (l *lowering) concat(kids []*node, through string) string {
	all := make([]string, len(kids))
	for i, k := range kids {
		if k.kind == kStarred {
			all[i] = through + "(" + l.expr(k.kids[0]) + ")"
		} else {
			all[i] = "[" + l.expr(k) + "]"
		}
	}
	return "k_concat([" + strings.Join(all, ", ") + "])"
}

func (l *lowering) dict(n *node) string {
	half := len(n.kids) / 2
	all := make([]string, half)
	for i := range half {
		if n.kids[i] == nil {
			all[i] = l.expr(n.kids[half+i])
		} else {
			all[i] = "(" + l.expr(n.kids[i]) + ", " + l.expr(n.kids[half+i]) + ")"
		}
	}
	return "k_dict([" + strings.Join(all, ", ") + "])"
}

func (l *lowering) formatted(parts []*node) string {
	all := make([]string, len(parts))
	for i, k := range parts {
		if k.kind == kString {
			all[i] = strconv.Quote(k.name)
			continue
		}
		spec := `""`
		if len(k.kids) > 1 {
			spec = l.formatted(k.kids[1:])
		}
		all[i] = "k_format(" + l.expr(k.kids[0]) + ", " + strconv.Quote(k.name) + ", " + spec + ")"
	}
	return "k_join([" + strings.Join(all, ", ") + "])"
}

func (l *lowering) subscript(n *node) string {
	index := n.kids[1]
	if index.kind != kSlice {
		return "k_index(" + l.expr(n.kids[0]) + ", " + l.expr(index) + ")"
	}
	text := "k_slice(" + l.expr(n.kids[0])
	for _, k := range index.kids {
		if k == nil {
			text += ", None"
		} else {
			text += ", " + l.expr(k)
		}
	}
	return text + ")"
}

// call is a call. Starlark has the positional arguments first; keyword arguments have the names of variables.
func (l *lowering) call(n *node) string {
	var positional []*node
	var args, named, spread []string
	for _, k := range n.kids[1:] {
		switch {
		case k.kind != kKeyword:
			positional = append(positional, k)
		case k.name == "":
			spread = append(spread, l.expr(k.kids[0]))
		default:
			named = append(named, "v_"+k.name+"="+l.expr(k.kids[0]))
		}
	}

	if hasStar(positional) {
		named = append(named, "*"+l.concat(positional, "k_iter"))
	} else {
		for _, k := range positional {
			args = append(args, l.expr(k))
		}
	}
	args = append(args, named...)
	if len(spread) > 0 {
		args = append(args, "**k_kw("+strings.Join(spread, ", ")+")")
	}
	return "k_call(" + l.expr(n.kids[0]) + ")(" + strings.Join(args, ", ") + ")"
}

// compare is a comparison. In a chain, the operands after the second are evaluated only if they are needed.
func (l *lowering) compare(n *node) string {
	if len(n.names) == 1 {
		return "k_cmp(" + strconv.Quote(n.names[0]) + ", " + l.expr(n.kids[0]) + ", " + l.expr(n.kids[1]) + ")"
	}
	text := "k_chain(["
	for _, op := range n.names {
		text += strconv.Quote(op) + ", "
	}
	text += "], " + l.expr(n.kids[0])
	for _, k := range n.kids[1:] {
		text += ", lambda: " + l.expr(k)
	}
	return text + ")"
}

// within writes with another scope inside of the present one.
func (l *lowering) within(s *scope, write func()) {
	outside := l.scope
	l.scope = s
	write()
	l.scope = outside
}

func (l *lowering) lambda(n *node) string {
	s := newScope(l.scope)
	params := l.parameters(n.kids[0], s)
	body := ""
	l.within(s, func() { body = l.expr(n.kids[1]) })
	return "(lambda " + params + ": " + body + ")"
}

// comprehension is the inside of a comprehension. Of a dict, the element is a pair.
func (l *lowering) comprehension(n *node, elements int) string {
	s := newScope(l.scope)
	clauses := n.kids[elements:]
	first := l.expr(clauses[0].kids[1]) // in the scope around it
	for _, c := range clauses {
		targetNames(c.kids[0], func(name string) { s.names[name] = true })
	}

	var b strings.Builder
	l.within(s, func() {
		if elements == 2 {
			b.WriteString("(" + l.expr(n.kids[0]) + ", " + l.expr(n.kids[1]) + ")")
		} else {
			b.WriteString(l.expr(n.kids[0]))
		}
		for i, c := range clauses {
			items := first
			if i > 0 {
				items = l.expr(c.kids[1])
			}
			target, shape := l.clauseTarget(c.kids[0])
			b.WriteString(" for " + target + " in k_iter(" + items + shape + ")")
			for _, condition := range c.kids[2:] {
				b.WriteString(" if " + l.expr(condition))
			}
		}
	})
	return b.String()
}

// clauseTarget is what a clause assigns to; shape has how many values each item must have.
func (l *lowering) clauseTarget(n *node) (target, shape string) {
	switch n.kind {
	case kName:
		return "v_" + n.name, ""
	case kTuple, kList:
		all := make([]string, len(n.kids))
		for i, k := range n.kids {
			all[i], _ = l.clauseTarget(k)
		}
		return "(" + strings.Join(all, ", ") + ",)", ", " + strconv.Itoa(len(all))
	}
	l.fail(n, "this target of a comprehension is not supported")
	return "", ""
}
