package mako

import (
	"fmt"

	"go.starlark.net/starlark"
)

// Value is a value in a template: Starlark's strings, numbers, lists and dicts stand for those of Python.
type Value = starlark.Value

// undefined is what a name has that the context does not have. It is false; anything else with it fails.
type undefined struct{}

func (undefined) String() string        { return "<mako.runtime.Undefined object>" }
func (undefined) Type() string          { return "Undefined" }
func (undefined) Freeze()               {}
func (undefined) Truth() starlark.Bool  { return false }
func (undefined) Hash() (uint32, error) { return 1, nil }

// object is a value with attributes and nothing else: modules, dates, matches of patterns, and so on.
type object struct {
	class string // Python's name of its type
	text  string // str(); empty: Python's form for objects
	attr  func(name string) (Value, bool)
	call  fn // of types: makes a value
	data  any
}

func (o *object) String() string        { return o.text }
func (o *object) Type() string          { return o.class }
func (o *object) Freeze()               {}
func (o *object) Truth() starlark.Bool  { return true }
func (o *object) Hash() (uint32, error) { return 2, nil }
func (o *object) Name() string          { return o.class }

// pyType is a type of Python: it makes values, and isinstance and except know it.
type pyType struct {
	name string
	base *pyType
	make fn
	attr map[string]fn // functions of the type
}

func (t *pyType) String() string        { return "<class '" + t.name + "'>" }
func (t *pyType) Type() string          { return "type" }
func (t *pyType) Freeze()               {}
func (t *pyType) Truth() starlark.Bool  { return true }
func (t *pyType) Hash() (uint32, error) { return starlark.String(t.name).Hash() }
func (t *pyType) Name() string          { return t.name }

