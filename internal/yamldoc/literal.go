package yamldoc

import "strings"

// literal reads a block after |: the lines below that are indented more than the parent, as they are.
func (p *parser) literal(parent int) Node {
	// Read what may follow |: + or -, and a digit for the indentation.
	n := p.node(Quoted, p.line)
	p.pos++
	indent, keep := 0, byte(0)
	for !isSeparator(p.peek()) {
		c := p.peek()
		switch {
		case (c == '+' || c == '-') && keep == 0:
			keep = c
		case c >= '1' && c <= '9' && indent == 0:
			indent = max(parent, 0) + int(c-'0')
		default:
			p.fail(p.line, "unexpected %s after |", p.word())
		}
		p.pos++
	}

	p.expectEnd("after |")
	n.Text = p.literalLines(parent, indent, keep)
	return n
}

// literalLines reads the lines of a block. indent is how far they are indented; if it is 0, the first line that is not
// empty decides. keep is + or - or 0: see chomp.
func (p *parser) literalLines(parent, indent int, keep byte) string {
	var b strings.Builder
	empty, longest := 0, 0 // how many empty lines came last, and how many spaces the longest empty line has
	for !p.end() {
		// Pass the indentation. Count an empty line.
		from := p.pos
		for p.peek() == ' ' && (indent == 0 || p.column() < indent) {
			p.pos++
		}
		if isLineEnd(p.peek()) {
			longest = max(longest, p.column())
			empty++
			p.newLine()
			continue
		}

		// The first line decides the indentation.
		column := p.column()
		if indent == 0 && column > parent && p.peek() != '\t' {
			if column < longest {
				p.fail(p.line, "the empty lines before are indented more than the first line of the block")
			}
			indent = column
		}

		// A line that is indented less ends the block.
		if indent == 0 || column < indent || p.marker("---") || p.marker("...") {
			if p.peek() == '\t' && column > parent {
				p.fail(p.line, "there is a tab in the indentation: use spaces")
			}
			p.pos = from
			break
		}

		// Add the line.
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

// chomp adds the line ends after the last line of a block: one if there was any, none if keep is -, all if keep is +.
func chomp(text string, ends int, keep byte) string {
	switch {
	case keep == '+':
		return text + strings.Repeat("\n", ends)
	case keep == '-' || text == "" || ends == 0:
		return text
	}
	return text + "\n"
}
