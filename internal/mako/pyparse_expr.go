package mako

import (
	"slices"
)

// tuple reads expressions that are separated by commas; one without a comma is itself.
func (p *parser) tuple() *node {
	line := p.peek().line
	first := p.element()
	if !p.is(",") {
		return first
	}
	n := &node{kind: kTuple, line: line, kids: []*node{first}}
	for p.accept(",") && p.startsExpression() {
		n.kids = append(n.kids, p.element())
	}
	return n
}

// element reads an expression or *expression.
func (p *parser) element() *node {
	line := p.peek().line
	if p.accept("*") {
		return &node{kind: kStarred, line: line, kids: []*node{p.operation(0)}}
	}
	if p.is("yield") {
		p.at++
		n := &node{kind: kYield, line: line}
		p.accept("from")
		if p.startsExpression() {
			n.kids = []*node{p.tuple()}
		}
		return n
	}
	return p.expression()
}

// expression reads a lambda, a conditional expression, or what they are made of.
func (p *parser) expression() *node {
	p.enter()
	defer p.leave()
	t := p.peek()
	if p.accept("lambda") {
		params := p.parameters(":", false)
		p.expect(":")
		return &node{kind: kLambda, line: t.line, kids: []*node{params, p.expression()}}
	}

	body := p.or()
	if !p.accept("if") {
		return body
	}
	test := p.or()
	if !p.accept("else") {
		p.fail("expected 'else' after 'if' expression")
	}
	return &node{kind: kConditional, line: t.line, kids: []*node{test, body, p.expression()}}
}

func (p *parser) or() *node  { return p.logic("or", p.and) }
func (p *parser) and() *node { return p.logic("and", p.not) }

func (p *parser) logic(op string, part func() *node) *node {
	first := part()
	if !p.is(op) {
		return first
	}
	n := &node{kind: kBool, line: first.line, name: op, kids: []*node{first}}
	for p.accept(op) {
		n.kids = append(n.kids, part())
	}
	return n
}

func (p *parser) not() *node {
	p.enter()
	defer p.leave()
	t := p.peek()
	if p.accept("not") {
		return &node{kind: kUnary, line: t.line, name: "not", kids: []*node{p.not()}}
	}
	return p.comparison()
}

func (p *parser) comparison() *node {
	first := p.operation(0)
	n := &node{kind: kCompare, line: first.line, kids: []*node{first}}
	for {
		op := p.comparisonOperator()
		if op == "" {
			break
		}
		if len(n.names) > maxChain {
			p.fail("too many nested parentheses")
		}
		n.names = append(n.names, op)
		n.kids = append(n.kids, p.operation(0))
	}
	if len(n.names) == 0 {
		return first
	}
	return n
}

func (p *parser) comparisonOperator() string {
	for _, op := range []string{"<", ">", "==", ">=", "<=", "!=", "in"} {
		if p.accept(op) {
			return op
		}
	}
	if p.is("not") && p.tokens[p.at+1].text == "in" {
		p.at += 2
		return "not in"
	}
	if p.accept("is") {
		if p.accept("not") {
			return "is not"
		}
		return "is"
	}
	return ""
}

// The binary operators by their binding, weakest first.
var bindings = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}}

// maxChain limits how many operands one chain of operators has, and how many elif one if, because each is a level in the tree.
const maxChain = 500

func (p *parser) operation(level int) *node {
	if level == len(bindings) {
		return p.unary()
	}
	left := p.operation(level + 1)
	for links := 0; ; links++ {
		t := p.peek()
		if t.kind != tokOp || !slices.Contains(bindings[level], t.text) {
			return left
		}
		if links > maxChain {
			p.fail("too many nested parentheses")
		}
		p.at++
		left = &node{kind: kBinary, line: t.line, name: t.text, kids: []*node{left, p.operation(level + 1)}}
	}
}

func (p *parser) unary() *node {
	p.enter()
	defer p.leave()
	t := p.peek()
	if t.kind == tokOp && (t.text == "-" || t.text == "+" || t.text == "~") {
		p.at++
		return &node{kind: kUnary, line: t.line, name: t.text, kids: []*node{p.unary()}}
	}

	if p.accept("await") {
		return p.unary()
	}
	base := p.primary()
	if p.accept("**") {
		return &node{kind: kBinary, line: t.line, name: "**", kids: []*node{base, p.unary()}}
	}
	return base
}

