package mako

import (
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// index is v[i].
func (r *run) index(v, i Value) (Value, error) {
	switch x := v.(type) {
	case starlark.String:
		n, ok := i.(starlark.Int)
		if !ok {
			return nil, raise("TypeError", "string indices must be integers, not '%s'", typeName(i))
		}
		return r.textAt(string(x), n)
	case *starlark.List:
		at, err := position(i, x.Len(), "list")
		if err != nil {
			return nil, err
		}
		return x.Index(at), nil
	case starlark.Tuple:
		at, err := position(i, len(x), "tuple")
		if err != nil {
			return nil, err
		}
		return x[at], nil
	case *span:
		at, err := position(i, x.Len(), "range object")
		if err != nil {
			return nil, err
		}
		return x.Index(at), nil
	case *starlark.Dict:
		item, found, err := r.get(x, i)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, keyError(i)
		}
		return item, nil
	case *attributes:
		key, _ := i.(starlark.String)
		item, found := x.get(string(key))
		if !found {
			return nil, keyError(i)
		}
		return item, nil
	case *element:
		at, err := position(i, x.Len(), "list")
		if err != nil {
			return nil, err
		}
		return x.Index(at), nil
	case *thisValue:
		key := str(i)
		return nil, raise("TypeError", "use `this.attrib['%s']` instead of `this['%s']`", key, key)
	case *object:
		if get, ok := x.attr("__getitem__"); ok {
			return starlark.Call(r.thread, get, starlark.Tuple{i}, nil)
		}
	}
	return nil, raise("TypeError", "'%s' object is not subscriptable", typeName(v))
}

// position is an index into a sequence of n, counted from the end if it is negative.
func position(i Value, n int, what string) (int, error) {
	if b, ok := i.(starlark.Bool); ok {
		i, _ = asNumber(b)
	}
	at, ok := i.(starlark.Int)
	if !ok {
		return 0, raise("TypeError", "%s indices must be integers or slices, not %s", what, typeName(i))
	}
	k, fits := at.Int64()
	if !fits {
		return 0, raise("IndexError", "cannot fit 'int' into an index-sized integer")
	}
	if k < 0 {
		k += int64(n)
	}
	if k < 0 || k >= int64(n) {
		return 0, raise("IndexError", "%s index out of range", what)
	}
	return int(k), nil
}

func (r *run) textAt(s string, i starlark.Int) (Value, error) {
	n := utf8.RuneCountInString(s)
	at, err := position(i, n, "string")
	if err != nil {
		return nil, err
	}
	if n == len(s) {
		return starlark.String(s[at : at+1]), nil
	}
	return starlark.String(firstRunes(s[len(firstRunes(s, at)):], 1)), r.spend(len(s))
}

// slice is v[start:stop:step].
func (r *run) slice(v, start, stop, step Value) (Value, error) {
	n := 0
	var runes []rune
	switch x := v.(type) {
	case starlark.String:
		if err := r.spendEach(len(x), 4); err != nil {
			return nil, err
		}
		runes = []rune(string(x))
		n = len(runes)
	case *starlark.List:
		n = x.Len()
	case starlark.Tuple:
		n = len(x)
	case *span:
		n = x.Len()
	case *element:
		n = x.Len()
	default:
		return nil, notSliced(v)
	}

	from, count, by, err := sliceRange(n, start, stop, step)
	if err != nil {
		return nil, err
	}
	if err := r.spendEach(count, 16); err != nil {
		return nil, err
	}
	if s, ok := v.(*span); ok {
		first := s.start + from*s.step
		return &span{first, first + count*by*s.step, by * s.step}, nil
	}
	if runes != nil || typeName(v) == "str" {
		out := make([]rune, count)
		for i := range out {
			out[i] = runes[from+i*by]
		}
		return starlark.String(string(out)), nil
	}

	sequence := v.(starlark.Indexable)
	out := make([]Value, count)
	for i := range out {
		out[i] = sequence.Index(from + i*by)
	}
	if _, ok := v.(starlark.Tuple); ok {
		return starlark.Tuple(out), nil
	}
	return starlark.NewList(out), nil
}

