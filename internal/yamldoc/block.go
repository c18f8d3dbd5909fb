package yamldoc

import "strings"

// document reads the value of the whole file.
func (p *parser) document() Node {
	column := p.content()
	if column < 0 || p.marker("...") || p.marker("---") {
		return p.node(Null, p.line)
	}
	return p.block(column, -1)
}

// block reads a value that begins at the place, which is in the given column and may go on in the lines below.
// Parent is the column that it must stay to the right of.
func (p *parser) block(column, parent int) Node {
	p.enter()
	defer p.leave()
	switch c := p.peek(); {
	case c == '-' && blank(p.at(p.pos+1)):
		return p.blockList(column)
	case c == '{' || c == '[' || c == '|' || c == '>':
		return p.inline(parent)
	case p.keyAhead():
		return p.blockMapping(column)
	}
	return p.inline(parent)
}

// blockList reads a list whose dashes stand in a column.
func (p *parser) blockList(column int) Node {
	list := p.node(List, p.line)
	for {
		p.pos++ // the dash
		if p.peek() == '\t' {
			p.fail(p.line, "a tab stands after the dash: use a blank")
		}
		line := p.line
		for p.peek() == ' ' {
			p.pos++
		}
		inner := p.column()
		if p.rest() {
			p.newLine()
			list.Kids = append(list.Kids, p.below(line, column, false))
		} else {
			list.Kids = append(list.Kids, p.block(inner, column))
		}
		if !p.next(column, "list") {
			return list
		}
		if p.peek() != '-' || !blank(p.at(p.pos+1)) {
			// A list may stand in the column of the mapping it belongs to, whose next key this is then.
			return list
		}
	}
}

// blockMapping reads a mapping whose keys stand in a column.
func (p *parser) blockMapping(column int) Node {
	mapping := p.node(Mapping, p.line)
	seen := keys{}
	for {
		line := p.line
		if p.peek() == '-' && blank(p.at(p.pos+1)) {
			p.fail(line, "a list begins inside of a mapping: indent it below a key")
		}
		if p.peek() == '?' && blank(p.at(p.pos+1)) {
			p.fail(line, "keys behind ? are not accepted")
		}
		key := p.key(false)
		if p.peek() != ':' || !blank(p.at(p.pos+1)) {
			p.fail(line, "expected a colon and a blank after %.40q", key)
		}
		p.pos++
		seen.add(p, key, line, mapping.Kids)
		var value Node
		if p.rest() {
			p.newLine()
			value = p.below(line, column, true)
		} else {
			if p.peek() == '-' && blank(p.at(p.pos+1)) {
				p.fail(line, "a list must begin on its own line")
			}
			value = p.inline(column)
		}
		value.Key = key
		mapping.Kids = append(mapping.Kids, value)
		if !p.next(column, "mapping") {
			return mapping
		}
	}
}

// below reads the value of a key or dash behind which the line ended: what is indented more, a list in the key's
// own column, or nothing.
func (p *parser) below(line, column int, key bool) Node {
	inner := p.content()
	switch {
	case inner > column:
		return p.block(inner, column)
	case inner == column && key && p.peek() == '-' && blank(p.at(p.pos+1)) && !p.marker("---"):
		return p.block(inner, column-1)
	}
	return p.node(Null, line)
}

// next goes to the next entry of a block and reports whether there is one.
func (p *parser) next(column int, what string) bool {
	inner := p.content()
	if inner > column {
		p.fail(p.line, "is indented more than the %s that it stands in; a text that goes on must be in quotes on one line, or a block behind |", what)
	}
	return inner == column && !p.marker("---") && !p.marker("...")
}

// keyAhead reports whether the line goes on with a key and its colon.
func (p *parser) keyAhead() bool {
	here := *p
	defer func() { *p = here }()

	switch c := p.peek(); {
	case c == '"' || c == '\'':
		p.quoted()
	case c == '?' && blank(p.at(p.pos+1)):
		return true
	default:
		if text := p.plainText(false); text == "" {
			return p.peek() == ':'
		}
	}

	p.blanks()
	return p.peek() == ':' && blank(p.at(p.pos+1))
}

// keys finds keys that are given twice, without a map where there are few.
type keys struct{ many map[string]int }

func (k *keys) add(p *parser, key string, line int, before []Node) {
	const few = 24
	twice := 0
	switch {
	case k.many != nil:
		twice = k.many[key]
	default:
		for i := range before {
			if before[i].Key == key {
				twice = int(before[i].Line)
			}
		}
		if len(before) == few {
			k.many = map[string]int{}
			for i := range before {
				k.many[before[i].Key] = int(before[i].Line)
			}
		}
	}

	if twice != 0 {
		p.fail(line, "key %.40q is given twice, first at line %d", key, twice)
	}
	if k.many != nil {
		k.many[key] = line
	}
	if key == "<<" {
		p.fail(line, "merge keys are not accepted")
	}
}

// inline reads a value that begins inside of a line: a flow collection, a text or a literal block.
func (p *parser) inline(parent int) Node {
	switch c := p.peek(); c {
	case '{', '[':
		p.enter()
		n := p.flow()
		p.leave()
		p.ended()
		return n
	case '|':
		return p.literal(parent)
	case '>':
		p.fail(p.line, "folded blocks (>) are not accepted: use | or quotes")
	}

	n := p.scalar(false)
	p.ended()
	return n
}

// ended demands that a value is the last of its line.
func (p *parser) ended() {
	if !p.rest() {
		if p.peek() == ':' || strings.HasPrefix(p.src[p.pos:], ": ") {
			p.fail(p.line, "a second key stands in the line, or a text with a colon and a blank that needs quotes")
		}
		p.fail(p.line, "unexpected %s behind a value", p.word())
	}
	p.newLine()
}
