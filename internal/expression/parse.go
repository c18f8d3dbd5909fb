package expression

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// parser splits an expression into places. Each place has one or more choices.
type parser struct {
	text   []rune
	places [][]choice // a text is a place with one choice

	// nested is the position of the first bracket inside of a word, or of an empty negation, -1 for none. Such a
	// bracket combines with the text after it, so the expression has the meaning of its patterns one by one.
	nested int
}

// choice is a shell-style pattern or a range of integers.
type choice struct {
	pattern string
	pos     int // of the first character of the pattern; a class begins with a bracket that the text may not have
	numbers *numbers
}

func (p *parser) fail(pos int, format string, args ...any) *Error {
	return &Error{Text: string(p.text), Pos: pos, Reason: fmt.Sprintf(format, args...)}
}

// parse splits the text at its brackets.
func (p *parser) parse() error {
	p.nested = -1
	alternatives := 1
	for i := 0; i < len(p.text); {
		if p.text[i] != '[' {
			end := index(p.text, '[', i)
			if end < 0 {
				end = len(p.text)
			}
			p.places = append(p.places, []choice{{pattern: string(p.text[i:end]), pos: i}})
			i = end
			continue
		}
		end := index(p.text, ']', i)
		if end < 0 {
			return p.fail(i, "[ without a ] after it")
		}
		choices := p.enum(i+1, end)
		if alternatives *= len(choices); alternatives > MaxAlternatives {
			return p.fail(i, "more than %d alternatives", MaxAlternatives)
		}
		p.places = append(p.places, choices)
		i = end + 1
	}

	return nil
}

// enum parses the body of a pair of brackets.
func (p *parser) enum(from, to int) []choice {
	body := p.text[from:to]
	if len(body) > 0 && body[0] == '!' || !slices.Contains(body, ',') {
		return []choice{p.item(from, to)}
	}

	var list []choice
	for begin := from; begin <= to; {
		end := index(p.text[:to], ',', begin)
		if end < 0 {
			end = to
		}
		first, last := begin, end
		for first < last && unicode.IsSpace(p.text[first]) {
			first++
		}
		for last > first && unicode.IsSpace(p.text[last-1]) {
			last--
		}
		item := p.item(first, last)
		if !slices.ContainsFunc(list, item.same) {
			list = append(list, item)
		}
		begin = end + 1
	}

	return list
}

// item parses one item of a list, or a body without a list.
func (p *parser) item(from, to int) choice {
	body := p.text[from:to]
	if len(body) > 0 && body[0] == '!' {
		if len(body) == 1 {
			p.nest(from)
		}
		return choice{pattern: "[" + string(body) + "]", pos: from - 1}
	}

	if dash := slices.Index(body, '-'); dash >= 0 && !slices.Contains(body[dash+1:], '-') {
		if left, right := body[:dash], body[dash+1:]; letterRange(left, right) {
			return choice{pattern: "[" + string(body) + "]", pos: from - 1}
		} else if n := numberRange(left, right); n != nil {
			return choice{numbers: n, pos: from}
		}
	}

	if i := slices.Index(body, '['); i >= 0 {
		p.nest(from + i)
	}

	return choice{pattern: string(body), pos: from}
}

func (p *parser) nest(pos int) {
	if p.nested < 0 {
		p.nested = pos
	}
}

// same reports whether two choices mean the same, without regard to their positions.
func (c choice) same(o choice) bool {
	if c.numbers != nil && o.numbers != nil {
		return *c.numbers == *o.numbers
	}
	return c.numbers == o.numbers && c.pattern == o.pattern
}

func letterRange(left, right []rune) bool {
	if len(left) != 1 || len(right) != 1 {
		return false
	}
	l, r := left[0], right[0]
	return unicode.IsLetter(l) && unicode.IsLetter(r) && lower(l) == lower(r) && l < r
}

func lower(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }

// maxNestedBytes limits the patterns of an expression with brackets inside of brackets. They are matched one after the
// other.
const maxNestedBytes = 8 << 10

// compile returns the parts of the expression. It merges adjacent places with one choice, so that an expression without
// choices has one part.
func (p *parser) compile() ([]part, error) {
	if p.nested >= 0 {
		return p.compileNested()
	}

	parts := []part{{choices: [][]token{nil}}}
	for _, place := range p.places {
		choices := make([][]token, 0, len(place))
		for _, c := range place {
			tokens, err := p.compileChoice(c)
			if err != nil {
				return nil, err
			}
			choices = append(choices, tokens)
		}
		if last := &parts[len(parts)-1]; len(last.choices) == 1 && len(choices) == 1 {
			last.choices[0] = joinTokens(last.choices[0], choices[0])
			continue
		}
		parts = append(parts, part{choices: choices})
	}

	return parts, nil
}

func (p *parser) compileChoice(c choice) ([]token, error) {
	if c.numbers != nil {
		return []token{{kind: tokenNumber, numbers: c.numbers}}, nil
	}
	tokens, wrong := compileGlob([]rune(c.pattern))
	if wrong >= 0 {
		return nil, p.fail(c.pos+wrong, "range of characters from the greater to the smaller")
	}
	return tokens, nil
}

// compileNested compiles an expression with brackets inside of brackets: each of its patterns is a choice.
func (p *parser) compileNested() ([]part, error) {
	patterns, ok := p.patterns(MaxAlternatives, maxNestedBytes)
	if !ok {
		return nil, p.fail(p.nested, "[ inside of [ ] with more than %d bytes of alternatives", maxNestedBytes)
	}

	one := part{}
	for _, pattern := range patterns {
		tokens, wrong := compileGlob([]rune(pattern))
		if wrong >= 0 {
			return nil, p.fail(p.nested,
				"[ inside of [ ] makes %s, a range of characters from the greater to the smaller,", pattern)
		}
		one.choices = append(one.choices, tokens)
	}

	return []part{one}, nil
}

// maxPatternBytes limits the result of Patterns.
const maxPatternBytes = 4 << 20

// patterns returns all combinations. It returns false if there are more than limit, or more than size bytes of them.
func (p *parser) patterns(limit, size int) ([]string, bool) {
	list := []string{""}
	for _, place := range p.places {
		var ends []string
		for _, c := range place {
			if c.numbers == nil {
				ends = append(ends, c.pattern)
				continue
			}
			digits, ok := c.numbers.patterns(size)
			if !ok {
				return nil, false
			}
			ends = append(ends, digits...)
		}
		if ends = unique(ends); !fits(list, ends, size) {
			return nil, false
		}
		list = combine(list, ends)
	}

	if list = unique(list); len(list) > limit {
		return list[:max(limit, 0)], false
	}

	return list, true
}

// fits reports whether all combinations of heads and ends have at most size bytes. An empty text counts as one byte.
func fits(heads, ends []string, size int) bool {
	return (len(strings.Join(heads, ""))+len(heads))*len(ends)+
		(len(strings.Join(ends, ""))+len(ends))*len(heads) <= size
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// index returns the position of r at or after from, -1 if there is none.
func index(text []rune, r rune, from int) int {
	if i := slices.Index(text[from:], r); i >= 0 {
		return from + i
	}
	return -1
}
