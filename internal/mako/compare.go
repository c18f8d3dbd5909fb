package mako

import (
	"math"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxDeep limits how deep a comparison goes: a list may contain itself.
const maxDeep = 100

// compare is a comparison operator.
func (r *run) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		same, err := r.equal(a, b, 0)
		return !same, err
	case "in":
		return r.contains(b, a)
	case "not in":
		found, err := r.contains(b, a)
		return !found, err
	case "is":
		return identical(a, b), nil
	case "is not":
		return !identical(a, b), nil
	}

	n, err := r.order(op, a, b, 0)
	if err != nil {
		return false, err
	}
	switch op {
	case "<":
		return n < 0, nil
	case "<=":
		return n <= 0, nil
	case ">":
		return n == 1, nil
	}
	return n == 0 || n == 1, nil
}

// identical is Python's "is". Equal constants are the same, as they mostly are in Python.
func identical(a, b Value) bool {
	if typeName(a) != typeName(b) {
		return false
	}
	switch x := a.(type) {
	case starlark.Int:
		y, ok := b.(starlark.Int)
		return ok && x.BigInt().Cmp(y.BigInt()) == 0
	case starlark.Tuple:
		y, ok := b.(starlark.Tuple)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case *element:
		y, ok := b.(*element)
		return ok && x.of == y.of
	}
	return a == b
}

