package mako

import (
	"strconv"
	"strings"

	"go.starlark.net/starlark"
)

// braces is text.format(...). Get gives the value of a field by its name or number.
func (c *call) braces(text string, mapping Value, depth int) (string, error) {
	if depth > 2 {
		return "", raise("ValueError", "Max string recursion exceeded")
	}
	var b strings.Builder
	next := 0
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "{{"), strings.HasPrefix(text[i:], "}}"):
			b.WriteByte(text[i])
			i += 2
		case text[i] == '}':
			return "", raise("ValueError", "Single '}' encountered in format string")
		case text[i] == '{':
			end := closing(text[i:])
			if end < 0 {
				if i+1 == len(text) {
					return "", raise("ValueError", "Single '{' encountered in format string")
				}
				if strings.Contains(text[i:], ":") {
					return "", raise("ValueError", "unmatched '{' in format spec")
				}
				return "", raise("ValueError", "expected '}' before end of string")
			}
			one, err := c.brace(text[i+1:i+end], mapping, &next, depth)
			if err != nil {
				return "", err
			}
			if err := c.run.spend(len(one)); err != nil {
				return "", err
			}
			b.WriteString(one)
			i += end + 1
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String(), nil
}

// closing is where the brace that opens a text is closed.
func closing(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// brace formats one field.
func (c *call) brace(field string, mapping Value, next *int, depth int) (string, error) {
	name, form, _ := strings.Cut(field, ":")
	name, conversion, converted := strings.Cut(name, "!")
	v, err := c.fieldValue(name, mapping, next)
	if err != nil {
		return "", err
	}
	if converted {
		if v, err = convert(v, conversion); err != nil {
			return "", err
		}
	}
	if strings.Contains(form, "{") {
		if form, err = c.nested(form, mapping, next, depth); err != nil {
			return "", err
		}
	}
	return format(v, form)
}

// nested replaces the fields in a format.
func (c *call) nested(form string, mapping Value, next *int, depth int) (string, error) {
	if depth > 2 {
		return "", raise("ValueError", "Max string recursion exceeded")
	}
	var b strings.Builder
	for form != "" {
		before, after, found := strings.Cut(form, "{")
		b.WriteString(before)
		if !found {
			break
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", raise("ValueError", "expected '}' before end of string")
		}
		one, err := c.brace(name, mapping, next, depth+1)
		if err != nil {
			return "", err
		}
		b.WriteString(one)
		form = rest
	}
	return b.String(), nil
}

// fieldValue is the value that a field names: a number or a name, then .attribute and [key].
func (c *call) fieldValue(name string, mapping Value, next *int) (Value, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, path := name[:end], name[end:]
	var v Value
	if first == "" {
		first = strconv.Itoa(*next)
		*next++
	}
	if i, err := strconv.Atoi(first); err == nil {
		if i < 0 || i >= len(c.args) {
			return nil, raise("IndexError", "Replacement index %d out of range for positional args tuple", i)
		}
		v = c.args[i]
	} else if mapping != nil {
		if v, err = c.run.index(mapping, starlark.String(first)); err != nil {
			return nil, err
		}
	} else if v = c.kw[first]; v == nil {
		return nil, keyError(starlark.String(first))
	}

	for path != "" {
		var err error
		if path[0] == '.' {
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			if v, err = c.run.attribute(v, path[1:end]); err != nil {
				return nil, err
			}
			path = path[end:]
			continue
		}
		key, rest, closed := strings.Cut(path[1:], "]")
		if !closed {
			return nil, raise("ValueError", "expected '}' before end of string")
		}
		var k Value = starlark.String(key)
		if i, err := strconv.Atoi(key); err == nil {
			k = starlark.MakeInt(i)
		}
		if v, err = c.run.index(v, k); err != nil {
			return nil, err
		}
		path = rest
	}
	return v, nil
}
