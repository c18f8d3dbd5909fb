package mako

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// stringMethod is a method of str.
type stringMethod = func(c *call, s string) (Value, error)

// stringMethods has the methods of str, except format and format_map.
var stringMethods = makeStringMethods()

func makeStringMethods() map[string]stringMethod {
	return map[string]stringMethod{
		"upper":      textOf(strings.ToUpper),
		"lower":      textOf(strings.ToLower),
		"casefold":   textOf(strings.ToLower),
		"capitalize": textOf(capitalize),
		"title":      textOf(title),
		"swapcase":   textOf(swapCase),

		"isdigit":   isAll(func(r rune) bool { return unicode.IsDigit(r) || unicode.Is(moreDigits, r) }),
		"isdecimal": isAll(unicode.IsDigit),
		"isnumeric": isAll(unicode.IsNumber),
		"isalpha":   isAll(unicode.IsLetter),
		"isalnum":   isAll(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isspace":   isAll(unicode.IsSpace),
		"isprintable": func(c *call, s string) (Value, error) {
			return starlark.Bool(!strings.ContainsFunc(s, func(r rune) bool { return !printable(r) })), c.count(0, 0)
		},
		"isascii": func(c *call, s string) (Value, error) {
			return starlark.Bool(!strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })), c.count(0, 0)
		},
		"isidentifier": func(c *call, s string) (Value, error) {
			return starlark.Bool(identifierForm.MatchString(s)), c.count(0, 0)
		},
		"istitle":   func(c *call, s string) (Value, error) { return starlark.Bool(isTitle(s)), c.count(0, 0) },
		"translate": translate,
		"isupper":   isCased(unicode.IsUpper, unicode.IsLower),
		"islower":   isCased(unicode.IsLower, unicode.IsUpper),

		"strip":  strips(true, true),
		"lstrip": strips(true, false),
		"rstrip": strips(false, true),

		"startswith":   affix(strings.HasPrefix),
		"endswith":     affix(strings.HasSuffix),
		"removeprefix": cutAffix(strings.TrimPrefix),
		"removesuffix": cutAffix(strings.TrimSuffix),

		"find":   finds(strings.Index, false),
		"rfind":  finds(strings.LastIndex, false),
		"index":  finds(strings.Index, true),
		"rindex": finds(strings.LastIndex, true),
		"count":  counts,

		"split":      split,
		"rsplit":     rsplit,
		"splitlines": splitLines,
		"partition":  partitions(strings.Index),
		"rpartition": partitions(strings.LastIndex),
		"join":       join,
		"replace":    replace,
		"expandtabs": func(c *call, s string) (Value, error) {
			n, err := c.number(0, "tabsize", 8)
			if err != nil {
				return nil, err
			}
			if err := c.run.spendEach(strings.Count(s, "\t"), max(n, 0)); err != nil {
				return nil, err
			}
			return starlark.String(expandTabs(s, n)), c.run.spend(len(s))
		},

		"center": pads('^'),
		"ljust":  pads('<'),
		"rjust":  pads('>'),
		"zfill":  zfill,
	}
}

func textOf(f func(string) string) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(0, 0); err != nil {
			return nil, err
		}
		return starlark.String(f(s)), c.run.spend(len(s))
	}
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(r)) + strings.ToLower(s[n:])
}

func title(s string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		before := inside
		inside = unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
		if before {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

func isAll(f func(rune) bool) stringMethod {
	return func(c *call, s string) (Value, error) {
		for _, r := range s {
			if !f(r) {
				return starlark.False, nil
			}
		}
		return starlark.Bool(s != ""), c.count(0, 0)
	}
}

func isCased(want, other func(rune) bool) stringMethod {
	return func(c *call, s string) (Value, error) {
		found := false
		for _, r := range s {
			if other(r) {
				return starlark.False, nil
			}
			found = found || want(r)
		}
		return starlark.Bool(found), c.count(0, 0)
	}
}

func strips(left, right bool) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(0, 1); err != nil {
			return nil, err
		}
		cut := unicode.IsSpace
		if len(c.args) == 1 && c.args[0] != starlark.None {
			chars, ok := c.args[0].(starlark.String)
			if !ok {
				return nil, raise("TypeError", "%s arg must be None or str", c.name)
			}
			cut = func(r rune) bool { return strings.ContainsRune(string(chars), r) }
		}
		if left {
			s = strings.TrimLeftFunc(s, cut)
		}
		if right {
			s = strings.TrimRightFunc(s, cut)
		}
		return starlark.String(s), nil
	}
}

// part is the part of a string that the arguments start and stop leave, and how many runes are before it: -1 if there is no
// such part, not even an empty one.
func (c *call) part(s string, i int) (text string, before int, err error) {
	if len(c.args) <= i {
		return s, 0, nil
	}
	if err := c.run.spendEach(len(s), 4); err != nil {
		return "", 0, err
	}
	runes := []rune(s)
	from, to := 0, len(runes)
	for j, end := range []*int{&from, &to} {
		if i+j >= len(c.args) || c.args[i+j] == starlark.None {
			continue
		}
		at, err := sliceIndex(c.args[i+j], len(runes))
		if err != nil {
			return "", 0, err
		}
		if at < 0 {
			at = max(at+len(runes), 0)
		}
		*end = at
	}
	to = min(to, len(runes))
	if from > to {
		return "", -1, nil
	}
	return string(runes[from:to]), from, nil
}

