package language

import "strings"

// maxJoined limits the parts of a joined text that are looked up.
const maxJoined = 8

const partEnd = "; "

// Joined is the Chinese text of a finished message that is put together from several by semicolons, such as a verdict
// with what became of the process. Parts that are not known stay as they are.
func (c *Catalogue) Joined(text string) string { return c.joined(text, 6) }

// joined is Joined for an argument of an argument, as deep as depth says.
func (c *Catalogue) joined(text string, depth int) string {
	if c == nil || depth == 0 || len(text) > maxMessage {
		return text
	}

	if rest, ok := strings.CutPrefix(text, ": "); ok { // follows another text
		return "：" + c.joined(rest, depth-1)
	}

	var b strings.Builder
	separator := ""
	for range maxJoined {
		chinese, rest := c.firstPart(separator, text, depth)
		b.WriteString(chinese)
		if rest == "" {
			return b.String()
		}
		separator, text = partEnd, rest
	}

	return b.String() + partEnd + text
}

// firstPart is the longest known text at the beginning, of one part or of several, and what follows after it. separator
// is what stands before the text; some texts begin with it.
func (c *Catalogue) firstPart(separator, text string, depth int) (chinese, rest string) {
	part := text
	for range maxJoined {
		if known, ok := c.known(separator+part, separator, depth); ok && separator != "" {
			return known, rest
		}
		if known, ok := c.known(part, "", depth); ok {
			return strings.ReplaceAll(separator, partEnd, "；") + known, rest
		}
		at := strings.LastIndex(part, partEnd)
		if at < 0 {
			break
		}
		part, rest = text[:at], text[at+len(partEnd):]
	}

	part, rest, _ = strings.Cut(text, partEnd)
	return separator + part, rest
}

// known is the Chinese text of a message that no semicolon of an argument divides, except in an argument that is looked
// up itself. The fixed text begins with begin.
func (c *Catalogue) known(text, begin string, depth int) (string, bool) {
	if chinese, ok := c.exact[text]; ok {
		return chinese, true
	}

	for i := range c.patterns {
		p := &c.patterns[i]
		if !strings.HasPrefix(p.english.texts[0], begin) {
			continue
		}
		args, ok := p.match(text)
		if !ok || p.divided(args) {
			continue
		}
		return p.fill(args, func(arg string) string { return c.joined(arg, depth-1) }), true
	}
	return "", false
}

// divided reports whether an argument that stays as it is has several parts.
func (p *pattern) divided(args []string) bool {
	for _, v := range p.chinese.verbs {
		if v.letter != 't' && v.letter != 'w' && v.arg < len(args) && strings.Contains(args[v.arg], partEnd) {
			return true
		}
	}
	return false
}