// CallInternal makes a value of the type.
func (t *pyType) CallInternal(thread *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (Value, error) {
	if t.make == nil {
		return nil, raise("TypeError", "cannot create '%s' instances", t.name)
	}
	return t.make(newCall(thread, t.name, args, kwargs))
}

// is reports whether a type is another one or derived from it.
func (t *pyType) is(other *pyType) bool {
	for ; t != nil; t = t.base {
		if t == other {
			return true
		}
	}
	return false
}

// span is range().
type span struct{ start, stop, step int }

func (s *span) String() string {
	if s.step == 1 {
		return fmt.Sprintf("range(%d, %d)", s.start, s.stop)
	}
	return fmt.Sprintf("range(%d, %d, %d)", s.start, s.stop, s.step)
}
func (s *span) Type() string          { return "range" }
func (s *span) Freeze()               {}
func (s *span) Truth() starlark.Bool  { return s.Len() > 0 }
func (s *span) Hash() (uint32, error) { return 3, nil }

// Len is how many numbers there are.
func (s *span) Len() int {
	switch {
	case s.step > 0 && s.start < s.stop:
		return (s.stop-s.start-1)/s.step + 1
	case s.step < 0 && s.start > s.stop:
		return (s.start-s.stop-1)/-s.step + 1
	}
	return 0
}

// Index is the number at a position.
func (s *span) Index(i int) Value { return starlark.MakeInt(s.start + i*s.step) }

// Iterate goes through the numbers.
func (s *span) Iterate() starlark.Iterator { return &spanIterator{s: s} }

type spanIterator struct {
	s  *span
	at int
}

func (i *spanIterator) Next(p *Value) bool {
	if i.at >= i.s.Len() {
		return false
	}
	*p = i.s.Index(i.at)
	i.at++
	return true
}

func (i *spanIterator) Done() {}

// class is a class of a template.
type class struct {
	name  string
	order []*class // the class and those that it is derived from, in the order in which attributes are looked up
	base  *pyType  // the exception that it is derived from, or nil
	attrs *starlark.Dict
}

func (c *class) String() string        { return "<class '" + c.name + "'>" }
func (c *class) Type() string          { return "type" }
func (c *class) Freeze()               {}
func (c *class) Truth() starlark.Bool  { return true }
func (c *class) Hash() (uint32, error) { return starlark.String(c.name).Hash() }
func (c *class) Name() string          { return c.name }

// find looks up an attribute in a class and its bases.
func (c *class) find(name string) (Value, bool) {
	for _, one := range c.order {
		if v, ok, _ := one.attrs.Get(starlark.String(name)); ok {
			return v, true
		}
	}
	return nil, false
}

// CallInternal makes an instance, or an exception if the class is derived from one.
func (c *class) CallInternal(thread *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (Value, error) {
	if c.base != nil {
		return &exception{kind: c.base, user: c, args: args}, nil
	}
	in := &instance{class: c, attrs: starlark.NewDict(4)}
	begin, ok := c.find("__init__")
	if !ok {
		if len(args)+len(kwargs) > 0 {
			return nil, raise("TypeError", "%s() takes no arguments", c.name)
		}
		return in, nil
	}
	_, err := starlark.Call(thread, begin, append(starlark.Tuple{in}, args...), kwargs)
	return in, err
}

// instance is an instance of a class of a template.
type instance struct {
	class *class
	attrs *starlark.Dict
}

func (i *instance) String() string        { return "<" + i.class.name + " object>" }
func (i *instance) Type() string          { return i.class.name }
func (i *instance) Freeze()               {}
func (i *instance) Truth() starlark.Bool  { return true }
func (i *instance) Hash() (uint32, error) { return 4, nil }

// loopValue is the variable loop of a control line.
type loopValue struct {
	items  []Value
	index  int
	parent Value
}

func (l *loopValue) String() string        { return "<mako.runtime.LoopContext object>" }
func (l *loopValue) Type() string          { return "LoopContext" }
func (l *loopValue) Freeze()               {}
func (l *loopValue) Truth() starlark.Bool  { return true }
func (l *loopValue) Hash() (uint32, error) { return 5, nil }

// Iterate goes through the items and counts them.
func (l *loopValue) Iterate() starlark.Iterator { return &loopIterator{l: l} }

type loopIterator struct {
	l  *loopValue
	at int
}

func (i *loopIterator) Next(p *Value) bool {
	if i.at >= len(i.l.items) {
		return false
	}
	*p, i.l.index = i.l.items[i.at], i.at
	i.at++
	return true
}

func (i *loopIterator) Done() {}

// attribute is an attribute of the variable loop.
func (l *loopValue) attribute(name string) (Value, bool) {
	switch name {
	case "index":
		return starlark.MakeInt(l.index), true
	case "reverse_index":
		return starlark.MakeInt(len(l.items) - l.index - 1), true
	case "first":
		return starlark.Bool(l.index == 0), true
	case "last":
		return starlark.Bool(l.index == len(l.items)-1), true
	case "even":
		return starlark.Bool(l.index%2 == 0), true
	case "odd":
		return starlark.Bool(l.index%2 == 1), true
	case "parent":
		return l.parent, true
	case "cycle":
		return builtin("cycle", func(c *call) (Value, error) {
			if len(c.args) == 0 {
				return nil, raise("ValueError", "You must provide values to cycle through")
			}
			return c.args[l.index%len(c.args)], nil
		}), true
	}
	return nil, false
}

// typeName is Python's name of the type of a value.
func typeName(v Value) string {
	switch v := v.(type) {
	case starlark.String:
		return "str"
	case starlark.Int:
		return "int"
	case starlark.Float:
		return "float"
	case starlark.Bool:
		return "bool"
	case starlark.NoneType:
		return "NoneType"
	case *starlark.List:
		return "list"
	case starlark.Tuple:
		return "tuple"
	case *starlark.Dict:
		return "dict"
	case *starlark.Set:
		return "set"
	case *starlark.Function:
		return "function"
	case *starlark.Builtin:
		return "builtin_function_or_method"
	default:
		return v.Type()
	}
}

// String makes a text a value.
func String(s string) Value { return starlark.String(s) }

// Int makes a number a value.
func Int(i int) Value { return starlark.MakeInt(i) }

// Text is a value as a template writes it.
func Text(v Value) string { return str(v) }

// None is the value None.
func None() Value { return starlark.None }
