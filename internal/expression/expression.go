package expression

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// The limits of an expression. A numeric range counts as one alternative.
const (
	MaxBytes        = 1024
	MaxAlternatives = 1000
)

// Expression is a compiled pattern for one field, such as 4[6, 8, 9] or gse*. Text stands for itself, * for any run
// of characters, ? for one character, and brackets for a choice:
//
//	[!...]     one character that is none of these (a-c is a range of characters)
//	[a, b, 3]  one of these, each again one of the forms below or above
//	[a-c]      one character of the range
//	[1-100]    an integer of the range, by value and without leading zeros
//	[...]      anything else: the word itself, where * and ? keep their meaning
//
// It matches in time proportional to its length times that of the text.
type Expression struct {
	text     string
	parts    []part
	run      []token  // the whole expression, if it has no choice and no range of integers
	literals []string // sorted; nil if they are many, or if the expression has wildcards
	all      bool
}

// part is one place of an expression: one of its choices must match. A choice without tokens matches the empty text.
type part struct{ choices [][]token }

// Error says what is wrong in an expression, and where.
type Error struct {
	Text   string // the expression, or its beginning if it is too long
	Pos    int    // in characters, from 0
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("expression %q: %s at character %d", e.Text, e.Reason, e.Pos+1)
}

// Parse compiles an expression. Its error is an *Error.
func Parse(text string) (*Expression, error) {
	// Reject a text that is too long. The error has its beginning only.
	if len(text) > MaxBytes {
		head := text[:64]
		for !utf8.ValidString(head) && len(head) > 60 { // a character may be cut in two
			head = head[:len(head)-1]
		}
		reason := fmt.Sprintf("has %d bytes, at most %d are allowed; it goes on", len(text), MaxBytes)
		return nil, &Error{Text: head, Pos: utf8.RuneCountInString(head), Reason: reason}
	}

	// Parse it.
	p := parser{text: []rune(text)}
	if !utf8.ValidString(text) {
		return nil, p.fail(slices.Index(p.text, utf8.RuneError), "is not valid UTF-8")
	}
	if err := p.parse(); err != nil {
		return nil, err
	}

	// Compile it.
	e := &Expression{text: text}
	var err error
	if e.parts, err = p.compile(); err != nil {
		return nil, err
	}
	if len(e.parts) == 1 && len(e.parts[0].choices) == 1 && !slices.ContainsFunc(e.parts[0].choices[0], token.numeric) {
		e.run = e.parts[0].choices[0]
	}

	e.all = len(e.run) == 1 && e.run[0].kind == tokenStar
	e.literals = literals(e.parts)
	return e, nil
}

// Match reports whether the whole text s matches.
func (e *Expression) Match(s string) bool {
	switch {
	case e.all:
		return true
	case e.literals != nil:
		_, found := slices.BinarySearch(e.literals, s)
		return found
	case !utf8.ValidString(s):
		s = string([]rune(s))
	}

	if e.run != nil {
		return matchRun(e.run, s)
	}

	return matchParts(e.parts, s)
}

// All reports whether every text matches.
func (e *Expression) All() bool { return e.all }

// Literals lists all texts that match, sorted, if they are few and the expression has no wildcards. The caller must not
// change the list.
func (e *Expression) Literals() ([]string, bool) { return e.literals, e.literals != nil }

// Patterns lists the shell-style patterns that the expression stands for, sorted, at most limit. ok is false if there
// are more.
func (e *Expression) Patterns(limit int) (list []string, ok bool) {
	p := parser{text: []rune(e.text)}
	if p.parse() != nil { // cannot happen: it was parsed before
		return nil, false
	}
	return p.patterns(limit, maxPatternBytes)
}

func (e *Expression) String() string { return e.text }
