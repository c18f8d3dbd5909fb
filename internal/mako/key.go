package mako

import (
	"go.starlark.net/starlark"
)

// maxKey limits how many values a key has in it: a tuple of tuples of the same tuples is short to write and long to hash.
const maxKey = 10_000

// key checks that a value can be a key of a dict or an item of a set.
func (r *run) key(v Value) error {
	nodes := 0
	bad := unhashable(v, &nodes)
	if nodes > maxKey {
		return &limitError{"a key of the template is too large"}
	}
	if bad != nil {
		return raise("TypeError", "unhashable type: '%s'", typeName(bad))
	}
	return r.spend(nodes)
}

// unhashable finds a value in a key that cannot be hashed, and counts the values on the way.
func unhashable(v Value, nodes *int) Value {
	if *nodes++; *nodes > maxKey {
		return nil
	}
	t, ok := v.(starlark.Tuple)
	if !ok {
		if _, err := v.Hash(); err != nil {
			return v
		}
		return nil
	}
	for _, item := range t {
		if bad := unhashable(item, nodes); bad != nil || *nodes > maxKey {
			return bad
		}
	}
	return nil
}

// dictKey is the key under which a dict has a value. For Python True and 1 are the same key, for Starlark they are two.
func dictKey(d *starlark.Dict, v Value) Value {
	return keyAmong(v, func(v Value) bool { _, found, _ := d.Get(v); return found })
}

// setKey is the item of a set that is equal to a value.
func setKey(s *starlark.Set, v Value) Value {
	return keyAmong(v, func(v Value) bool { found, _ := s.Has(v); return found })
}

func keyAmong(v Value, has func(Value) bool) Value {
	var other Value
	switch n := v.(type) {
	case starlark.Bool:
		other, _ = asNumber(n)
	case starlark.Int, starlark.Float:
		for _, b := range []starlark.Bool{false, true} {
			number, _ := asNumber(b)
			if same, _ := starlark.Equal(v, number); same {
				other = b
			}
		}
	}
	if other == nil || has(v) || !has(other) {
		return v
	}
	return other
}

// get is the value of a key in a dict.
func (r *run) get(d *starlark.Dict, key Value) (Value, bool, error) {
	if err := r.key(key); err != nil {
		return nil, false, err
	}
	return d.Get(dictKey(d, key))
}

// has reports whether a set has an item.
func (r *run) has(s *starlark.Set, v Value) (bool, error) {
	if err := r.key(v); err != nil {
		return false, err
	}
	return s.Has(setKey(s, v))
}

// insert adds an item to a set.
func (r *run) insert(s *starlark.Set, v Value) error {
	if err := r.key(v); err != nil {
		return err
	}
	if err := r.spend(32); err != nil {
		return err
	}
	return s.Insert(setKey(s, v))
}
