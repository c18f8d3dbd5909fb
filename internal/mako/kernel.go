package mako

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// kernel has the functions that programs call. Their names begin with pk_, so templates cannot name them.
var kernel = makeKernel()

func makeKernel() starlark.StringDict {
	all := starlark.StringDict{"pk_undefined": undefined{}}
	for name, f := range map[string]fn{
		"ctx":      func(c *call) (Value, error) { return c.run.lookup(str(c.args[0])), nil },
		"write":    kernelWrite,
		"out":      kernelOut,
		"str":      makeStr,
		"filter":   kernelFilter,
		"attr":     func(c *call) (Value, error) { return c.run.attribute(c.args[0], str(c.args[1])) },
		"index":    func(c *call) (Value, error) { return c.run.index(c.args[0], c.args[1]) },
		"slice":    func(c *call) (Value, error) { return c.run.slice(c.args[0], c.args[1], c.args[2], c.args[3]) },
		"op":       func(c *call) (Value, error) { return c.run.binary(str(c.args[0]), c.args[1], c.args[2]) },
		"iop":      kernelInPlace,
		"unary":    func(c *call) (Value, error) { return unary(str(c.args[0]), c.args[1]) },
		"cmp":      kernelCompare,
		"chain":    kernelChain,
		"call":     func(c *call) (Value, error) { return c.args[0], tooDeep(c.thread) }, // Starlark says what cannot be called
		"iter":     kernelIter,
		"star":     kernelStar,
		"concat":   kernelConcat,
		"tuple":    func(c *call) (Value, error) { items, err := c.items(c.args[0]); return starlark.Tuple(items), err },
		"set":      func(c *call) (Value, error) { return c.set(0) },
		"dict":     kernelDict,
		"join":     kernelJoin,
		"format":   kernelFormat,
		"unpack":   kernelUnpack,
		"kw":       kernelKeywords,
		"unkw":     kernelUnkeywords,
		"loop":     kernelLoop,
		"setattr":  func(c *call) (Value, error) { return none(c.run.setAttribute(c.args[0], str(c.args[1]), c.args[2])) },
		"setindex": func(c *call) (Value, error) { return none(c.run.setIndex(c.args[0], c.args[1], c.args[2])) },
		"delindex": func(c *call) (Value, error) { return none(c.run.deleteIndex(c.args[0], c.args[1])) },
		"augattr":  kernelAugmentAttribute,
		"augindex": kernelAugmentIndex,
		"try":      kernelTry,
		"raise":    kernelRaise,
		"assert":   kernelAssert,
		"with": func(c *call) (Value, error) {
			return nil, raise("TypeError", "'%s' object does not support the context manager protocol", typeName(c.args[0]))
		},
		"class":      kernelClass,
		"import":     func(c *call) (Value, error) { return c.run.module(str(c.args[0])) },
		"importfrom": kernelImportFrom,
		"unsupported": func(c *call) (Value, error) {
			return nil, raise("NotImplementedError", "%s is not supported", str(c.args[0]))
		},
	} {
		all["pk_"+name] = kernelFunction(name, f)
	}
	return all
}

// kernelFunction makes a function of the kernel a value. Programs call them for almost everything, and none of them keeps its
// call: so a call is used again when its function has returned.
func kernelFunction(name string, f fn) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (Value, error) {
		r, _ := thread.Local(runKey).(*run)
		if r == nil || len(kwargs) > 0 {
			return f(newCall(thread, name, args, kwargs))
		}
		var c *call
		if n := len(r.unused); n > 0 {
			c, r.unused = r.unused[n-1], r.unused[:n-1]
		} else {
			c = &call{}
		}
		c.name, c.thread, c.run, c.args = name, thread, r, args
		v, err := f(c)
		*c = call{}
		r.unused = append(r.unused, c)
		return v, err
	})
}

// kernelOut writes values as texts.
func kernelOut(c *call) (Value, error) {
	args := c.args
	for i := range args {
		text, ok := args[i].(starlark.String)
		if !ok {
			c.args = args[i : i+1]
			made, err := makeStr(c)
			if err != nil {
				return nil, err
			}
			if text, ok = made.(starlark.String); !ok {
				return nil, raise("TypeError", "sequence item 0: expected str instance, %s found", typeName(made))
			}
		}
		if err := c.run.write(string(text)); err != nil {
			return nil, err
		}
	}
	return starlark.None, nil
}

