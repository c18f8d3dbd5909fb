package yamldoc

import "strings"

// literal reads a block behind |: the lines below that are indented more than the parent, as they are.
func (p *parser) literal(parent int) Node {
	n := p.node(Quoted, p.line)
	p.pos++
	indent, keep := 0, byte(0)
	for !blank(p.peek()) {
		c := p.peek()
		switch {
		case (c == '+' || c == '-') && keep == 0:
			keep = c
		case c >= '1' && c <= '9' && indent == 0:
			indent = max(parent, 0) + int(c-'0')
		default:
			p.fail(p.line, "unexpected %s behind |", p.word())
		}
		p.pos++
	}

	p.endLine("behind |")
	n.Text = p.lines(parent, indent, keep)
	return n
}

// lines reads the lines of a block. Indent is how far they are indented, 0 when the first that is not empty tells.
func (p *parser) lines(parent, indent int, keep byte) string {
	var b strings.Builder
	empty, longest := 0, 0 // lines before the next that is not, and the blanks of the widest of them
	for !p.end() {
		from := p.pos
		for p.peek() == ' ' && (indent == 0 || p.column() < indent) {
			p.pos++
		}
		if lineEnd(p.peek()) {
			longest = max(longest, p.column())
			empty++
			p.newLine()
			continue
		}
		column := p.column()
		if indent == 0 && column > parent && p.peek() != '\t' {
			if column < longest {
				p.fail(p.line, "the empty lines before are indented more than the first line of the block")
			}
			indent = column
		}
		if indent == 0 || column < indent || p.marker("---") || p.marker("...") {
			if p.peek() == '\t' && column > parent {
				p.fail(p.line, "a tab stands in the indentation: use blanks")
			}
			p.pos = from
			break
		}
		b.WriteString(strings.Repeat("\n", empty))
		empty = 0
		end := strings.IndexByte(p.src[p.pos:], '\n')
		if end < 0 {
			end = len(p.src) - p.pos
		}
		b.WriteString(strings.TrimSuffix(p.src[p.pos:p.pos+end], "\r"))
		p.pos += end
		empty = 0
		if !p.end() {
			empty = 1
			p.newLine()
		}
	}

	return chomp(b.String(), empty, keep)
}

// chomp ends a block: with one line's end if there was one, with none (-) or with all there were (+).
func chomp(text string, ends int, keep byte) string {
	switch {
	case keep == '+':
		return text + strings.Repeat("\n", ends)
	case keep == '-' || text == "" || ends == 0:
		return text
	}
	return text + "\n"
}
