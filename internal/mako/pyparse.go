package mako

import (
	"slices"
	"strings"
)

// parser reads Python statements.
type parser struct {
	tokens []token
	at     int
	depth  int
}

// parsePython reads code.
func parsePython(code string) (block *node, fault *syntaxError) {
	tokens, fault := tokenize(code)
	if fault != nil {
		return nil, fault
	}
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		f, ours := r.(*syntaxError)
		if !ours {
			panic(r)
		}
		block, fault = nil, f
	}()

	p := &parser{tokens: tokens}
	block = &node{kind: kBlock, line: 1}
	for p.peek().kind != tokEnd {
		block.kids = append(block.kids, p.statement()...)
	}
	if block.deeper(maxDepth) {
		p.fail("too many nested parentheses")
	}
	return block, nil
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEnd {
		p.at++
	}
	return t
}

// fail ends the parse; parsePython returns the fault.
func (p *parser) fail(format string, args ...any) {
	panic(syntaxFault(p.peek().line, format, args...))
}

// is reports whether the next token is this operator or keyword.
func (p *parser) is(text string) bool {
	t := p.peek()
	return (t.kind == tokOp || t.kind == tokName) && t.text == text
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if p.accept(text) {
		return
	}
	if text == ":" {
		p.fail("expected ':'")
	}
	p.fail("invalid syntax")
}

// enter limits how deep the parser may be; leave is to be deferred.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting*8 {
		p.fail("too many nested parentheses")
	}
}

func (p *parser) leave() { p.depth-- }

