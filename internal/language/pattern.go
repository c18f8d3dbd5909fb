package language

import (
	"slices"
	"strconv"
	"strings"
)

// pattern finds the arguments of a format in a message that was made with it, and fills them into the Chinese format.
type pattern struct {
	english pieces
	chinese pieces
	plain   int // bytes of fixed text
}

// pieces are a format, taken apart: a text, a verb, a text, a verb, …, a text.
type pieces struct {
	texts []string
	verbs []verb
}

// verb is one place of a format.
type verb struct {
	letter byte // such as s, d or q; t and w in a Chinese text: the argument is looked up too
	arg    int  // from 0
}

func newPattern(e Entry) pattern {
	p := pattern{english: takeApart(e.English), chinese: takeApart(e.Chinese)}
	for _, text := range p.english.texts {
		p.plain += len(text)
	}
	return p
}

// takeApart reads a format.
func takeApart(format string) pieces {
	var p pieces
	var text strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			text.WriteByte(format[i])
			continue
		}

		// Skip flags, width and precision. [n] says which argument is meant.
		i++
		for i+1 < len(format) && strings.IndexByte("+-# 0123456789.[]*", format[i]) >= 0 {
			if format[i] == '[' {
				number, _, _ := strings.Cut(format[i+1:], "]")
				if n, err := strconv.Atoi(number); err == nil && n > 0 {
					next = n - 1
				}
			}
			i++
		}

		if format[i] == '%' {
			text.WriteByte('%')
			continue
		}

		p.texts = append(p.texts, text.String())
		p.verbs = append(p.verbs, verb{format[i], next})
		text.Reset()
		next++
	}

	p.texts = append(p.texts, text.String())
	return p
}

// match finds the arguments in a message. Its work is at most the length of the message for each verb.
func (p *pattern) match(message string) ([]string, bool) {
	texts, verbs := p.english.texts, p.english.verbs
	rest, ok := strings.CutPrefix(message, texts[0])
	if !ok || !strings.HasSuffix(rest, texts[len(texts)-1]) {
		return nil, false
	}

	args := make([]string, 0, len(verbs))
	for i, v := range verbs {
		var arg string
		if i == len(verbs)-1 {
			arg = rest[:len(rest)-len(texts[i+1])]
		} else {
			end := argumentEnd(rest, texts[i+1])
			if texts[i+1] == "" {
				end = p.adjacentEnd(i, rest)
			}
			if end < 0 {
				return nil, false
			}
			arg, rest = rest[:end], rest[end+len(texts[i+1]):]
			if len(rest) < len(texts[len(texts)-1]) {
				return nil, false
			}
		}
		if !v.fits(arg) {
			return nil, false
		}
		if v.arg >= len(args) {
			args = append(args, make([]string, v.arg+1-len(args))...)
		}
		args[v.arg] = arg
	}

	return args, true
}

// isCause reports whether a message that fits may be another one, whose cause fits: it begins with an argument, and this
// argument has a colon. The argument of %w is an error, which has colons.
func (p *pattern) isCause(args []string) bool {
	if p.english.texts[0] != "" || len(p.english.verbs) == 0 {
		return false
	}
	first := p.english.verbs[0]
	return first.letter != 'w' && first.letter != 'q' && strings.Contains(args[first.arg], ": ")
}

// joins reports whether a message that fits is several messages on their lines: its last argument is looked up, and it
// goes on in the next line.
func (p *pattern) joins(args []string) bool {
	if len(p.english.verbs) == 0 || strings.Contains(strings.Join(p.english.texts, ""), "\n") {
		return false
	}
	last := p.english.verbs[len(p.english.verbs)-1].arg
	if !strings.Contains(args[last], "\n") {
		return false
	}
	return slices.ContainsFunc(p.chinese.verbs, func(v verb) bool {
		return v.arg == last && (v.letter == 't' || v.letter == 'w')
	})
}

// argumentEnd finds where an argument ends that a text follows. A text in quotes ends with its quote, whatever is in
// it.
func argumentEnd(rest, text string) int {
	if quoted, err := strconv.QuotedPrefix(rest); err == nil && strings.HasPrefix(rest[len(quoted):], text) {
		return len(quoted)
	}
	return strings.Index(rest, text)
}

// adjacentEnd finds where an argument ends that another one follows without a text between them. A number ends with its
// digits. Everything else ends where an addition begins, such as "; last output: x", or where the next text is.
func (p *pattern) adjacentEnd(i int, rest string) int {
	if p.english.verbs[i].letter == 'd' {
		return len(rest) - len(strings.TrimLeft(rest, "-+0123456789"))
	}

	end := len(rest)
	for _, text := range append([]string{"; ", ": ", " ("}, p.english.texts[i+2:]...) {
		if at := strings.Index(rest, text); text != "" && at >= 0 && at < end {
			end = at
		}
	}
	return end
}

// fits reports whether a text can be what the verb printed.
func (v verb) fits(arg string) bool {
	switch v.letter {
	case 'd':
		return arg != "" && strings.Trim(arg, "-+0123456789") == ""
	case 'q':
		quoted, err := strconv.QuotedPrefix(arg)
		return err == nil && quoted == arg
	}
	return true
}

// fill makes the Chinese text. look finds the Chinese text of an argument.
func (p *pattern) fill(args []string, look func(string) string) string {
	var b strings.Builder
	b.WriteString(p.chinese.texts[0])
	for i, v := range p.chinese.verbs {
		if v.arg < len(args) {
			arg := args[v.arg]
			if v.letter == 't' || v.letter == 'w' {
				arg = look(arg)
			}
			b.WriteString(arg)
		}
		b.WriteString(p.chinese.texts[i+1])
	}
	return b.String()
}

// SameVerbs reports whether a Chinese text has every argument of its English one, and no other.
func SameVerbs(english, chinese string) bool {
	count := func(format string) map[int]byte {
		found := map[int]byte{}
		for _, v := range takeApart(format).verbs {
			if v.letter == 't' || v.letter == 'v' || v.letter == 'w' {
				v.letter = 's'
			}
			found[v.arg] = v.letter
		}
		return found
	}

	a, b := count(english), count(chinese)
	if len(a) != len(b) {
		return false
	}
	for arg, letter := range a {
		if b[arg] != letter {
			return false
		}
	}
	return true
}
