package mako

import (
	"go.starlark.net/starlark"
)

// view is what items, keys and values of a dict give. It shows what the dict has now, also after a change.
type view struct {
	kind string // dict_items, dict_keys, dict_values
	of   *starlark.Dict
}

func (v *view) String() string       { return v.kind }
func (v *view) Type() string         { return v.kind }
func (v *view) Freeze()              {}
func (v *view) Truth() starlark.Bool { return v.of.Len() > 0 }

// Len is the number of entries of the dict.
func (v *view) Len() int { return v.of.Len() }

// Iterate goes through what the dict has at the beginning.
func (v *view) Iterate() starlark.Iterator { return starlark.NewList(v.items()).Iterate() }

// Hash is an error, but not of values: those are equal to themselves only.
func (v *view) Hash() (uint32, error) {
	if v.kind == "dict_values" {
		return 9, nil
	}
	return 0, raise("TypeError", "unhashable type: '%s'", v.kind)
}

func (v *view) items() []Value {
	switch v.kind {
	case "dict_keys":
		return dictColumn(v.of, 0)
	case "dict_values":
		return dictColumn(v.of, 1)
	}
	pairs := v.of.Items()
	items := make([]Value, len(pairs))
	for i, kv := range pairs {
		items[i] = kv
	}
	return items
}

// isSetView reports whether a value is the keys or the items of a dict: they are compared as sets.
func isSetView(v Value) bool {
	x, ok := v.(*view)
	return ok && x.kind != "dict_values"
}

// viewAmong reports whether two values are compared as sets and one of them is a view.
func viewAmong(a, b Value) bool {
	_, x := a.(*starlark.Set)
	_, y := b.(*starlark.Set)
	return isSetView(a) && (y || isSetView(b)) || x && isSetView(b)
}

// hasAll reports whether every item of a is in b. Both are like sets.
func (r *run) hasAll(b, a Value) (bool, error) {
	items, err := r.items(a)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		if found, err := r.contains(b, item); err != nil || !found {
			return false, err
		}
	}
	return true, nil
}

// viewHas is "in" for the keys or the items of a dict.
func (r *run) viewHas(in *view, v Value) (bool, error) {
	if in.kind == "dict_keys" {
		_, found, err := r.get(in.of, v)
		return found, err
	}
	pair, ok := v.(starlark.Tuple)
	if !ok || len(pair) != 2 {
		return false, nil
	}
	value, found, err := r.get(in.of, pair[0])
	if err != nil || !found {
		return false, err
	}
	return r.equal(value, pair[1], 1)
}

// orderViews is the order of two values that are like sets: 2 if neither has all of the other. As in Python, the lengths
// decide whether the items are looked at: items that cannot be in a set are an error only then.
func (r *run) orderViews(op string, a, b Value) (int, error) {
	small, large := a, b
	if op[0] == '>' {
		small, large = b, a
	}
	n, m := starlark.Len(small), starlark.Len(large)
	if n > m || n == m && len(op) == 1 {
		return 2, nil
	}
	inside, err := r.hasAll(large, small)
	switch {
	case err != nil || !inside:
		return 2, err
	case n == m:
		return 0, nil
	case op[0] == '>':
		return 1, nil
	}
	return -1, nil
}

// viewOperation is an operator of which an operand is the keys or the items of a dict: the other one may be anything that
// has items. The result is a set.
func (r *run) viewOperation(op string, a, b Value) (Value, error) {
	if op == "&" {
		return r.intersection(a, b)
	}
	x, err := r.setOf(a)
	if err != nil {
		return nil, err
	}
	y, err := r.setOf(b)
	if err != nil {
		return nil, err
	}
	return r.setOperation(op, x, y)
}

// intersection has the items that are in both operands. As in Python, the items of the larger view are only looked up: they
// need not be what a set can have.
func (r *run) intersection(a, b Value) (Value, error) {
	if !isSetView(a) || isSetView(b) && starlark.Len(b) > starlark.Len(a) {
		a, b = b, a
	}
	if s, ok := b.(*starlark.Set); ok && starlark.Len(a) <= s.Len() {
		a, b = b, a
	}
	items, err := r.items(b)
	if err != nil {
		return nil, err
	}
	out := starlark.NewSet(0)
	for _, item := range items {
		found, err := r.contains(a, item)
		if err == nil && found {
			err = r.insert(out, item)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// setOf is a new set with the items of a value.
func (r *run) setOf(v Value) (*starlark.Set, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	out := starlark.NewSet(len(items))
	for _, item := range items {
		if err := r.insert(out, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// The methods of the keys and the items of a dict.
var viewMethods = map[string]func(c *call, v *view) (Value, error){
	"isdisjoint": func(c *call, v *view) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		items, err := c.items(c.args[0])
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if found, err := c.run.contains(v, item); err != nil || found {
				return starlark.False, err
			}
		}
		return starlark.True, nil
	},
}
