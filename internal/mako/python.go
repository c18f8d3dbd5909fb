package mako

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// pyTypes has the types of Python by name, except type itself and the exceptions.
var pyTypes = makeTypes()

func makeTypes() map[string]*pyType {
	all := map[string]*pyType{}
	for name, f := range map[string]fn{
		"str": makeStr, "int": makeInt, "float": makeFloat, "list": makeList, "tuple": makeTuple, "range": makeRange,
		"set":       func(c *call) (Value, error) { return c.set(0) },
		"frozenset": func(c *call) (Value, error) { return c.set(0) },
		"dict": func(c *call) (Value, error) {
			d := starlark.NewDict(0)
			return d, c.fill(d)
		},
		"bool": func(c *call) (Value, error) {
			return starlark.Bool(len(c.args) > 0 && bool(c.args[0].Truth())), c.count(0, 1)
		},
		"object": func(*call) (Value, error) {
			return &object{class: "object", text: "<object>", attr: func(string) (Value, bool) { return nil, false }}, nil
		},
		"NoneType": nil, "function": nil,
	} {
		all[name] = &pyType{name: name, make: f}
	}
	all["bool"].base = all["int"]
	all["dict"].attr = map[string]fn{"fromkeys": dictFromKeys}
	all["str"].attr = map[string]fn{"maketrans": makeTrans}
	return all
}

func dictFromKeys(c *call) (Value, error) {
	if err := c.count(1, 2); err != nil {
		return nil, err
	}
	keys, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	d := starlark.NewDict(len(keys))
	for _, k := range keys {
		if err := c.run.setIndex(d, k, c.otherwise(1)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// makeStr is str(). The text of an instance comes from its class.
func makeStr(c *call) (Value, error) {
	if len(c.args) == 0 {
		return starlark.String(""), nil
	}
	if len(c.args) > 1 {
		if _, ok := c.args[0].(starlark.String); ok {
			return nil, raise("TypeError", "decoding str is not supported")
		}
		return nil, raise("TypeError", "str() argument 'encoding' must be str, not %s", typeName(c.args[1]))
	}
	switch v := c.args[0].(type) {
	case starlark.String:
		return v, nil
	case undefined:
		return nil, raise("NameError", "Undefined")
	case *instance:
		for _, name := range []string{"__str__", "__repr__"} {
			if f, ok := v.attribute(name); ok {
				return c.invoke(f)
			}
		}
	case starlark.Int:
		if v.BigInt().BitLen() > 14285 { // 4300 digits
			return nil, raise("ValueError", "Exceeds the limit (4300 digits) for integer string conversion")
		}
	}
	text := str(c.args[0])
	if len(text) > maxText {
		return nil, tooLong()
	}
	return starlark.String(text), c.run.spend(len(text))
}

func makeInt(c *call) (Value, error) {
	if err := c.count(0, 2); err != nil {
		return nil, err
	}
	if len(c.args) == 0 {
		return starlark.MakeInt(0), nil
	}
	base, err := c.number(1, "base", 10)
	if err != nil {
		return nil, err
	}
	switch v := c.args[0].(type) {
	case starlark.Bool, starlark.Int:
		n, _ := asNumber(v)
		return n, nil
	case starlark.Float:
		return floatToInt(float64(v))
	case starlark.String:
		return textToInt(string(v), base)
	}
	return nil, raise("TypeError",
		"int() argument must be a string, a bytes-like object or a real number, not '%s'", typeName(c.args[0]))
}

// floatToInt cuts the fraction of a float.
func floatToInt(f float64) (Value, error) {
	switch {
	case math.IsNaN(f):
		return nil, raise("ValueError", "cannot convert float NaN to integer")
	case math.IsInf(f, 0):
		return nil, raise("OverflowError", "cannot convert float infinity to integer")
	}
	i, _ := big.NewFloat(math.Trunc(f)).Int(nil)
	return starlark.MakeBigInt(i), nil
}

func textToInt(s string, base int) (Value, error) {
	fail := raise("ValueError", "invalid literal for int() with base %d: %s", base, firstRunes(quote(s), 200))
	if base != 0 && (base < 2 || base > 36) {
		return nil, raise("ValueError", "int() base must be >= 2 and <= 36, or 0")
	}
	text := strings.TrimSpace(s)
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || len(digits) > 4300 || strings.HasPrefix(digits, "_") ||
		strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return nil, fail
	}
	digits = strings.ReplaceAll(digits, "_", "")
	if base == 0 && len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' && strings.Trim(digits, "0") != "" {
		return nil, fail // as in Python itself
	}
	if lower := strings.ToLower(digits); len(lower) > 2 {
		if want := map[string]int{"0x": 16, "0o": 8, "0b": 2}[lower[:2]]; want == base && base != 0 {
			digits = digits[2:]
		}
	}
	i, ok := new(big.Int).SetString(digits, base)
	if !ok || strings.ContainsAny(digits, "+-") {
		return nil, fail
	}
	if strings.HasPrefix(text, "-") {
		i.Neg(i)
	}
	return starlark.MakeBigInt(i), nil
}

func makeFloat(c *call) (Value, error) {
	if err := c.count(0, 1); err != nil {
		return nil, err
	}
	if len(c.args) == 0 {
		return starlark.Float(0), nil
	}
	if s, ok := c.args[0].(starlark.String); ok {
		text := strings.ToLower(strings.TrimSpace(string(s)))
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err != nil && !math.IsInf(f, 0) || strings.ContainsAny(text, "xp") {
			return nil, raise("ValueError", "could not convert string to float: %s", quote(string(s)))
		}
		return starlark.Float(f), nil
	}
	f, err := asFloat(c.args[0])
	if err != nil {
		return nil, raise("TypeError", "float() argument must be a string or a real number, not '%s'", typeName(c.args[0]))
	}
	return starlark.Float(f), nil
}

func makeList(c *call) (Value, error) {
	if err := c.count(0, 1); err != nil {
		return nil, err
	}
	if len(c.args) == 0 {
		return starlark.NewList(nil), nil
	}
	items, err := c.items(c.args[0])
	return starlark.NewList(items), err
}

func makeTuple(c *call) (Value, error) {
	if err := c.count(0, 1); err != nil {
		return nil, err
	}
	if len(c.args) == 0 {
		return starlark.Tuple{}, nil
	}
	items, err := c.items(c.args[0])
	return starlark.Tuple(items), err
}

func makeRange(c *call) (Value, error) {
	if err := c.count(1, 3); err != nil {
		return nil, err
	}
	var n [3]int
	for i, a := range c.args {
		v, err := asInt(a)
		if err != nil {
			return nil, err
		}
		if v > math.MaxInt32 || v < math.MinInt32 {
			return nil, &limitError{"a range of the template is too large"}
		}
		n[i] = v
	}
	switch {
	case len(c.args) == 1:
		return &span{0, n[0], 1}, nil
	case len(c.args) == 2:
		return &span{n[0], n[1], 1}, nil
	case n[2] == 0:
		return nil, raise("ValueError", "range() arg 3 must not be zero")
	}
	return &span{n[0], n[1], n[2]}, nil
}

// length is len().
func (r *run) length(v Value) (int, error) {
	switch v := v.(type) {
	case starlark.String:
		return utf8.RuneCountInString(string(v)), nil
	case interface{ Len() int }:
		return v.Len(), nil
	}
	return 0, raise("TypeError", "object of type '%s' has no len()", typeName(v))
}

// tooLong is the error for a text of a value that was cut.
func tooLong() error { return &limitError{"the template uses too much memory for the text of a value"} }
