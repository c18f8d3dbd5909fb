package mako

import (
	"slices"
	"strings"
)

// atom reads a name, a literal, or something in brackets.
func (p *parser) atom() *node {
	t := p.peek()
	switch t.kind {
	case tokNumber:
		p.at++
		value, _ := literal(t.text)
		return &node{kind: kNumber, line: t.line, name: value}
	case tokString:
		return p.strings()
	case tokName:
		if slices.Contains([]string{"True", "False", "None"}, t.text) {
			p.at++
			return &node{kind: kConstant, line: t.line, name: t.text}
		}
		return &node{kind: kName, line: t.line, name: p.identifier()}
	}

	switch {
	case p.accept("..."):
		return &node{kind: kConstant, line: t.line, name: "..."}
	case p.accept("("):
		return p.brackets(t.line)
	case p.accept("["):
		return p.list(t.line)
	case p.accept("{"):
		return p.braces(t.line)
	}
	p.fail("invalid syntax")
	return nil
}

func (p *parser) brackets(line int) *node {
	if p.accept(")") {
		return &node{kind: kTuple, line: line, paren: true}
	}
	p.enter()
	defer p.leave()
	first := p.element()
	if p.is("for") {
		first = p.comprehension(kGenerator, first)
	} else if p.is(",") {
		first = &node{kind: kTuple, line: line, kids: []*node{first}, paren: true}
		for p.accept(",") && !p.is(")") {
			first.kids = append(first.kids, p.element())
		}
	}
	if !p.accept(")") {
		p.failList()
	}
	return first
}

func (p *parser) list(line int) *node {
	n := &node{kind: kList, line: line}
	if p.accept("]") {
		return n
	}
	p.enter()
	defer p.leave()
	first := p.element()
	if p.is("for") {
		n = p.comprehension(kListOf, first)
	} else {
		n.kids = []*node{first}
		for p.accept(",") && !p.is("]") {
			n.kids = append(n.kids, p.element())
		}
	}
	if !p.accept("]") {
		p.failList()
	}
	return n
}

// braces reads a dict or a set. A dict has its keys first and then as many values; a key that is nil stands for **value.
func (p *parser) braces(line int) *node {
	p.enter()
	defer p.leave()
	var keys, values []*node
	set := false
	for !p.accept("}") {
		if p.accept("**") {
			keys, values = append(keys, nil), append(values, p.operation(0))
		} else {
			key := p.element()
			if set = set || len(keys) == 0 && !p.is(":"); set {
				if p.is("for") {
					return p.closed(p.comprehension(kSetOf, key))
				}
				keys = append(keys, key)
			} else {
				p.expect(":")
				value := p.expression()
				if p.is("for") && len(keys) == 0 {
					return p.closed(p.comprehension(kDictOf, key, value))
				}
				keys, values = append(keys, key), append(values, value)
			}
		}
		if !p.accept(",") && !p.is("}") {
			p.failList()
		}
	}

	if set {
		return &node{kind: kSet, line: line, kids: keys}
	}
	return &node{kind: kDict, line: line, kids: append(keys, values...)}
}

// closed expects the bracket after a comprehension in braces.
func (p *parser) closed(n *node) *node {
	p.expect("}")
	return n
}

// strings reads string literals that follow each other: they are one string.
func (p *parser) strings() *node {
	line := p.peek().line
	n := &node{kind: kFormatted, line: line}
	formatted, bytes := false, false
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			n.kids = append(n.kids, &node{kind: kString, line: line, name: plain.String()})
			plain.Reset()
		}
	}

	for p.peek().kind == tokString {
		t := p.next()
		bytes = bytes || strings.Contains(t.prefix, "b")
		if strings.Contains(t.prefix, "f") {
			formatted = true
			for _, k := range p.fields(t.text, t.prefix, line, 0) {
				if k.kind == kString {
					plain.WriteString(k.name)
					continue
				}
				flush()
				n.kids = append(n.kids, k)
			}
			continue
		}
		value, ok := unescape(t.text, t.prefix)
		if !ok {
			p.fail("(unicode error) 'unicodeescape' codec can't decode bytes")
		}
		plain.WriteString(value)
	}

	if formatted {
		flush()
		return n
	}
	if bytes {
		return &node{kind: kBytes, line: line, name: plain.String()}
	}
	return &node{kind: kString, line: line, name: plain.String()}
}

// maxFormatted limits the text of an f-string, because nested ones are read several times.
const maxFormatted = 64 << 10

// fields splits the text of an f-string into strings and fields.
func (p *parser) fields(text, prefix string, line, depth int) []*node {
	if len(text) > maxFormatted {
		p.fail("f-string: too long")
	}
	if depth > 2 {
		p.fail("f-string: expressions nested too deeply")
	}
	var parts []*node
	var plain strings.Builder
	flush := func() {
		if plain.Len() == 0 {
			return
		}
		value, ok := unescape(plain.String(), prefix)
		if !ok {
			p.fail("(unicode error) 'unicodeescape' codec can't decode bytes")
		}
		parts = append(parts, &node{kind: kString, line: line, name: value})
		plain.Reset()
	}

	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "{{"), strings.HasPrefix(text[i:], "}}"):
			plain.WriteByte(text[i])
			i += 2
		case text[i] == '}':
			p.fail("f-string: single '}' is not allowed")
		case text[i] == '{':
			flush()
			field, n := p.field(text[i:], prefix, line, depth)
			parts = append(parts, field)
			i += n
		default:
			plain.WriteByte(text[i])
			i++
		}
	}
	flush()
	return parts
}

// field reads {expression!conversion:spec}, and how long it is. Its children are the expression and the parts of the spec.
func (p *parser) field(text, prefix string, line, depth int) (*node, int) {
	end := fieldEnd(text)
	if end < 0 {
		p.fail("f-string: expecting '}'")
	}
	expression := text[1:end]
	if strings.TrimSpace(expression) == "" {
		p.fail("f-string: empty expression not allowed")
	}
	block, fault := parsePython("(" + expression + ")")
	if fault != nil {
		p.fail("f-string: %s", fault.message)
	}
	if len(block.kids) != 1 || block.kids[0].kind != kExpression {
		p.fail("f-string: invalid syntax")
	}
	block.walk(func(n *node) bool { n.line = line; return true })

	n := &node{kind: kField, line: line, kids: []*node{block.kids[0].kids[0]}}
	at := end
	if text[at] == '!' && at+1 < len(text) {
		n.name = text[at+1 : at+2]
		at += 2
	}
	if at < len(text) && text[at] == ':' {
		begin, open := at+1, 0
		for at = begin; at < len(text) && (text[at] != '}' || open > 0); at++ {
			open += strings.Count(text[at:at+1], "{") - strings.Count(text[at:at+1], "}")
		}
		n.kids = append(n.kids, p.fields(text[begin:min(at, len(text))], prefix, line, depth+1)...)
	}
	if at >= len(text) || text[at] != '}' {
		p.fail("f-string: expecting '}'")
	}
	return n, at + 1
}

// fieldEnd is where the expression of a field ends: at !, : or } outside of brackets and strings. -1 if nowhere.
func fieldEnd(text string) int {
	open := 0
	for i := 1; i < len(text); i++ {
		if n := quotedLength(text[i:]); n > 0 {
			i += n - 1
			continue
		}
		switch c := text[i]; {
		case strings.IndexByte("([{", c) >= 0:
			open++
		case open > 0 && strings.IndexByte(")]}", c) >= 0:
			open--
		case open == 0 && (c == '}' || c == ':' || c == '!' && !strings.HasPrefix(text[i:], "!=")):
			return i
		}
	}
	return -1
}