// primary reads an atom with the attributes, calls and subscripts after it.
func (p *parser) primary() *node {
	n := p.atom()
	for links := 0; ; links++ {
		if links > maxChain {
			p.fail("too many nested parentheses")
		}
		t := p.peek()
		switch {
		case p.accept("."):
			n = &node{kind: kAttribute, line: t.line, name: p.identifier(), kids: []*node{n}}
		case p.accept("("):
			n = &node{kind: kCall, line: t.line, kids: append([]*node{n}, p.arguments()...)}
		case p.accept("["):
			n = &node{kind: kSubscript, line: t.line, kids: []*node{n, p.subscript()}}
			p.expect("]")
		default:
			return n
		}
	}
}

func (p *parser) subscript() *node {
	first := p.slice()
	if !p.is(",") {
		return first
	}
	n := &node{kind: kTuple, line: first.line, kids: []*node{first}}
	for p.accept(",") && !p.is("]") {
		n.kids = append(n.kids, p.slice())
	}
	return n
}

func (p *parser) slice() *node {
	n := &node{kind: kSlice, line: p.peek().line, kids: []*node{nil, nil, nil}}
	for i := range 3 {
		if !p.is(":") && !p.is("]") && !p.is(",") {
			n.kids[i] = p.expression()
		}
		if i == 0 && !p.is(":") {
			if n.kids[0] == nil {
				p.fail("invalid syntax")
			}
			return n.kids[0]
		}
		if i == 2 || !p.accept(":") {
			break
		}
	}
	return n
}

// arguments reads the arguments of a call up to its bracket.
func (p *parser) arguments() []*node {
	var args []*node
	for !p.accept(")") {
		t := p.peek()
		switch {
		case p.accept("**"):
			args = append(args, &node{kind: kKeyword, line: t.line, kids: []*node{p.expression()}})
		case p.accept("*"):
			args = append(args, &node{kind: kStarred, line: t.line, kids: []*node{p.expression()}})
		case t.kind == tokName && p.tokens[p.at+1].kind == tokOp && p.tokens[p.at+1].text == "=":
			name := p.identifier()
			p.at++
			args = append(args, &node{kind: kKeyword, line: t.line, name: name, kids: []*node{p.expression()}})
		default:
			if n := len(args); n > 0 && args[n-1].kind == kKeyword && args[n-1].name != "" {
				p.fail("positional argument follows keyword argument")
			}
			args = append(args, p.comprehension(kGenerator, p.expression()))
		}
		if p.accept(",") {
			continue
		}
		if !p.is(")") {
			p.failList()
		}
	}
	return args
}

// failList reports a fault inside of brackets: CPython guesses that a comma is missing.
func (p *parser) failList() {
	if p.startsExpression() {
		p.fail("invalid syntax. Perhaps you forgot a comma?")
	}
	p.fail("invalid syntax")
}

// comprehension reads the clauses after an element, if there are any.
func (p *parser) comprehension(kind nodeKind, elements ...*node) *node {
	if !p.is("for") {
		return elements[0]
	}
	n := &node{kind: kind, line: elements[0].line, kids: elements}
	for p.accept("for") {
		clause := &node{kind: kClause, line: p.peek().line, kids: []*node{p.targets()}}
		p.expect("in")
		clause.kids = append(clause.kids, p.or())
		for p.accept("if") {
			clause.kids = append(clause.kids, p.condition())
		}
		n.kids = append(n.kids, clause)
	}
	return n
}

// condition reads a condition of a comprehension: no conditional expression, so that the next "if" is its own.
func (p *parser) condition() *node {
	if p.is("lambda") {
		return p.expression()
	}
	return p.or()
}

// targets reads what a loop assigns to.
func (p *parser) targets() *node {
	line := p.peek().line
	one := func() *node {
		star := p.accept("*")
		t := p.primary()
		if star {
			return &node{kind: kStarred, line: line, kids: []*node{t}}
		}
		return t
	}
	first := one()
	if p.is(",") {
		first = &node{kind: kTuple, line: line, kids: []*node{first}}
		for p.accept(",") && !p.is("in") {
			first.kids = append(first.kids, one())
		}
	}
	p.checkTarget(first)
	return first
}
