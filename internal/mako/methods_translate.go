package mako

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// moreDigits are characters that Python's isdigit takes for digits, and isdecimal does not.
var moreDigits = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0xb2, Hi: 0xb3, Stride: 1}, {Lo: 0xb9, Hi: 0xb9, Stride: 1},
	{Lo: 0x2070, Hi: 0x2070, Stride: 1}, {Lo: 0x2074, Hi: 0x2079, Stride: 1}, {Lo: 0x2080, Hi: 0x2089, Stride: 1},
	{Lo: 0x2460, Hi: 0x2468, Stride: 1}}}

var identifierForm = regexp.MustCompile(`^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*$`)

// isTitle is istitle: capitals begin words, other letters follow.
func isTitle(s string) bool {
	inside, found := false, false
	for _, r := range s {
		switch {
		case unicode.IsUpper(r) || unicode.IsTitle(r):
			if inside {
				return false
			}
			inside, found = true, true
		case unicode.IsLower(r):
			if !inside {
				return false
			}
		default:
			inside = false
		}
	}
	return found
}

// translate is translate with a dict of code points.
func translate(c *call, s string) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	table, ok := c.args[0].(*starlark.Dict)
	if !ok {
		return nil, raise("NotImplementedError", "translate with anything but a dict is not supported")
	}
	var b strings.Builder
	for _, r := range s {
		text := string(r)
		v, found, err := c.run.get(table, starlark.MakeInt(int(r)))
		if err != nil {
			return nil, err
		}
		if !found {
			v = starlark.String(text)
		}
		switch v := v.(type) {
		case starlark.String:
			text = string(v)
		case starlark.NoneType:
			text = ""
		case starlark.Int:
			code, ok := v.Int64()
			if !ok || code < 0 || code > utf8.MaxRune {
				return nil, raise("ValueError", "character mapping must be in range(0x110000)")
			}
			text = string(rune(code))
		default:
			return nil, raise("TypeError", "character mapping must return integer, None or str")
		}
		if err := c.run.spend(len(text)); err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	return starlark.String(b.String()), nil
}

// makeTrans is str.maketrans.
func makeTrans(c *call) (Value, error) {
	if err := c.count(1, 3); err != nil {
		return nil, err
	}
	out := starlark.NewDict(0)
	code := func(s string) Value {
		r, _ := utf8.DecodeRuneInString(s)
		return starlark.MakeInt(int(r))
	}
	if from, ok := c.args[0].(*starlark.Dict); ok && len(c.args) == 1 {
		for _, kv := range from.Items() {
			key := kv[0]
			if text, ok := key.(starlark.String); ok {
				if utf8.RuneCountInString(string(text)) != 1 {
					return nil, raise("ValueError", "string keys in translate table must be of length 1")
				}
				key = code(string(text))
			}
			if err := c.run.setIndex(out, key, kv[1]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}

	var texts [3][]rune
	for i := range c.args {
		text, err := c.text(i, "", "")
		if err != nil {
			return nil, err
		}
		if err := c.run.spendEach(len(text), 4); err != nil {
			return nil, err
		}
		texts[i] = []rune(text)
	}
	if len(c.args) == 1 || len(texts[0]) != len(texts[1]) {
		return nil, raise("ValueError", "the first two maketrans arguments must have equal length")
	}
	for i, r := range texts[0] {
		if err := c.run.setIndex(out, starlark.MakeInt(int(r)), starlark.MakeInt(int(texts[1][i]))); err != nil {
			return nil, err
		}
	}
	for _, r := range texts[2] {
		if err := c.run.setIndex(out, starlark.MakeInt(int(r)), starlark.None); err != nil {
			return nil, err
		}
	}
	return out, nil
}
