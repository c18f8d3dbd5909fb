package yamldoc

import "strings"

// flow reads [a, b] or {a: b}, over as many lines as it takes.
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
		p.space(&list)
		if p.peek() == ']' {
			p.pos++
			return list
		}
		list.Kids = append(list.Kids, p.flowValue())
		p.space(&list)
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
		p.space(&mapping)
		if p.peek() == '}' {
			p.pos++
			return mapping
		}
		line := p.line
		strict := p.peek() == '"' || p.peek() == '\'' // what is quoted needs no blank after its colon
		key := p.key(true)
		p.space(&mapping)
		if p.peek() != ':' || !strict && !blank(p.at(p.pos+1)) && !flowSign(p.at(p.pos+1)) {
			p.fail(line, "expected a colon and a blank after %.40q", key)
		}
		p.pos++
		seen.add(p, key, line, mapping.Kids)
		p.space(&mapping)
		var value Node
		if c := p.peek(); c == ',' || c == '}' {
			value = p.node(Null, p.line)
		} else {
			value = p.flowValue()
		}
		value.Key = key
		mapping.Kids = append(mapping.Kids, value)
		p.space(&mapping)
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
		p.fail(p.line, "a block cannot stand inside of brackets: use quotes")
	}
	return p.scalar(true)
}

// comma passes the sign between two entries, or the closing one: then it reports true.
func (p *parser) comma(in *Node, closing byte) bool {
	switch p.peek() {
	case closing:
		p.pos++
		return true
	case ',':
		p.pos++
		return false
	}
	p.fail(p.line, "expected a comma or %q of what began at line %d, found %s", string(closing), in.Line, p.word())
	return false
}

// space passes blanks, comments and line ends inside of brackets.
func (p *parser) space(in *Node) {
	for p.rest() {
		if p.end() {
			p.fail(int(in.Line), "%s in brackets begins here and is not closed", in.Kind)
		}
		p.newLine()
	}
}

func flowSign(c byte) bool { return c != 0 && strings.IndexByte(",[]{}", c) >= 0 }
