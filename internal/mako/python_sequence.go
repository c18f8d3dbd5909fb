package mako

import (
	"slices"

	"go.starlark.net/starlark"
)

func pySorted(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	items, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	sorted, err := c.sorted(items)
	return starlark.NewList(sorted), err
}

func pyReversed(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	if _, ok := c.args[0].(starlark.Iterable); !ok && typeName(c.args[0]) != "str" {
		return nil, raise("TypeError", "'%s' object is not reversible", typeName(c.args[0]))
	}
	items, err := c.items(c.args[0])
	slices.Reverse(items)
	return starlark.NewList(items), err
}

func pyEnumerate(c *call) (Value, error) {
	if err := c.count(1, 2); err != nil {
		return nil, err
	}
	start, err := c.number(1, "start", 0)
	if err != nil {
		return nil, err
	}
	items, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		items[i] = starlark.Tuple{starlark.MakeInt(start + i), item}
	}
	return c.run.list(items)
}

func pyZip(c *call) (Value, error) {
	rows, err := c.rows(c.args)
	if err != nil {
		return nil, err
	}
	out := make([]Value, len(rows))
	for i, row := range rows {
		out[i] = row
	}
	return c.run.list(out)
}

// rows takes one item of each argument together, as long as all have one.
func (c *call) rows(all starlark.Tuple) ([]starlark.Tuple, error) {
	if len(all) == 0 {
		return nil, nil
	}
	columns := make([][]Value, len(all))
	n := -1
	for i, a := range all {
		items, err := c.items(a)
		if err != nil {
			return nil, err
		}
		columns[i] = items
		if n < 0 || len(items) < n {
			n = len(items)
		}
	}
	if err := c.run.spendEach(n, 16*len(all)+16); err != nil {
		return nil, err
	}
	rows := make([]starlark.Tuple, n)
	for i := range rows {
		rows[i] = make(starlark.Tuple, len(all))
		for j := range columns {
			rows[i][j] = columns[j][i]
		}
	}
	return rows, nil
}

func pyMap(c *call) (Value, error) {
	if len(c.args) < 2 {
		return nil, raise("TypeError", "map() must have at least two arguments.")
	}
	rows, err := c.rows(c.args[1:])
	if err != nil {
		return nil, err
	}
	out := make([]Value, len(rows))
	for i, row := range rows {
		if out[i], err = c.invoke(c.args[0], row...); err != nil {
			return nil, err
		}
	}
	return starlark.NewList(out), nil
}

func pyFilter(c *call) (Value, error) {
	if err := c.count(2, 2); err != nil {
		return nil, err
	}
	items, err := c.items(c.args[1])
	if err != nil {
		return nil, err
	}
	var out []Value
	for _, item := range items {
		keep := item
		if c.args[0] != starlark.None {
			if keep, err = c.invoke(c.args[0], item); err != nil {
				return nil, err
			}
		}
		if keep.Truth() {
			out = append(out, item)
		}
	}
	return starlark.NewList(out), nil
}

// pyAny is any, and with false all.
func pyAny(c *call, want bool) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	items, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	found := slices.ContainsFunc(items, func(v Value) bool { return bool(v.Truth()) == want })
	return starlark.Bool(found == want), nil
}
