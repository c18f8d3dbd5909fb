package mako

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
)

// str is str() of Python.
func str(v Value) string {
	switch v := v.(type) {
	case starlark.String:
		return string(v)
	case *exception:
		return v.String()
	default:
		return repr(v)
	}
}

// maxRepr limits how deep repr goes.
const maxRepr = 500

// repr is repr() of Python.
func repr(v Value) string {
	var b strings.Builder
	(&reprWriter{b: &b}).write(v)
	return b.String()
}

// reprWriter writes repr() of a value.
type reprWriter struct {
	b    *strings.Builder
	open []Value // the lists and dicts around what is written: one may contain itself
}

// enter reports whether the items of a list or dict are to be written; leave follows then.
func (w *reprWriter) enter(v Value, instead string) bool {
	if slices.Contains(w.open, v) {
		w.b.WriteString(instead)
		return false
	}
	w.open = append(w.open, v)
	return true
}

func (w *reprWriter) leave() { w.open = w.open[:len(w.open)-1] }

func (w *reprWriter) write(v Value) {
	b := w.b
	if len(w.open) > maxRepr || b.Len() > maxText {
		b.WriteString("...")
		return
	}
	switch v := v.(type) {
	case starlark.String:
		b.WriteString(quote(string(v)))
	case starlark.Float:
		b.WriteString(floatText(float64(v)))
	case starlark.Bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[bool(v)])
	case *starlark.List:
		if w.enter(v, "[...]") {
			w.items("[", "]", listItems(v))
			w.leave()
		}
	case starlark.Tuple:
		w.open = append(w.open, nil)
		if len(v) == 1 {
			w.items("(", ",)", v)
		} else {
			w.items("(", ")", v)
		}
		w.leave()
	case *starlark.Set:
		if v.Len() == 0 {
			b.WriteString("set()")
			return
		}
		w.items("{", "}", setItems(v))
	case *starlark.Dict:
		if w.enter(v, "{...}") {
			w.dict(v)
			w.leave()
		}
	case *view:
		if w.enter(v, "...") {
			w.items(v.kind+"([", "])", v.items())
			w.leave()
		}
	case *exception:
		w.open = append(w.open, nil)
		w.items(v.name()+"(", ")", v.args)
		w.leave()
	case *starlark.Builtin:
		b.WriteString("<built-in function " + v.Name() + ">")
	case *starlark.Function:
		b.WriteString("<function>")
	default:
		b.WriteString(v.String())
	}
}

func (w *reprWriter) items(begin, end string, items []Value) {
	w.b.WriteString(begin)
	for i, item := range items {
		if i > 0 {
			w.b.WriteString(", ")
		}
		w.write(item)
	}
	w.b.WriteString(end)
}

func (w *reprWriter) dict(d *starlark.Dict) {
	w.b.WriteByte('{')
	for i, kv := range d.Items() {
		if i > 0 {
			w.b.WriteString(", ")
		}
		w.write(kv[0])
		w.b.WriteString(": ")
		w.write(kv[1])
	}
	w.b.WriteByte('}')
}

func listItems(l *starlark.List) []Value {
	all := make([]Value, l.Len())
	for i := range all {
		all[i] = l.Index(i)
	}
	return all
}

func setItems(s *starlark.Set) []Value {
	all := make([]Value, 0, s.Len())
	iter := s.Iterate()
	defer iter.Done()
	var v Value
	for iter.Next(&v) {
		all = append(all, v)
	}
	return all
}

// quote is repr() of a string.
func quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r >= 0x7f && r <= 0xff && !printable(r):
			b.WriteString(`\x` + hex(r, 2))
		case printable(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(`\U` + hex(r, 8))
		default:
			b.WriteString(`\u` + hex(r, 4))
		}
	}
	b.WriteByte(q)
	return b.String()
}

func hex(r rune, digits int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// printable is what Python's repr shows as it is: no separators except the blank, no control and format characters.
func printable(r rune) bool { return r == ' ' || unicode.IsPrint(r) }

// floatText is repr() of a float: the shortest text that reads back as the same number.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	exponent := 0
	if f != 0 {
		_, after, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		exponent, _ = strconv.Atoi(after)
	}
	if exponent < -4 || exponent >= 16 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
