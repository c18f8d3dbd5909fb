package mako

import (
	"go.starlark.net/starlark"
)

// The methods of dicts.
var dictMethods = map[string]func(c *call, d *starlark.Dict) (Value, error){
	"get": func(c *call, d *starlark.Dict) (Value, error) {
		if err := c.count(1, 2); err != nil {
			return nil, err
		}
		v, found, err := c.run.get(d, c.args[0])
		if err != nil || found {
			return v, err
		}
		return c.otherwise(1), nil
	},
	"keys":   func(c *call, d *starlark.Dict) (Value, error) { return c.view("dict_keys", d) },
	"values": func(c *call, d *starlark.Dict) (Value, error) { return c.view("dict_values", d) },
	"items":  func(c *call, d *starlark.Dict) (Value, error) { return c.view("dict_items", d) },
	"pop": func(c *call, d *starlark.Dict) (Value, error) {
		if err := c.count(1, 2); err != nil {
			return nil, err
		}
		if err := c.run.key(c.args[0]); err != nil {
			return nil, err
		}
		v, found, err := d.Delete(dictKey(d, c.args[0]))
		switch {
		case err != nil:
			return nil, err
		case found:
			return v, nil
		case len(c.args) == 2:
			return c.args[1], nil
		}
		return nil, keyError(c.args[0])
	},
	"setdefault": func(c *call, d *starlark.Dict) (Value, error) {
		if err := c.count(1, 2); err != nil {
			return nil, err
		}
		v, found, err := c.run.get(d, c.args[0])
		if err != nil || found {
			return v, err
		}
		return c.otherwise(1), c.run.setIndex(d, c.args[0], c.otherwise(1))
	},
	"update": func(c *call, d *starlark.Dict) (Value, error) { return starlark.None, c.fill(d) },
	"clear":  func(_ *call, d *starlark.Dict) (Value, error) { return starlark.None, d.Clear() },
	"copy":   func(c *call, d *starlark.Dict) (Value, error) { return c.run.merged(d, starlark.NewDict(0)) },
}

// otherwise is an argument, or None.
func (c *call) otherwise(i int) Value {
	if i < len(c.args) {
		return c.args[i]
	}
	return starlark.None
}

func (c *call) view(kind string, d *starlark.Dict) (Value, error) {
	return &view{kind, d}, c.run.spendEach(d.Len(), 32)
}

// fill sets the keys of a dict from a mapping or pairs, and from keyword arguments.
func (c *call) fill(d *starlark.Dict) error {
	if err := c.count(0, 1); err != nil {
		return err
	}
	if len(c.args) == 1 {
		if err := c.fillFrom(d, c.args[0]); err != nil {
			return err
		}
	}
	for _, name := range c.order {
		if err := c.run.setIndex(d, starlark.String(name), c.kw[name]); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) fillFrom(d *starlark.Dict, from Value) error {
	switch from := from.(type) {
	case *starlark.Dict:
		for _, kv := range from.Items() {
			if err := c.run.setIndex(d, kv[0], kv[1]); err != nil {
				return err
			}
		}
		return nil
	case *attributes:
		for _, a := range from.of.Attributes {
			if err := c.run.setIndex(d, starlark.String(a.Name), starlark.String(a.Value)); err != nil {
				return err
			}
		}
		return nil
	}

	pairs, err := c.items(from)
	if err != nil {
		return err
	}
	for i, pair := range pairs {
		kv, err := c.items(pair)
		if _, catchable := err.(*exception); catchable {
			return raise("TypeError", "cannot convert dictionary update sequence element #%d to a sequence", i)
		}
		if err != nil {
			return err
		}
		if len(kv) != 2 {
			return raise("ValueError", "dictionary update sequence element #%d has length %d; 2 is required", i, len(kv))
		}
		if err := c.run.setIndex(d, kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

// The methods of sets.
var setMethods = map[string]func(c *call, s *starlark.Set) (Value, error){
	"add": func(c *call, s *starlark.Set) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		return starlark.None, c.run.insert(s, c.args[0])
	},
	"discard": func(c *call, s *starlark.Set) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		if err := c.run.key(c.args[0]); err != nil {
			return nil, err
		}
		_, err := s.Delete(setKey(s, c.args[0]))
		return starlark.None, err
	},
	"union":                setWith("|"),
	"intersection":         setWith("&"),
	"difference":           setWith("-"),
	"symmetric_difference": setWith("^"),
	"issubset": func(c *call, s *starlark.Set) (Value, error) {
		other, err := c.set(0)
		if err != nil {
			return nil, err
		}
		return starlark.Bool(subset(s, other)), nil
	},
	"issuperset": func(c *call, s *starlark.Set) (Value, error) {
		other, err := c.set(0)
		if err != nil {
			return nil, err
		}
		return starlark.Bool(subset(other, s)), nil
	},
	"update": func(c *call, s *starlark.Set) (Value, error) {
		other, err := c.set(0)
		if err != nil {
			return nil, err
		}
		for _, v := range setItems(other) {
			if err := s.Insert(setKey(s, v)); err != nil {
				return nil, err
			}
		}
		return starlark.None, nil
	},
}

func setWith(op string) func(c *call, s *starlark.Set) (Value, error) {
	return func(c *call, s *starlark.Set) (Value, error) {
		other, err := c.set(0)
		if err != nil {
			return nil, err
		}
		return c.run.setOperation(op, s, other)
	}
}

// set makes a set of the items of an argument.
func (c *call) set(i int) (*starlark.Set, error) {
	if i >= len(c.args) {
		return starlark.NewSet(0), nil
	}
	return c.run.setOf(c.args[i])
}

// dictColumn are the keys (0) or the values (1) of a dict.
func dictColumn(d *starlark.Dict, column int) []Value {
	pairs := d.Items()
	all := make([]Value, len(pairs))
	for i, kv := range pairs {
		all[i] = kv[column]
	}
	return all
}
