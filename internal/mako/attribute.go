package mako

import (
	"go.starlark.net/starlark"
)

// attribute is v.name.
func (r *run) attribute(v Value, name string) (Value, error) {
	var found Value
	ok := false
	switch x := v.(type) {
	case starlark.String:
		if name == "format" || name == "format_map" {
			return formatMethod(name, string(x)), nil
		}
		found, ok = method(name, stringMethods[name], string(x))
	case *starlark.List:
		found, ok = method(name, listMethods[name], x)
	case *starlark.Dict:
		found, ok = method(name, dictMethods[name], x)
	case *starlark.Set:
		found, ok = method(name, setMethods[name], x)
	case *view:
		if isSetView(x) {
			found, ok = method(name, viewMethods[name], x)
		}
	case starlark.Tuple:
		found, ok = method(name, tupleMethods[name], x)
	case *element:
		found, ok = x.attribute(name)
	case *attributes:
		found, ok = x.attribute(name)
	case *thisValue:
		found, ok = x.attribute(name)
	case *loopValue:
		found, ok = x.attribute(name)
	case *object:
		if x.attr != nil {
			found, ok = x.attr(name)
		}
	case *exception:
		if ok = name == "args"; ok {
			found = x.args
		}
	case *pyType:
		found, ok = x.attribute(name)
	case *class:
		found, ok = x.find(name)
	case *instance:
		found, ok = x.attribute(name)
	}
	if ok {
		return found, nil
	}
	if name == "__len__" {
		if n, err := r.length(v); err == nil {
			return builtin("__len__", func(*call) (Value, error) { return starlark.MakeInt(n), nil }), nil
		}
	}
	if o, is := v.(*object); is && o.class == "module" {
		return nil, raise("AttributeError", "module '%s' has no attribute '%s'", o.text, name)
	}
	if t, is := v.(starlark.Callable); is && typeName(v) == "type" {
		return nil, raise("AttributeError", "type object '%s' has no attribute '%s'", t.Name(), name)
	}
	return nil, raise("AttributeError", "'%s' object has no attribute '%s'", typeName(v), name)
}

// method makes a method of a value a function.
func method[T any](name string, f func(c *call, x T) (Value, error), x T) (Value, bool) {
	if f == nil {
		return nil, false
	}
	return builtin(name, func(c *call) (Value, error) { return f(c, x) }), true
}

// attribute is a function of a type: str.upper('x') is 'x'.upper().
func (t *pyType) attribute(name string) (Value, bool) {
	if name == "__name__" {
		return starlark.String(t.name), true
	}
	if f := t.attr[name]; f != nil {
		return builtin(name, f), true
	}
	if t.name == "str" && stringMethods[name] != nil {
		return builtin(name, func(c *call) (Value, error) {
			if len(c.args) == 0 {
				return nil, raise("TypeError", "unbound method str.%s() needs an argument", name)
			}
			self, ok := c.args[0].(starlark.String)
			if !ok {
				return nil, raise("TypeError", "descriptor '%s' for 'str' objects doesn't apply to a '%s' object", name,
					typeName(c.args[0]))
			}
			c.args = c.args[1:]
			return stringMethods[name](c, string(self))
		}), true
	}
	return nil, false
}

func (i *instance) attribute(name string) (Value, bool) {
	if v, ok, _ := i.attrs.Get(starlark.String(name)); ok {
		return v, true
	}
	v, ok := i.class.find(name)
	if !ok {
		return nil, false
	}
	f, isFunction := v.(*starlark.Function)
	if !isFunction {
		return v, true
	}
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (Value, error) {
		return starlark.Call(thread, f, append(starlark.Tuple{i}, args...), kwargs)
	}), true
}

// setAttribute is v.name = item: only instances of a template's classes have attributes that can be set.
func (r *run) setAttribute(v Value, name string, item Value) error {
	switch x := v.(type) {
	case *instance:
		return x.attrs.SetKey(starlark.String(name), item)
	case *class:
		return x.attrs.SetKey(starlark.String(name), item)
	}
	return raise("AttributeError", "'%s' object has no attribute '%s'", typeName(v), name)
}

// formatMethod is format or format_map of a string.
func formatMethod(name, s string) Value {
	return builtin(name, func(c *call) (Value, error) {
		var mapping Value
		if name == "format_map" {
			if err := c.count(1, 1); err != nil {
				return nil, err
			}
			mapping = c.args[0]
		}
		text, err := c.braces(s, mapping, 0)
		return starlark.String(text), err
	})
}