// notSliced is the fault of a slice of something that has none. For a dict a slice is a key, for a match the name of a group.
func notSliced(v Value) error {
	switch x := v.(type) {
	case *starlark.Dict:
		return raise("TypeError", "unhashable type: 'slice'")
	case *object:
		if _, ok := x.attr("__getitem__"); ok {
			return raise("IndexError", "no such group")
		}
	}
	return raise("TypeError", "'%s' object is not subscriptable", typeName(v))
}

// sliceRange is where a slice begins, how many items it has, and the step.
func sliceRange(n int, start, stop, step Value) (from, count, by int, err error) {
	by = 1
	if step != starlark.None {
		if by, err = sliceIndex(step, n); err != nil {
			return 0, 0, 0, err
		}
		if by == 0 {
			return 0, 0, 0, raise("ValueError", "slice step cannot be zero")
		}
	}

	low, high := 0, n
	from, to := 0, n
	if by < 0 {
		low, high = -1, n-1
		from, to = n-1, -1
	}
	for _, one := range []struct {
		v  Value
		to *int
	}{{start, &from}, {stop, &to}} {
		if one.v == starlark.None {
			continue
		}
		i, err := sliceIndex(one.v, n)
		if err != nil {
			return 0, 0, 0, err
		}
		if i < 0 {
			i += n
		}
		*one.to = min(max(i, low), high)
	}
	return from, (&span{from, to, by}).Len(), by, nil
}

// sliceIndex is a number of a slice, limited so that it fits.
func sliceIndex(v Value, n int) (int, error) {
	number, ok := asNumber(v)
	i, isInt := number.(starlark.Int)
	if !ok || !isInt {
		return 0, raise("TypeError", "slice indices must be integers or None or have an __index__ method")
	}
	k, fits := i.Int64()
	if limit := int64(n) + 1; !fits || k > limit || k < -limit {
		if i.Sign() < 0 {
			return -n - 1, nil
		}
		return n + 1, nil
	}
	return int(k), nil
}

// setIndex is v[i] = item.
func (r *run) setIndex(v, i, item Value) error {
	switch x := v.(type) {
	case *starlark.List:
		at, err := position(i, x.Len(), "list assignment")
		if err != nil {
			return err
		}
		return x.SetIndex(at, item)
	case *starlark.Dict:
		if err := r.spend(64); err != nil {
			return err
		}
		if err := r.key(i); err != nil {
			return err
		}
		return x.SetKey(dictKey(x, i), item)
	}
	return raise("TypeError", "'%s' object does not support item assignment", typeName(v))
}

// deleteIndex is del v[i].
func (r *run) deleteIndex(v, i Value) error {
	switch x := v.(type) {
	case *starlark.List:
		at, err := position(i, x.Len(), "list assignment")
		if err != nil {
			return err
		}
		rest := listItems(x)
		return replaceItems(x, append(rest[:at:at], rest[at+1:]...))
	case *starlark.Dict:
		if err := r.key(i); err != nil {
			return err
		}
		_, found, err := x.Delete(dictKey(x, i))
		if err == nil && !found {
			return keyError(i)
		}
		return err
	}
	not := "does not"
	switch v.(type) {
	case starlark.String, starlark.Tuple, *starlark.Set, *span, *view: // CPython has another sentence for sequences
		if _, err := asInt(i); err == nil {
			not = "doesn't"
		}
	}
	return raise("TypeError", "'%s' object %s support item deletion", typeName(v), not)
}

// replaceItems gives a list other items.
func replaceItems(l *starlark.List, items []Value) error {
	if err := l.Clear(); err != nil {
		return err
	}
	for _, item := range items {
		if err := l.Append(item); err != nil {
			return err
		}
	}
	return nil
}