func affix(has func(s, affix string) bool) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(1, 3); err != nil {
			return nil, err
		}
		s, before, err := c.part(s, 1)
		if err != nil {
			return nil, err
		}
		all, ok := c.args[0].(starlark.Tuple)
		if !ok {
			all = starlark.Tuple{c.args[0]}
		}
		for _, a := range all {
			text, ok := a.(starlark.String)
			if !ok {
				return nil, raise("TypeError", "%s first arg must be str or a tuple of str, not %s", c.name, typeName(a))
			}
			if before >= 0 && has(s, string(text)) {
				return starlark.True, nil
			}
		}
		return starlark.False, nil
	}
}

func cutAffix(cut func(s, affix string) string) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		text, err := c.text(0, "", "")
		return starlark.String(cut(s, text)), err
	}
}

func finds(index func(s, sub string) int, must bool) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(1, 3); err != nil {
			return nil, err
		}
		sub, ok := c.args[0].(starlark.String)
		if !ok {
			return nil, raise("TypeError", "must be str, not %s", typeName(c.args[0]))
		}
		part, before, err := c.part(s, 1)
		if err != nil {
			return nil, err
		}
		at := index(part, string(sub))
		if at < 0 || before < 0 {
			if must {
				return nil, raise("ValueError", "substring not found")
			}
			return starlark.MakeInt(-1), nil
		}
		return starlark.MakeInt(before + utf8.RuneCountInString(part[:at])), nil
	}
}

func counts(c *call, s string) (Value, error) {
	if err := c.count(1, 3); err != nil {
		return nil, err
	}
	sub, err := c.text(0, "", "")
	if err != nil {
		return nil, err
	}
	s, before, err := c.part(s, 1)
	if err != nil || before < 0 {
		return starlark.MakeInt(0), err
	}
	return starlark.MakeInt(strings.Count(s, sub)), nil
}

func partitions(index func(s, sub string) int) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		sep, err := c.text(0, "", "")
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, raise("ValueError", "empty separator")
		}
		at := index(s, sep)
		parts := [3]string{s, "", ""}
		if at >= 0 {
			parts = [3]string{s[:at], sep, s[at+len(sep):]}
		} else if c.name == "rpartition" {
			parts = [3]string{"", "", s}
		}
		return starlark.Tuple{starlark.String(parts[0]), starlark.String(parts[1]), starlark.String(parts[2])}, nil
	}
}

func join(c *call, s string) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	items, err := c.items(c.args[0])
	if err != nil {
		if _, ok := c.args[0].(starlark.Iterable); !ok {
			return nil, raise("TypeError", "can only join an iterable")
		}
		return nil, err
	}
	var b strings.Builder
	for i, item := range items {
		text, ok := item.(starlark.String)
		if !ok {
			return nil, raise("TypeError", "sequence item %d: expected str instance, %s found", i, typeName(item))
		}
		if err := c.run.spend(len(text) + len(s)); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(s)
		}
		b.WriteString(string(text))
	}
	return starlark.String(b.String()), nil
}

func replace(c *call, s string) (Value, error) {
	if err := c.count(2, 3); err != nil {
		return nil, err
	}
	old, err := c.text(0, "", "")
	if err != nil {
		return nil, err
	}
	by, err := c.text(1, "", "")
	if err != nil {
		return nil, err
	}
	n, err := c.number(2, "count", -1)
	if err != nil {
		return nil, err
	}
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	if err := c.run.spendEach(found+1, len(by)+1); err != nil {
		return nil, err
	}
	return starlark.String(strings.Replace(s, old, by, n)), c.run.spend(len(s))
}

func pads(align byte) stringMethod {
	return func(c *call, s string) (Value, error) {
		if err := c.count(1, 2); err != nil {
			return nil, err
		}
		width, err := c.number(0, "", 0)
		if err != nil {
			return nil, err
		}
		fill, err := c.text(1, "", " ")
		if err != nil {
			return nil, err
		}
		if utf8.RuneCountInString(fill) != 1 {
			return nil, raise("TypeError", "The fill character must be exactly one character long")
		}
		if err := c.run.spend(width); width > 0 && err != nil {
			return nil, err
		}
		n := utf8.RuneCountInString(s)
		if align == '^' && width > n { // the odd one goes left if the width is odd
			left := (width-n)/2 + ((width - n) & width & 1)
			return starlark.String(strings.Repeat(fill, left) + s + strings.Repeat(fill, width-n-left)), nil
		}
		return starlark.String(spec{fill: fill, align: align, width: width}.pad("", s)), nil
	}
}

func zfill(c *call, s string) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	width, err := c.number(0, "", 0)
	if err != nil {
		return nil, err
	}
	if err := c.run.spend(width); width > 0 && err != nil {
		return nil, err
	}
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	return starlark.String(spec{fill: "0", align: '=', width: width}.pad(sign, s)), nil
}