func none(err error) (Value, error) { return starlark.None, err }

func kernelWrite(c *call) (Value, error) {
	text, ok := c.args[0].(starlark.String)
	if !ok {
		return nil, raise("TypeError", "sequence item 0: expected str instance, %s found", typeName(c.args[0]))
	}
	return none(c.run.write(string(text)))
}

// kernelInPlace is an augmented assignment: lists, sets and dicts change, other values are new.
func kernelInPlace(c *call) (Value, error) {
	op, a, b := str(c.args[0]), c.args[1], c.args[2]
	if l, ok := a.(*starlark.List); ok && op == "+" {
		items, err := c.items(b)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if err := l.Append(item); err != nil {
				return nil, err
			}
		}
		return l, nil
	}
	if d, ok := a.(*starlark.Dict); ok && op == "|" {
		return d, c.fillFrom(d, b)
	}

	if op == "*" && isUnrepeated(a) {
		return nil, operandError("*=", a, b)
	}
	v, err := c.run.binary(op, a, b)
	if err == nil {
		return changed(a, v)
	}
	if e, ok := err.(*exception); ok && e.String() == operandError(op, a, b).Error() {
		return nil, operandError(op+"=", a, b)
	}
	return v, err
}

// isUnrepeated reports whether a value has members but cannot be repeated. It decides an augmented assignment before the other value
// is looked at.
func isUnrepeated(v Value) bool {
	if _, set := v.(*starlark.Set); set {
		return true
	}
	switch typeName(v) {
	case "dict", "dict_keys", "dict_values", "dict_items", "range", "re.Match":
		return true
	}
	return false
}