var keywords = strings.Fields("False None True and as assert async await break class continue def del elif else except " +
	"finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

func (p *parser) identifier() string {
	t := p.peek()
	if t.kind != tokName || slices.Contains(keywords, t.text) {
		p.fail("invalid syntax")
	}
	p.at++
	return t.text
}

// statement reads one compound statement, or the simple statements of a line.
func (p *parser) statement() []*node {
	p.enter()
	defer p.leave()
	t := p.peek()
	if t.kind == tokIndent {
		panic(&syntaxError{"IndentationError", "unexpected indent", t.line})
	}
	if t.kind == tokNewline || t.kind == tokDedent {
		p.at++
		return nil
	}

	if t.kind == tokName {
		if compound := p.compound(t); compound != nil {
			return []*node{compound}
		}
	}
	if p.is("@") {
		return []*node{p.decorated()}
	}
	return p.simpleLine()
}

// simpleLine reads statements that are separated by semicolons, up to the end of the line.
func (p *parser) simpleLine() []*node {
	var all []*node
	for {
		all = append(all, p.simple())
		if !p.accept(";") {
			break
		}
		if k := p.peek().kind; k == tokNewline || k == tokEnd {
			break
		}
	}
	if k := p.peek().kind; k != tokNewline && k != tokEnd {
		p.unexpected(all[len(all)-1])
	}
	if p.peek().kind == tokNewline {
		p.at++
	}
	return all
}

// unexpected says what is wrong with a token after a whole statement.
func (p *parser) unexpected(before *node) {
	if before.kind == kExpression && before.kids[0].kind == kName {
		if name := before.kids[0].name; (name == "print" || name == "exec") && p.peek().kind != tokOp {
			p.fail("Missing parentheses in call to '%s'. Did you mean %s(...)?", name, name)
		}
	}
	p.fail("invalid syntax")
}

func (p *parser) simple() *node {
	t := p.peek()
	n := &node{line: t.line}
	if t.kind != tokName {
		return p.assignment()
	}

	switch t.text {
	case "pass", "break", "continue":
		n.kind = map[string]nodeKind{"pass": kPass, "break": kBreak, "continue": kContinue}[t.text]
		p.at++
	case "return":
		p.at++
		n.kind = kReturn
		if p.startsExpression() {
			n.kids = []*node{p.tuple()}
		}
	case "del":
		p.at++
		n.kind, n.kids = kDelete, []*node{p.tuple()}
	case "global", "nonlocal":
		p.at++
		n.kind = map[string]nodeKind{"global": kGlobal, "nonlocal": kNonlocal}[t.text]
		for n.names = append(n.names, p.identifier()); p.accept(","); {
			n.names = append(n.names, p.identifier())
		}
	case "assert":
		p.at++
		n.kind, n.kids = kAssert, []*node{p.expression()}
		if p.accept(",") {
			n.kids = append(n.kids, p.expression())
		}
	case "raise":
		p.at++
		n.kind = kRaise
		if p.startsExpression() {
			n.kids = []*node{p.expression()}
			if p.accept("from") {
				n.kids = append(n.kids, p.expression())
			}
		}
	case "import", "from":
		return p.imports()
	default:
		return p.assignment()
	}
	return n
}

// startsExpression reports whether an expression may begin here.
func (p *parser) startsExpression() bool {
	t := p.peek()
	switch t.kind {
	case tokNumber, tokString:
		return true
	case tokName:
		return !slices.Contains(keywords, t.text) ||
			slices.Contains([]string{"True", "False", "None", "not", "lambda", "await", "yield"}, t.text)
	case tokOp:
		return slices.Contains([]string{"(", "[", "{", "-", "+", "~", "*", "..."}, t.text)
	}
	return false
}

// assignment reads an expression, an assignment or an augmented assignment.
func (p *parser) assignment() *node {
	line := p.peek().line
	first := p.tuple()
	t := p.peek()
	switch {
	case t.kind == tokOp && t.text == "=":
		n := &node{kind: kAssign, line: line, kids: []*node{first}}
		for p.accept("=") {
			n.kids = append(n.kids, p.tuple())
		}
		for _, target := range n.kids[:len(n.kids)-1] {
			p.checkTarget(target)
		}
		return n
	case t.kind == tokOp && len(t.text) > 1 && strings.HasSuffix(t.text, "=") &&
		!slices.Contains([]string{"==", "!=", "<=", ">=", ":="}, t.text):
		p.at++
		p.checkTarget(first)
		return &node{kind: kAugmented, line: line, name: strings.TrimSuffix(t.text, "="), kids: []*node{first, p.tuple()}}
	case t.kind == tokOp && t.text == ":":
		p.at++
		p.checkTarget(first)
		annotation := p.expression()
		if !p.accept("=") {
			return &node{kind: kPass, line: line, kids: []*node{first, annotation}} // it does nothing
		}
		return &node{kind: kAssign, line: line, kids: []*node{first, p.tuple()}}
	}
	return &node{kind: kExpression, line: line, kids: []*node{first}}
}

// checkTarget rejects what cannot be assigned to.
func (p *parser) checkTarget(n *node) {
	switch n.kind {
	case kName, kAttribute, kSubscript:
	case kStarred:
		p.checkTarget(n.kids[0])
	case kTuple, kList:
		for _, k := range n.kids {
			p.checkTarget(k)
		}
	case kNumber, kString, kFormatted:
		p.fail("cannot assign to literal here. Maybe you meant '==' instead of '='?")
	case kConstant:
		p.fail("cannot assign to %s", n.name)
	case kCall:
		p.fail("cannot assign to function call here. Maybe you meant '==' instead of '='?")
	default:
		p.fail("cannot assign to expression here. Maybe you meant '==' instead of '='?")
	}
}

func (p *parser) dotted() string {
	parts := []string{p.identifier()}
	for p.accept(".") {
		parts = append(parts, p.identifier())
	}
	return strings.Join(parts, ".")
}

// imports reads an import. Names has pairs: what is imported, and the name that it gets.
func (p *parser) imports() *node {
	n := &node{kind: kImport, line: p.peek().line}
	if p.accept("import") {
		for {
			name := p.dotted()
			as, _, _ := strings.Cut(name, ".")
			if p.accept("as") {
				as = p.identifier()
			}
			n.names = append(n.names, name, as)
			if !p.accept(",") {
				return n
			}
		}
	}

	p.expect("from")
	n.kind = kImportFrom
	for p.accept(".") || p.accept("...") {
		n.name += "."
	}
	if !p.is("import") {
		n.name += p.dotted()
	}
	p.expect("import")
	if p.accept("*") {
		n.names = []string{"*", "*"}
		return n
	}

	bracket := p.accept("(")
	for {
		name := p.identifier()
		as := name
		if p.accept("as") {
			as = p.identifier()
		}
		n.names = append(n.names, name, as)
		if !p.accept(",") || bracket && p.is(")") {
			break
		}
	}
	if bracket {
		p.expect(")")
	}
	return n
}
