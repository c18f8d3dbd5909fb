package mako

// compound reads a statement with a block, or nil if none begins here.
func (p *parser) compound(t token) *node {
	switch t.text {
	case "if":
		return p.ifs()
	case "while":
		p.at++
		n := &node{kind: kWhile, line: t.line, kids: []*node{p.expression()}}
		n.kids = append(n.kids, p.block(t), p.elses())
		return n
	case "for":
		p.at++
		target := p.targets()
		p.expect("in")
		n := &node{kind: kFor, line: t.line, kids: []*node{target, p.tuple()}}
		n.kids = append(n.kids, p.block(t), p.elses())
		return n
	case "try":
		return p.try()
	case "with":
		return p.with()
	case "def":
		return p.def(nil)
	case "class":
		return p.class(nil)
	case "async":
		p.fail("invalid syntax")
	}
	return nil
}

// block reads ":" and the statements after it.
func (p *parser) block(of token) *node {
	p.expect(":")
	b := &node{kind: kBlock, line: p.peek().line}
	if p.peek().kind != tokNewline {
		b.kids = p.simpleLine()
		return b
	}
	p.at++
	if p.peek().kind != tokIndent {
		panic(&syntaxError{"IndentationError", "expected an indented block after " + blockName(of), p.peek().line})
	}
	p.at++
	for p.peek().kind != tokDedent && p.peek().kind != tokEnd {
		b.kids = append(b.kids, p.statement()...)
	}
	if p.peek().kind == tokDedent {
		p.at++
	}
	return b
}

func blockName(of token) string {
	switch of.text {
	case "def":
		return syntaxFault(0, "function definition on line %d", of.line).message
	case "class":
		return syntaxFault(0, "class definition on line %d", of.line).message
	}
	return syntaxFault(0, "'%s' statement on line %d", of.text, of.line).message
}

// elses reads an else block, or nil.
func (p *parser) elses() *node {
	t := p.peek()
	if p.accept("else") {
		return p.block(t)
	}
	return nil
}

// ifs reads an if statement, without a level of depth for each elif.
func (p *parser) ifs() *node {
	var first, last *node
	for {
		t := p.next() // if or elif
		n := &node{kind: kIf, line: t.line, kids: []*node{p.expression()}}
		n.kids = append(n.kids, p.block(t), nil)
		if first == nil {
			first = n
		} else {
			last.kids[2] = &node{kind: kBlock, line: t.line, kids: []*node{n}}
		}
		last = n
		if !p.is("elif") {
			break
		}
	}
	last.kids[2] = p.elses()
	return first
}

// try reads a try statement: body, else, finally, and then the handlers.
func (p *parser) try() *node {
	t := p.next()
	n := &node{kind: kTry, line: t.line, kids: []*node{p.block(t), nil, nil}}
	for p.is("except") {
		n.kids = append(n.kids, p.handler())
	}
	if len(n.kids) > 3 {
		n.kids[1] = p.elses()
	}
	if f := p.peek(); p.accept("finally") {
		n.kids[2] = p.block(f)
	}
	if len(n.kids) == 3 && n.kids[2] == nil {
		p.fail("expected 'except' or 'finally' block")
	}
	return n
}

func (p *parser) handler() *node {
	t := p.next()
	h := &node{kind: kHandler, line: t.line, kids: []*node{nil, nil}}
	if !p.is(":") {
		h.kids[0] = p.expression()
		if p.accept("as") {
			h.name = p.identifier()
		}
	}
	h.kids[1] = p.block(t)
	return h
}

// with reads a with statement: expressions and targets in pairs, and then the body.
func (p *parser) with() *node {
	t := p.next()
	n := &node{kind: kWith, line: t.line}
	for {
		n.kids = append(n.kids, p.expression(), nil)
		if p.accept("as") {
			n.kids[len(n.kids)-1] = p.primary()
		}
		if !p.accept(",") {
			break
		}
	}
	n.kids = append(n.kids, p.block(t))
	return n
}

func (p *parser) decorated() *node {
	var decorators []*node
	for p.accept("@") {
		decorators = append(decorators, p.expression())
		if p.peek().kind == tokNewline {
			p.at++
		}
	}
	if p.is("class") {
		return p.class(decorators)
	}
	if !p.is("def") {
		p.fail("invalid syntax")
	}
	return p.def(decorators)
}

// def reads a function: parameters, body, decorators.
func (p *parser) def(decorators []*node) *node {
	t := p.next()
	n := &node{kind: kDef, line: t.line, name: p.identifier()}
	p.expect("(")
	params := p.parameters(")", true)
	p.expect(")")
	if p.accept("->") {
		decorators = append(decorators, p.expression()) // only for the checker
		n.paren = true
	}
	n.kids = append([]*node{params, p.block(t)}, decorators...)
	return n
}

// class reads a class: body, and then its bases.
func (p *parser) class(decorators []*node) *node {
	t := p.next()
	n := &node{kind: kClass, line: t.line, name: p.identifier()}
	var bases []*node
	if p.accept("(") {
		bases = p.arguments()
	}
	n.kids = append([]*node{p.block(t)}, bases...)
	n.kids = append(n.kids, decorators...)
	n.paren = len(decorators) > 0
	return n
}

// parameters reads the parameters of a function or lambda. The name of a parameter begins with * or ** where Python has
// that; a lone * has only that.
func (p *parser) parameters(end string, annotated bool) *node {
	n := &node{kind: kParameters, line: p.peek().line}
	for !p.is(end) {
		if p.accept("/") {
			p.accept(",")
			continue
		}
		q := &node{kind: kParameter, line: p.peek().line}
		switch {
		case p.accept("**"):
			q.name = "**" + p.identifier()
		case p.accept("*"):
			q.name = "*"
			if !p.is(",") {
				q.name += p.identifier()
			}
		default:
			q.name = p.identifier()
		}
		if annotated && p.accept(":") {
			p.expression()
		}
		if p.accept("=") {
			q.kids = []*node{p.expression()}
		}
		n.kids = append(n.kids, q)
		if !p.accept(",") {
			break
		}
	}
	return n
}