// changed gives a list or set the items of the new value, so that others who have it see them too.
func changed(old, value Value) (Value, error) {
	switch to := old.(type) {
	case *starlark.List:
		if from, ok := value.(*starlark.List); ok {
			return to, replaceItems(to, listItems(from))
		}
	case *starlark.Set:
		from, ok := value.(*starlark.Set)
		if !ok {
			break
		}
		items := setItems(from)
		if err := to.Clear(); err != nil {
			return nil, err
		}
		for _, item := range items {
			if err := to.Insert(item); err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	return value, nil
}

func kernelCompare(c *call) (Value, error) {
	v, err := c.run.compare(str(c.args[0]), c.args[1], c.args[2])
	return starlark.Bool(v), err
}

// kernelChain is a comparison with several operators; operands are functions after the first.
func kernelChain(c *call) (Value, error) {
	ops, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	left := c.args[1]
	for i, op := range ops {
		right, err := c.invoke(c.args[2+i])
		if err != nil {
			return nil, err
		}
		holds, err := c.run.compare(str(op), left, right)
		if err != nil || !holds {
			return starlark.False, err
		}
		left = right
	}
	return starlark.True, nil
}

// kernelIter is what a loop goes through: a copy, so that the loop may change what it goes through. With a second
// argument, each item must have so many values.
func kernelIter(c *call) (Value, error) {
	if s, ok := c.args[0].(*span); ok && len(c.args) == 1 {
		return s, nil
	}
	items, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	if len(c.args) == 2 {
		n, err := asInt(c.args[1])
		if err != nil {
			return nil, err
		}
		for i, item := range items {
			if items[i], err = c.run.unpack(item, n, -1); err != nil {
				return nil, err
			}
		}
	}
	return starlark.NewList(items), nil
}

// kernelStar are the items of *value in a list, a tuple or a set.
func kernelStar(c *call) (Value, error) {
	items, err := kernelIter(c)
	if err == nil {
		return items, nil
	}
	if e, ok := asException(err); ok && e.kind.name == "TypeError" {
		return nil, raise("TypeError", "Value after * must be an iterable, not %s", typeName(c.args[0]))
	}
	return items, err
}

// given are the items of the list that is the only argument: Starlark limits the number of arguments, and not of items.
func (c *call) given() []Value {
	list, _ := c.args[0].(*starlark.List)
	return listItems(list)
}

func kernelConcat(c *call) (Value, error) {
	var all []Value
	for _, part := range c.given() {
		items, err := c.items(part)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return starlark.NewList(all), nil
}

// kernelDict makes a dict of pairs; an item that is no pair is a mapping.
func kernelDict(c *call) (Value, error) {
	d := starlark.NewDict(0)
	for _, a := range c.given() {
		pair, ok := a.(starlark.Tuple)
		if !ok || len(pair) != 2 {
			if err := c.fillFrom(d, a); err != nil {
				return nil, err
			}
			continue
		}
		if err := c.run.setIndex(d, pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func kernelJoin(c *call) (Value, error) {
	var b strings.Builder
	for _, a := range c.given() {
		text := str(a)
		if err := c.run.spend(len(text)); err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	return starlark.String(b.String()), nil
}

func kernelFormat(c *call) (Value, error) {
	v, err := convert(c.args[0], str(c.args[1]))
	if err != nil {
		return nil, err
	}
	if _, unknown := v.(undefined); unknown {
		return nil, raise("NameError", "Undefined")
	}
	text, err := format(v, str(c.args[2]))
	if err != nil {
		return nil, err
	}
	return starlark.String(text), c.run.spend(len(text))
}

func kernelUnpack(c *call) (Value, error) {
	n, err := asInt(c.args[1])
	if err != nil {
		return nil, err
	}
	star, err := asInt(c.args[2])
	if err != nil {
		return nil, err
	}
	return c.run.unpack(c.args[0], n, star)
}

// unpack splits a value into n; the one at star takes what is left.
func (r *run) unpack(v Value, n, star int) (Value, error) {
	if _, ok := v.(starlark.String); !ok {
		if _, ok := v.(starlark.Iterable); !ok {
			return nil, raise("TypeError", "cannot unpack non-iterable %s object", typeName(v))
		}
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	switch {
	case star < 0 && len(items) > n:
		return nil, raise("ValueError", "too many values to unpack (expected %d)", n)
	case star < 0 && len(items) < n:
		return nil, raise("ValueError", "not enough values to unpack (expected %d, got %d)", n, len(items))
	case star < 0:
		return starlark.Tuple(items), nil
	case len(items) < n-1:
		return nil, raise("ValueError", "not enough values to unpack (expected at least %d, got %d)", n-1, len(items))
	}
	after := len(items) - (n - 1 - star)
	out := append(starlark.Tuple{}, items[:star]...)
	out = append(out, starlark.NewList(slices.Clone(items[star:after])))
	return append(out, items[after:]...), nil
}

// kernelKeywords gives keyword arguments the names of variables.
func kernelKeywords(c *call) (Value, error) {
	d := starlark.NewDict(0)
	for _, a := range c.args {
		from, ok := a.(*starlark.Dict)
		if !ok {
			return nil, raise("TypeError", "argument after ** must be a mapping, not %s", typeName(a))
		}
		for _, kv := range from.Items() {
			name, ok := kv[0].(starlark.String)
			if !ok {
				return nil, raise("TypeError", "keywords must be strings")
			}
			if err := c.run.setIndex(d, "v_"+name, kv[1]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// kernelUnkeywords gives keyword arguments their own names back.
func kernelUnkeywords(c *call) (Value, error) {
	d := starlark.NewDict(0)
	from, ok := c.args[0].(*starlark.Dict)
	if !ok {
		return d, nil
	}
	for _, kv := range from.Items() {
		name, _ := kv[0].(starlark.String)
		if len(name) > 2 {
			name = name[2:]
		}
		if err := d.SetKey(name, kv[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func kernelLoop(c *call) (Value, error) {
	items, err := c.items(c.args[0])
	return &loopValue{items: items, parent: c.args[1]}, err
}

func kernelAugmentAttribute(c *call) (Value, error) {
	old, err := c.run.attribute(c.args[0], str(c.args[1]))
	if err != nil {
		return nil, err
	}
	v, err := kernelInPlace(&call{thread: c.thread, run: c.run, args: starlark.Tuple{c.args[2], old, c.args[3]}})
	if err != nil {
		return nil, err
	}
	return none(c.run.setAttribute(c.args[0], str(c.args[1]), v))
}

func kernelAugmentIndex(c *call) (Value, error) {
	old, err := c.run.index(c.args[0], c.args[1])
	if err != nil {
		return nil, err
	}
	v, err := kernelInPlace(&call{thread: c.thread, run: c.run, args: starlark.Tuple{c.args[2], old, c.args[3]}})
	if err != nil {
		return nil, err
	}
	return none(c.run.setIndex(c.args[0], c.args[1], v))
}