// equal is ==.
func (r *run) equal(a, b Value, depth int) (bool, error) {
	if err := r.spend(16); err != nil {
		return false, err
	}
	if depth > maxDeep {
		return false, raise("RecursionError", "maximum recursion depth exceeded in comparison")
	}
	if x, ok := asNumber(a); ok {
		y, ok := asNumber(b)
		if !ok || depth == 0 && (isNaN(x) || isNaN(y)) { // in a list, it is taken for the same object
			return false, nil
		}
		return starlark.Equal(x, y)
	}
	if viewAmong(a, b) {
		if starlark.Len(a) != starlark.Len(b) {
			return false, nil
		}
		return r.hasAll(b, a)
	}

	switch x := a.(type) {
	case starlark.String:
		y, ok := b.(starlark.String)
		return ok && x == y, nil
	case *starlark.List:
		y, ok := b.(*starlark.List)
		return r.sameItems(ok, func() ([]Value, []Value) { return listItems(x), listItems(y) }, depth)
	case starlark.Tuple:
		y, ok := b.(starlark.Tuple)
		return r.sameItems(ok, func() ([]Value, []Value) { return x, y }, depth)
	case *starlark.Dict:
		y, ok := b.(*starlark.Dict)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		for _, kv := range x.Items() {
			other, found, err := y.Get(dictKey(y, kv[0]))
			if err != nil || !found {
				return false, err
			}
			if same, err := r.equal(kv[1], other, depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case *starlark.Set:
		y, ok := b.(*starlark.Set)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		return subset(x, y), nil
	case *element:
		return identical(a, b), nil
	case *object:
		y, ok := b.(*object)
		return ok && x.class == y.class && (x == y || x.data != nil && x.text != "" && x.text == y.text), nil
	}
	return a == b, nil
}

func (r *run) sameItems(ok bool, items func() (x, y []Value), depth int) (bool, error) {
	if !ok {
		return false, nil
	}
	x, y := items()
	if len(x) != len(y) {
		return false, nil
	}
	if err := r.spend(len(x)); err != nil {
		return false, err
	}
	for i := range x {
		if same, err := r.equal(x[i], y[i], depth+1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func subset(x, y *starlark.Set) bool {
	for _, v := range setItems(x) {
		if found, err := y.Has(setKey(y, v)); err != nil || !found {
			return false
		}
	}
	return true
}

// order is -1, 0 or 1; 2 if two values have no order, as sets may, and what is not a number.
func (r *run) order(op string, a, b Value, depth int) (int, error) {
	if err := r.spend(16); err != nil {
		return 0, err
	}
	if depth > maxDeep {
		return 0, raise("RecursionError", "maximum recursion depth exceeded in comparison")
	}
	x, xok := asNumber(a)
	y, yok := asNumber(b)
	if xok && yok {
		return orderNumbers(x, y)
	}
	if viewAmong(a, b) {
		return r.orderViews(op, a, b)
	}

	switch x := a.(type) {
	case starlark.String:
		if y, ok := b.(starlark.String); ok {
			return strings.Compare(string(x), string(y)), nil
		}
	case *starlark.List:
		if y, ok := b.(*starlark.List); ok {
			return r.orderItems(op, listItems(x), listItems(y), depth)
		}
	case starlark.Tuple:
		if y, ok := b.(starlark.Tuple); ok {
			return r.orderItems(op, x, y, depth)
		}
	case *starlark.Set:
		if y, ok := b.(*starlark.Set); ok {
			return orderSets(x, y), nil
		}
	case *object:
		if y, ok := b.(*object); ok && x.class == y.class && x.data != nil {
			return strings.Compare(x.text, y.text), nil
		}
	}
	return 0, raise("TypeError", "'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
}

func orderNumbers(x, y Value) (int, error) {
	if isNaN(x) || isNaN(y) {
		return 2, nil
	}
	less, err := starlark.Compare(syntax.LT, x, y)
	if err != nil {
		return 0, err
	}
	same, err := starlark.Equal(x, y)
	switch {
	case err != nil:
		return 0, err
	case less:
		return -1, nil
	case same:
		return 0, nil
	}
	return 1, nil
}

func isNaN(v Value) bool {
	f, ok := v.(starlark.Float)
	return ok && math.IsNaN(float64(f))
}

func compareLengths(n, m int) int {
	switch {
	case n < m:
		return -1
	case n > m:
		return 1
	}
	return 0
}

func (r *run) orderItems(op string, x, y []Value, depth int) (int, error) {
	if err := r.spend(min(len(x), len(y))); err != nil {
		return 0, err
	}
	for i := range min(len(x), len(y)) {
		same, err := r.equal(x[i], y[i], depth+1)
		if err != nil {
			return 0, err
		}
		if !same {
			return r.order(op, x[i], y[i], depth+1)
		}
	}
	return compareLengths(len(x), len(y)), nil
}

func orderSets(x, y *starlark.Set) int {
	under, over := subset(x, y), subset(y, x)
	switch {
	case under && over:
		return 0
	case under:
		return -1
	case over:
		return 1
	}
	return 2
}

// contains is "in".
func (r *run) contains(in, v Value) (bool, error) {
	switch in := in.(type) {
	case starlark.String:
		s, ok := v.(starlark.String)
		if !ok {
			return false, raise("TypeError", "'in <string>' requires string as left operand, not %s", typeName(v))
		}
		return strings.Contains(string(in), string(s)), nil
	case *starlark.Dict:
		_, found, err := r.get(in, v)
		return found, err
	case *starlark.Set:
		return r.has(in, v)
	case *view:
		if isSetView(in) {
			return r.viewHas(in, v)
		}
	case *attributes:
		key, ok := v.(starlark.String)
		_, found := in.get(string(key))
		return ok && found, nil
	case *span:
		i, err := asInt(v)
		return err == nil && in.has(i), nil
	}

	if _, ok := in.(starlark.Iterable); !ok {
		return false, raise("TypeError", "argument of type '%s' is not iterable", typeName(in))
	}
	items, err := r.items(in)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		if same, err := r.equal(item, v, 1); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// has reports whether a number is in a range.
func (s *span) has(i int) bool {
	if s.step > 0 {
		return i >= s.start && i < s.stop && (i-s.start)%s.step == 0
	}
	return i <= s.start && i > s.stop && (s.start-i)%-s.step == 0
}

// setOperation is an operator on two sets or two dicts; nil if they are not.
func (r *run) setOperation(op string, a, b Value) (Value, error) {
	if x, ok := a.(*starlark.Dict); ok && op == "|" {
		if y, ok := b.(*starlark.Dict); ok {
			return r.merged(x, y)
		}
	}
	x, ok := a.(*starlark.Set)
	if !ok {
		return nil, nil
	}
	y, ok := b.(*starlark.Set)
	if !ok {
		return nil, nil
	}

	out := starlark.NewSet(x.Len())
	insert := func(from, other *starlark.Set, want bool) error {
		for _, v := range setItems(from) {
			if has, err := other.Has(setKey(other, v)); err != nil {
				return err
			} else if has == want {
				if err := out.Insert(setKey(out, v)); err != nil {
					return err
				}
			}
		}
		return r.spendEach(from.Len(), 16)
	}
	var err error
	switch op {
	case "-":
		err = insert(x, y, false)
	case "&":
		err = insert(x, y, true)
	case "^":
		if err = insert(x, y, false); err == nil {
			err = insert(y, x, false)
		}
	case "|":
		if err = insert(x, x, true); err == nil {
			err = insert(y, x, false)
		}
	}
	return out, err
}

func (r *run) merged(x, y *starlark.Dict) (Value, error) {
	out := starlark.NewDict(x.Len() + y.Len())
	for _, d := range []*starlark.Dict{x, y} {
		if err := r.spendEach(d.Len(), 32); err != nil {
			return nil, err
		}
		for _, kv := range d.Items() {
			if err := out.SetKey(dictKey(out, kv[0]), kv[1]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
