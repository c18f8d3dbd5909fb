package yamldoc

import "strings"

// flow reads [a, b] or {a: b}, over any number of lines.
func (p *parser) flow() Node {
	if p.peek() == '[' {
		return p.flowList()
	}
	return p.flowMapping()
}

func (p *parser) flowList() Node {
	list := p.node(List, p.line)
	p.pos++

	for {
		p.skipSpace(&list)
		if p.peek() == ']' {
			p.pos++
			return list
		}
		list.Kids = append(list.Kids, p.flowValue())
		p.skipSpace(&list)
		if p.comma(&list, ']') {
			return list
		}
	}
}

func (p *parser) flowMapping() Node {
	mapping := p.node(Mapping, p.line)
	seen := keys{}
	p.pos++

	for {
		p.skipSpace(&mapping)
		if p.peek() == '}' {
			p.pos++
			return mapping
		}

		// Read the key. After a key in quotes the colon needs no space.
		line := p.line
		quoted := p.peek() == '"' || p.peek() == '\''
		key := p.key(true)
		p.skipSpace(&mapping)
		if p.peek() != ':' || !quoted && !isSeparator(p.at(p.pos+1)) && !isFlowSign(p.at(p.pos+1)) {
			p.fail(line, "expected a colon and a space after %.40q", key)
		}
		p.pos++
		seen.add(p, key, line, mapping.Kids)

		// Read the value; there may be none.
		p.skipSpace(&mapping)
		var value Node
		if c := p.peek(); c == ',' || c == '}' {
			value = p.node(Null, p.line)
		} else {
			value = p.flowValue()
		}
		value.Key = key
		mapping.Kids = append(mapping.Kids, value)

		p.skipSpace(&mapping)
		if p.comma(&mapping, '}') {
			return mapping
		}
	}
}

func (p *parser) flowValue() Node {
	switch p.peek() {
	case '{', '[':
		p.enter()
		defer p.leave()
		return p.flow()
	case '|', '>':
		p.fail(p.line, "a block cannot be inside of brackets: use quotes")
	}
	return p.scalar(true)
}

// comma passes the comma between two entries, or the closing bracket: then it reports true.
func (p *parser) comma(in *Node, closing byte) bool {
	switch p.peek() {
	case closing:
		p.pos++
		return true
	case ',':
		p.pos++
		return false
	}
	p.fail(p.line, "expected a comma, or the %q for line %d, found %s", string(closing), in.Line, p.word())
	return false
}

// skipSpace passes white space, comments and line ends inside of brackets.
func (p *parser) skipSpace(in *Node) {
	for p.skipToLineEnd() {
		if p.end() {
			p.fail(int(in.Line), "%s in brackets begins here and is not closed", in.Kind)
		}
		p.newLine()
	}
}

// isFlowSign reports whether a character has a meaning inside of brackets.
func isFlowSign(c byte) bool { return c != 0 && strings.IndexByte(",[]{}", c) >= 0 }
