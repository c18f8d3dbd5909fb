package mako

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// splitArguments reads the separator and the largest number of splits; no separator means white space.
func splitArguments(c *call) (sep string, blank bool, most int, err error) {
	if err = c.count(0, 2); err != nil {
		return
	}
	v := c.arg(0, "sep")
	blank = v == nil || v == starlark.None
	if !blank {
		text, ok := v.(starlark.String)
		if !ok {
			return "", false, 0, raise("TypeError", "must be str or None, not %s", typeName(v))
		}
		if sep = string(text); sep == "" {
			return "", false, 0, raise("ValueError", "empty separator")
		}
	}
	most, err = c.number(1, "maxsplit", -1)
	return
}

// texts makes a list of strings.
func (c *call) texts(all []string) (Value, error) {
	items := make([]Value, len(all))
	size := 0
	for i, s := range all {
		items[i] = starlark.String(s)
		size += len(s) + 16
	}
	return starlark.NewList(items), c.run.spend(size)
}

func split(c *call, s string) (Value, error) {
	sep, blank, most, err := splitArguments(c)
	if err != nil {
		return nil, err
	}
	if !blank {
		if most < 0 {
			return c.texts(strings.Split(s, sep))
		}
		return c.texts(strings.SplitN(s, sep, most+1))
	}
	if most < 0 {
		return c.texts(strings.Fields(s))
	}

	var all []string
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	for s != "" {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end < 0 || len(all) == most {
			if len(all) == most {
				s = strings.TrimRightFunc(s, unicode.IsSpace)
			}
			all = append(all, s)
			break
		}
		all = append(all, s[:end])
		s = strings.TrimLeftFunc(s[end:], unicode.IsSpace)
	}
	return c.texts(all)
}

func rsplit(c *call, s string) (Value, error) {
	sep, blank, most, err := splitArguments(c)
	if err != nil {
		return nil, err
	}
	if most < 0 {
		return split(c, s)
	}

	var all []string
	if blank {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	}
	for s != "" || !blank {
		end, size := strings.LastIndex(s, sep), len(sep)
		if blank {
			end, size = strings.LastIndexFunc(s, unicode.IsSpace), 1
		}
		if end < 0 || len(all) == most {
			if blank {
				s = strings.TrimLeftFunc(s, unicode.IsSpace)
			}
			all = append(all, s)
			break
		}
		if blank {
			word := s[strings.LastIndexFunc(s, unicode.IsSpace):]
			all = append(all, strings.TrimLeftFunc(word, unicode.IsSpace))
			s = strings.TrimRightFunc(s[:end], unicode.IsSpace)
			continue
		}
		all = append(all, s[end+size:])
		s = s[:end]
	}
	slices.Reverse(all)
	return c.texts(all)
}

func splitLines(c *call, s string) (Value, error) {
	keep := c.flag(0, "keepends", false)
	var all []string
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool {
			return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r)
		})
		if end < 0 {
			all = append(all, s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[end:])
		if strings.HasPrefix(s[end:], "\r\n") {
			size = 2
		}
		if keep {
			all = append(all, s[:end+size])
		} else {
			all = append(all, s[:end])
		}
		s = s[end+size:]
	}
	return c.texts(all)
}
