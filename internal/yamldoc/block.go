package yamldoc

import "strings"

// document reads the value of the whole file.
func (p *parser) document() Node {
	column := p.nextContent()
	if column < 0 || p.marker("...") || p.marker("---") {
		return p.node(Null, p.line)
	}
	return p.block(column, -1)
}

// block reads a value that begins at the current position, which is in the given column, and may continue in the lines
// below. All of it must be to the right of the column parent.
func (p *parser) block(column, parent int) Node {
	p.enter()
	defer p.leave()
	switch c := p.peek(); {
	case c == '-' && isSeparator(p.at(p.pos+1)):
		return p.blockList(column)
	case c == '{' || c == '[' || c == '|' || c == '>':
		return p.inline(parent)
	case p.keyAhead():
		return p.blockMapping(column)
	}
	return p.inline(parent)
}

// blockList reads a list with its dashes in a column.
func (p *parser) blockList(column int) Node {
	list := p.node(List, p.line)
	for {
		// Pass the dash and the spaces after it.
		p.pos++
		if p.peek() == '\t' {
			p.fail(p.line, "a tab follows the dash: use a space")
		}
		line := p.line
		for p.peek() == ' ' {
			p.pos++
		}

		// Read the item, in this line or in the lines below.
		inner := p.column()
		if p.skipToLineEnd() {
			p.newLine()
			list.Kids = append(list.Kids, p.valueBelow(line, column, false))
		} else {
			list.Kids = append(list.Kids, p.block(inner, column))
		}

		// Go to the next item. A list may be in the column of the mapping that it belongs to; then the next line in the
		// column can be the next key of that mapping.
		if !p.nextEntry(column, "list") {
			return list
		}
		if p.peek() != '-' || !isSeparator(p.at(p.pos+1)) {
			return list
		}
	}
}

// blockMapping reads a mapping with its keys in a column.
func (p *parser) blockMapping(column int) Node {
	mapping := p.node(Mapping, p.line)
	seen := keys{}
	for {
		// Read the key.
		line := p.line
		if p.peek() == '-' && isSeparator(p.at(p.pos+1)) {
			p.fail(line, "a list begins inside of a mapping: indent it below a key")
		}
		if p.peek() == '?' && isSeparator(p.at(p.pos+1)) {
			p.fail(line, "keys after ? are not accepted")
		}
		key := p.key(false)
		if p.peek() != ':' || !isSeparator(p.at(p.pos+1)) {
			p.fail(line, "expected a colon and a space after %.40q", key)
		}
		p.pos++
		seen.add(p, key, line, mapping.Kids)

		// Read the value, in this line or in the lines below.
		var value Node
		if p.skipToLineEnd() {
			p.newLine()
			value = p.valueBelow(line, column, true)
		} else {
			if p.peek() == '-' && isSeparator(p.at(p.pos+1)) {
				p.fail(line, "a list must begin on its own line")
			}
			value = p.inline(column)
		}
		value.Key = key
		mapping.Kids = append(mapping.Kids, value)

		if !p.nextEntry(column, "mapping") {
			return mapping
		}
	}
}

// valueBelow reads the value of a key or dash with nothing after it in its line. The value is what is indented more, or
// for a key a list in the same column, or null.
func (p *parser) valueBelow(line, column int, key bool) Node {
	inner := p.nextContent()
	switch {
	case inner > column:
		return p.block(inner, column)
	case inner == column && key && p.peek() == '-' && isSeparator(p.at(p.pos+1)) && !p.marker("---"):
		return p.block(inner, column-1)
	}
	return p.node(Null, line)
}

// nextEntry goes to the next entry of a block and reports whether there is one.
func (p *parser) nextEntry(column int, what string) bool {
	inner := p.nextContent()
	if inner > column {
		p.fail(p.line, "is indented more than the %s that it is in; write a long text in quotes on one line, "+
			"or as a block after |", what)
	}
	return inner == column && !p.marker("---") && !p.marker("...")
}

// keyAhead reports whether a key and its colon follow. It does not move the position.
func (p *parser) keyAhead() bool {
	here := *p
	defer func() { *p = here }()

	switch c := p.peek(); {
	case c == '"' || c == '\'':
		p.quoted()
	case c == '?' && isSeparator(p.at(p.pos+1)):
		return true
	default:
		if text := p.plainText(false); text == "" {
			return p.peek() == ':'
		}
	}

	p.skipBlanks()
	return p.peek() == ':' && isSeparator(p.at(p.pos+1))
}

// keys finds keys that a mapping has twice. Most mappings have few keys: for those a search through the keys before is
// faster than a map.
type keys struct {
	lines map[string]int // nil up to maxSearchedKeys
}

const maxSearchedKeys = 24

// add fails if the key is among the entries before. line is the line of the key.
func (k *keys) add(p *parser, key string, line int, before []Node) {
	first := 0
	switch {
	case k.lines != nil:
		first = k.lines[key]
	default:
		for i := range before {
			if before[i].Key == key {
				first = int(before[i].Line)
			}
		}
		if len(before) == maxSearchedKeys {
			k.lines = map[string]int{}
			for i := range before {
				k.lines[before[i].Key] = int(before[i].Line)
			}
		}
	}

	if first != 0 {
		p.fail(line, "key %.40q is given twice, first at line %d", key, first)
	}
	if k.lines != nil {
		k.lines[key] = line
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
		p.expectLineEnd()
		return n
	case '|':
		return p.literal(parent)
	case '>':
		p.fail(p.line, "folded blocks (>) are not accepted: use | or quotes")
	}

	n := p.scalar(false)
	p.expectLineEnd()
	return n
}

// expectLineEnd fails if something follows a value in its line. It goes to the next line.
func (p *parser) expectLineEnd() {
	if !p.skipToLineEnd() {
		if p.peek() == ':' || strings.HasPrefix(p.src[p.pos:], ": ") {
			p.fail(p.line, "there is a second key in the line, or a text with a colon and a space, which needs quotes")
		}
		p.fail(p.line, "unexpected %s after a value", p.word())
	}
	p.newLine()
}
