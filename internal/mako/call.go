package mako

import (
	"math/big"
	"strings"

	"go.starlark.net/starlark"
)

// fn is a function that templates call.
type fn func(c *call) (Value, error)

// call is one call of a function: its arguments, and the run it belongs to.
type call struct {
	name   string
	thread *starlark.Thread
	run    *run
	args   starlark.Tuple
	kw     map[string]Value
	order  []string // the names in kw, as they were given
}

// newCall reads the arguments of a call. Keyword arguments have the names of variables in programs.
func newCall(thread *starlark.Thread, name string, args starlark.Tuple, kwargs []starlark.Tuple) *call {
	c := &call{name: name, thread: thread, args: args}
	c.run, _ = thread.Local(runKey).(*run)
	if len(kwargs) > 0 {
		c.kw = make(map[string]Value, len(kwargs))
		for _, kv := range kwargs {
			key, _ := starlark.AsString(kv[0])
			key = strings.TrimPrefix(key, "v_")
			c.kw[key] = kv[1]
			c.order = append(c.order, key)
		}
	}
	return c
}

// builtin makes a function of Go a value.
func builtin(name string, f fn) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (Value, error) {
		return f(newCall(thread, name, args, kwargs))
	})
}

// count rejects a call with fewer or more positional arguments.
func (c *call) count(least, most int) error {
	n := len(c.args)
	switch {
	case n >= least && n <= most:
		return nil
	case least == most && most == 0:
		return raise("TypeError", "%s() takes no arguments (%d given)", c.name, n)
	case least == most && most == 1:
		return raise("TypeError", "%s() takes exactly one argument (%d given)", c.name, n)
	case n < least:
		return raise("TypeError", "%s expected at least %d argument%s, got %d", c.name, least, plural(least), n)
	}
	return raise("TypeError", "%s expected at most %d argument%s, got %d", c.name, most, plural(most), n)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// arg is a positional argument or the keyword argument of that name, or nil.
func (c *call) arg(i int, name string) Value {
	if i >= 0 && i < len(c.args) {
		return c.args[i]
	}
	return c.kw[name]
}

// text is an argument that must be a string.
func (c *call) text(i int, name, otherwise string) (string, error) {
	v := c.arg(i, name)
	if v == nil || v == starlark.None {
		return otherwise, nil
	}
	if s, ok := v.(starlark.String); ok {
		return string(s), nil
	}
	return "", raise("TypeError", "%s() argument %d must be str, not %s", c.name, i+1, typeName(v))
}

// number is an argument that must be an int.
func (c *call) number(i int, name string, otherwise int) (int, error) {
	v := c.arg(i, name)
	if v == nil || v == starlark.None {
		return otherwise, nil
	}
	return asInt(v)
}

// flag is an argument of which only the truth counts.
func (c *call) flag(i int, name string, otherwise bool) bool {
	if v := c.arg(i, name); v != nil {
		return bool(v.Truth())
	}
	return otherwise
}

// invoke calls a value with arguments.
func (c *call) invoke(f Value, args ...Value) (Value, error) {
	if err := callable(c.thread, f); err != nil {
		return nil, err
	}
	return starlark.Call(c.thread, f, args, nil)
}

// callable rejects what cannot be called, and calls that are too deep.
func callable(thread *starlark.Thread, f Value) error {
	if _, ok := f.(starlark.Callable); !ok {
		return raise("TypeError", "'%s' object is not callable", typeName(f))
	}
	if o, ok := f.(*object); ok && o.call == nil {
		return raise("TypeError", "'%s' object is not callable", o.class)
	}
	return tooDeep(thread)
}

// tooDeep rejects a call inside of too many others.
func tooDeep(thread *starlark.Thread) error {
	if thread.CallStackDepth() > maxCalls {
		return raise("RecursionError", "maximum recursion depth exceeded")
	}
	return nil
}

// CallInternal calls an object that is a type.
func (o *object) CallInternal(thread *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (Value, error) {
	if o.call == nil {
		return nil, raise("TypeError", "'%s' object is not callable", o.class)
	}
	return o.call(newCall(thread, o.class, args, kwargs))
}

// asInt is an int that fits Go's.
func asInt(v Value) (int, error) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case starlark.Int:
		if i, ok := v.Int64(); ok && int64(int(i)) == i {
			return int(i), nil
		}
		return 0, raise("OverflowError", "Python int too large to convert to C ssize_t")
	}
	return 0, raise("TypeError", "'%s' object cannot be interpreted as an integer", typeName(v))
}

// asNumber gives a bool as an int, and numbers as they are.
func asNumber(v Value) (Value, bool) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return starlark.MakeInt(1), true
		}
		return starlark.MakeInt(0), true
	case starlark.Int, starlark.Float:
		return v, true
	}
	return v, false
}

// asFloat is a number as a float.
func asFloat(v Value) (float64, error) {
	n, ok := asNumber(v)
	if !ok {
		return 0, raise("TypeError", "must be real number, not %s", typeName(v))
	}
	switch n := n.(type) {
	case starlark.Float:
		return float64(n), nil
	case starlark.Int:
		f, _ := new(big.Float).SetInt(n.BigInt()).Float64()
		return f, nil
	}
	return 0, nil
}

// items are the items of something that can be iterated.
func (c *call) items(v Value) ([]Value, error) { return c.run.items(v) }

// items are the items of something that can be iterated. They count as memory.
func (r *run) items(v Value) ([]Value, error) {
	if s, ok := v.(starlark.String); ok {
		if err := r.spendEach(len(s), 16); err != nil {
			return nil, err
		}
		all := make([]Value, 0, len(s))
		for _, ch := range string(s) {
			all = append(all, starlark.String(string(ch)))
		}
		return all, nil
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, raise("TypeError", "'%s' object is not iterable", typeName(v))
	}
	if sized, ok := v.(interface{ Len() int }); ok {
		if err := r.spendEach(sized.Len(), 16); err != nil {
			return nil, err
		}
	}

	var all []Value
	iter := it.Iterate()
	defer iter.Done()
	var item Value
	for iter.Next(&item) {
		all = append(all, item)
	}
	return all, nil
}
