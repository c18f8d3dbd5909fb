package mako

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// jsonWriter writes a value as Python's json does.
type jsonWriter struct {
	b         strings.Builder
	indent    string
	pretty    bool
	item, key string // separators
	sorted    bool
	ascii     bool
	run       *run
}

func jsonDumps(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	w := &jsonWriter{item: ", ", key: ": ", run: c.run, sorted: c.flag(-1, "sort_keys", false),
		ascii: c.flag(-1, "ensure_ascii", true)}
	switch indent := c.kw["indent"].(type) {
	case nil, starlark.NoneType:
	case starlark.String:
		w.pretty, w.indent, w.item = true, string(indent), ","
	default:
		n, err := asInt(indent)
		if err != nil {
			return nil, err
		}
		w.pretty, w.indent, w.item = true, strings.Repeat(" ", min(max(n, 0), 64)), ","
	}
	if pair, ok := c.kw["separators"].(starlark.Tuple); ok && len(pair) == 2 {
		w.item, w.key = str(pair[0]), str(pair[1])
	}
	if err := w.value(c.args[0], 0); err != nil {
		return nil, err
	}
	return starlark.String(w.b.String()), nil
}

// write writes a text, which counts as memory: indentations, separators and keys may be long, and are written many times.
func (w *jsonWriter) write(text string) error {
	if err := w.run.spend(len(text)); err != nil {
		return err
	}
	w.b.WriteString(text)
	return nil
}

func (w *jsonWriter) value(v Value, depth int) error {
	if depth > maxDeep {
		return raise("ValueError", "Circular reference detected")
	}
	if err := w.run.spend(32); err != nil {
		return err
	}
	switch v := v.(type) {
	case starlark.NoneType:
		w.b.WriteString("null")
	case starlark.Bool:
		w.b.WriteString(strings.ToLower(str(v)))
	case starlark.Int:
		w.b.WriteString(v.String())
	case starlark.Float:
		text := floatText(float64(v))
		w.b.WriteString(strings.NewReplacer("inf", "Infinity", "nan", "NaN").Replace(text))
	case starlark.String:
		return w.text(string(v))
	case *starlark.List:
		return w.list(listItems(v), depth)
	case starlark.Tuple:
		return w.list(v, depth)
	case *starlark.Dict:
		return w.dict(v, depth)
	default:
		return raise("TypeError", "Object of type %s is not JSON serializable", typeName(v))
	}
	return nil
}

// between writes what is between the items of a list or dict, and at its begin and end.
func (w *jsonWriter) between(i, depth int) error {
	if i > 0 {
		if err := w.write(w.item); err != nil {
			return err
		}
	}
	return w.newline(depth + 1)
}

func (w *jsonWriter) newline(depth int) error {
	if !w.pretty {
		return nil
	}
	w.b.WriteByte('\n')
	for range depth {
		if err := w.write(w.indent); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) list(items []Value, depth int) error {
	if len(items) == 0 {
		w.b.WriteString("[]")
		return nil
	}
	w.b.WriteByte('[')
	for i, item := range items {
		if err := w.between(i, depth); err != nil {
			return err
		}
		if err := w.value(item, depth+1); err != nil {
			return err
		}
	}
	if err := w.newline(depth); err != nil {
		return err
	}
	w.b.WriteByte(']')
	return nil
}

func (w *jsonWriter) dict(d *starlark.Dict, depth int) error {
	items := d.Items()
	if len(items) == 0 {
		w.b.WriteString("{}")
		return nil
	}
	if w.sorted {
		var fault error
		slices.SortStableFunc(items, func(a, b starlark.Tuple) int {
			n, err := w.run.order("<", a[0], b[0], 0)
			if err != nil {
				fault = err
			}
			return n
		})
		if fault != nil {
			return fault
		}
	}

	w.b.WriteByte('{')
	for i, kv := range items {
		if err := w.between(i, depth); err != nil {
			return err
		}
		if err := w.keyText(kv[0]); err != nil {
			return err
		}
		if err := w.write(w.key); err != nil {
			return err
		}
		if err := w.value(kv[1], depth+1); err != nil {
			return err
		}
	}
	if err := w.newline(depth); err != nil {
		return err
	}
	w.b.WriteByte('}')
	return nil
}

func (w *jsonWriter) keyText(key Value) error {
	switch k := key.(type) {
	case starlark.String:
		return w.text(string(k))
	case starlark.Int, starlark.Float:
		return w.text(str(k))
	case starlark.Bool:
		return w.text(strings.ToLower(str(k)))
	case starlark.NoneType:
		return w.text("null")
	}
	return raise("TypeError", "keys must be str, int, float, bool or None, not %s", typeName(key))
}

func (w *jsonWriter) text(s string) error {
	if err := w.run.spendEach(len(s), 6); err != nil { // at most 6 bytes for one
		return err
	}
	w.b.WriteByte('"')
	for _, r := range s {
		escape := strings.IndexRune("\"\\\n\r\t\b\f", r)
		switch {
		case escape >= 0:
			w.b.WriteString(`\` + `"\nrtbf`[escape:escape+1])
		case r < 0x20 || w.ascii && r >= 0x7f && r <= 0xffff:
			w.b.WriteString(`\u` + hex(r, 4))
		case r > 0xffff && w.ascii:
			r -= 0x10000
			w.b.WriteString(`\u` + hex(0xd800+r>>10, 4) + `\u` + hex(0xdc00+r&0x3ff, 4))
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
	return nil
}

func jsonLoads(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	text, ok := c.args[0].(starlark.String)
	if !ok {
		return nil, raise("TypeError", "the JSON object must be str, bytes or bytearray, not %s", typeName(c.args[0]))
	}
	if err := c.run.spendEach(len(text), 32); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return nil, raise("json.JSONDecodeError", "Extra data")
		}
		return v, nil
	}
	return nil, raise("json.JSONDecodeError", "Expecting value: %v", err)
}

// readJSON reads one value; the order of the keys stays.
func readJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > maxDeep {
		return nil, errors.New("too deep")
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(t), nil
	case string:
		return starlark.String(t), nil
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") {
			f, err := t.Float64()
			return starlark.Float(f), err
		}
		return textToInt(t.String(), 10)
	case json.Delim:
		if t == '[' {
			return readList(d, depth)
		}
		return readDict(d, depth)
	}
	return nil, errors.New("unknown value")
}

func readList(d *json.Decoder, depth int) (Value, error) {
	var items []Value
	for d.More() {
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := d.Token()
	return starlark.NewList(items), err
}

func readDict(d *json.Decoder, depth int) (Value, error) {
	out := starlark.NewDict(0)
	for d.More() {
		key, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		if err := out.SetKey(key, v); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return out, err
}
