package mako

import (
	"math"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// shown is a text of the only argument.
func (c *call) shown(f func(Value) string) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	text := f(c.args[0])
	if len(text) > maxText {
		return nil, tooLong()
	}
	return starlark.String(text), c.run.spend(len(text))
}

// fits reports whether a number is one of 64 bits.
func fits(i starlark.Int) bool {
	_, ok := i.Int64()
	return ok
}

func pyChr(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	if i, ok := c.args[0].(starlark.Int); ok && !fits(i) {
		return nil, raise("OverflowError", "Python int too large to convert to C int")
	}
	n, err := asInt(c.args[0])
	if err != nil {
		return nil, err
	}
	if n > math.MaxInt32 || n < math.MinInt32 {
		return nil, raise("OverflowError", "Python int too large to convert to C int")
	}
	if n < 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return nil, raise("ValueError", "chr() arg not in range(0x110000)")
	}
	return starlark.String(string(rune(n))), nil
}

func pyOrd(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	s, ok := c.args[0].(starlark.String)
	if !ok {
		return nil, raise("TypeError", "ord() expected string of length 1, but %s found", typeName(c.args[0]))
	}
	if n := utf8.RuneCountInString(string(s)); n != 1 {
		return nil, raise("TypeError", "ord() expected a character, but string of length %d found", n)
	}
	r, _ := utf8.DecodeRuneInString(string(s))
	return starlark.MakeInt(int(r)), nil
}

func pyBase(c *call, prefix string, base int) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	n, _ := asNumber(c.args[0])
	i, ok := n.(starlark.Int)
	if !ok {
		return nil, raise("TypeError", "'%s' object cannot be interpreted as an integer", typeName(c.args[0]))
	}
	text := i.BigInt().Text(base)
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		return starlark.String("-" + prefix + rest), nil
	}
	return starlark.String(prefix + text), nil
}

func pyFormat(c *call) (Value, error) {
	if err := c.count(1, 2); err != nil {
		return nil, err
	}
	spec, err := c.text(1, "format_spec", "")
	if err != nil {
		return nil, err
	}
	text, err := format(c.args[0], spec)
	if err != nil {
		return nil, err
	}
	return starlark.String(text), c.run.spend(len(text))
}

func pyIsInstance(c *call) (Value, error) {
	if err := c.count(2, 2); err != nil {
		return nil, err
	}
	kinds, ok := c.args[1].(starlark.Tuple)
	if !ok {
		kinds = starlark.Tuple{c.args[1]}
	}
	for _, k := range kinds {
		switch k := k.(type) {
		case *pyType:
			if k.name == "object" || typeIs(c.args[0], k) {
				return starlark.True, nil
			}
		case *class:
			if e, ok := c.args[0].(*exception); ok && e.matches(k) {
				return starlark.True, nil
			}
			if in, ok := c.args[0].(*instance); ok && in.class.is(k) {
				return starlark.True, nil
			}
		case *object:
			if typeName(c.args[0]) == k.class {
				return starlark.True, nil
			}
		default:
			return nil, raise("TypeError", "isinstance() arg 2 must be a type, a tuple of types, or a union")
		}
	}
	return starlark.False, nil
}

func typeIs(v Value, kind *pyType) bool {
	if e, ok := v.(*exception); ok {
		return e.kind.is(kind)
	}
	t := pyTypes[typeName(v)]
	return t != nil && t.is(kind)
}

func pyTypeOf(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, raise("NotImplementedError", "type() with %d arguments is not supported", len(c.args))
	}
	switch v := c.args[0].(type) {
	case *instance:
		return v.class, nil
	case *exception:
		return v.kind, nil
	}
	name := typeName(c.args[0])
	if t := pyTypes[name]; t != nil {
		return t, nil
	}
	return &pyType{name: name}, nil
}

func pyCallable(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	return starlark.Bool(callable(c.thread, c.args[0]) == nil), nil
}

func pyGetattr(c *call) (Value, error) {
	if err := c.count(2, 3); err != nil {
		return nil, err
	}
	name, err := c.text(1, "", "")
	if err != nil {
		return nil, err
	}
	v, err := c.run.attribute(c.args[0], name)
	if err != nil && len(c.args) == 3 {
		return c.args[2], nil
	}
	return v, err
}

func pyHasattr(c *call) (Value, error) {
	if err := c.count(2, 2); err != nil {
		return nil, err
	}
	name, err := c.text(1, "", "")
	if err != nil {
		return nil, err
	}
	_, err = c.run.attribute(c.args[0], name)
	return starlark.Bool(err == nil), nil
}
