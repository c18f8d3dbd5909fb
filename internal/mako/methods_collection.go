package mako

import (
	"slices"

	"go.starlark.net/starlark"
)

// The methods of lists.
var listMethods = map[string]func(c *call, l *starlark.List) (Value, error){
	"append": func(c *call, l *starlark.List) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		if err := c.run.spend(16); err != nil {
			return nil, err
		}
		return starlark.None, l.Append(c.args[0])
	},
	"extend": func(c *call, l *starlark.List) (Value, error) {
		if err := c.count(1, 1); err != nil {
			return nil, err
		}
		items, err := c.items(c.args[0])
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if err := l.Append(item); err != nil {
				return nil, err
			}
		}
		return starlark.None, nil
	},
	"insert": func(c *call, l *starlark.List) (Value, error) {
		if err := c.count(2, 2); err != nil {
			return nil, err
		}
		at, err := sliceIndex(c.args[0], l.Len())
		if err != nil {
			return nil, err
		}
		if at < 0 {
			at = max(at+l.Len(), 0)
		}
		items := slices.Insert(listItems(l), min(at, l.Len()), c.args[1])
		if err := c.run.spendEach(len(items), 16); err != nil {
			return nil, err
		}
		return starlark.None, replaceItems(l, items)
	},
	"pop": func(c *call, l *starlark.List) (Value, error) {
		if err := c.count(0, 1); err != nil {
			return nil, err
		}
		if l.Len() == 0 {
			return nil, raise("IndexError", "pop from empty list")
		}
		at := l.Len() - 1
		if len(c.args) == 1 {
			var err error
			if at, err = position(c.args[0], l.Len(), "pop"); err != nil {
				return nil, err
			}
		}
		items := listItems(l)
		popped := items[at]
		if err := c.run.spendEach(len(items), 16); err != nil {
			return nil, err
		}
		return popped, replaceItems(l, slices.Delete(items, at, at+1))
	},
	"remove": func(c *call, l *starlark.List) (Value, error) {
		at, err := indexOf(c, listItems(l))
		if err != nil {
			return nil, err
		}
		if at < 0 {
			return nil, raise("ValueError", "list.remove(x): x not in list")
		}
		return starlark.None, replaceItems(l, slices.Delete(listItems(l), at, at+1))
	},
	"index": func(c *call, l *starlark.List) (Value, error) {
		at, err := indexOf(c, listItems(l))
		if err == nil && at < 0 {
			err = raise("ValueError", "%s is not in list", repr(c.args[0]))
		}
		return starlark.MakeInt(at), err
	},
	"count": func(c *call, l *starlark.List) (Value, error) { return countOf(c, listItems(l)) },
	"sort": func(c *call, l *starlark.List) (Value, error) {
		items, err := c.sorted(listItems(l))
		if err != nil {
			return nil, err
		}
		return starlark.None, replaceItems(l, items)
	},
	"reverse": func(_ *call, l *starlark.List) (Value, error) {
		items := listItems(l)
		slices.Reverse(items)
		return starlark.None, replaceItems(l, items)
	},
	"clear": func(_ *call, l *starlark.List) (Value, error) { return starlark.None, l.Clear() },
	"copy":  func(c *call, l *starlark.List) (Value, error) { return c.run.list(listItems(l)) },
}

// The methods of tuples.
var tupleMethods = map[string]func(c *call, t starlark.Tuple) (Value, error){
	"index": func(c *call, t starlark.Tuple) (Value, error) {
		at, err := indexOf(c, t)
		if err == nil && at < 0 {
			err = raise("ValueError", "tuple.index(x): x not in tuple")
		}
		return starlark.MakeInt(at), err
	},
	"count": func(c *call, t starlark.Tuple) (Value, error) { return countOf(c, t) },
}

func indexOf(c *call, items []Value) (int, error) {
	if err := c.count(1, 3); err != nil {
		return 0, err
	}
	if err := c.run.spend(len(items)); err != nil {
		return 0, err
	}
	for i, item := range items {
		if same, err := c.run.equal(item, c.args[0], 1); err != nil || same {
			return i, err
		}
	}
	return -1, nil
}

func countOf(c *call, items []Value) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	n := 0
	for _, item := range items {
		same, err := c.run.equal(item, c.args[0], 1)
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return starlark.MakeInt(n), c.run.spend(len(items))
}

// sorted sorts items by the arguments key and reverse.
func (c *call) sorted(items []Value) ([]Value, error) {
	if err := c.run.spendEach(len(items), 64); err != nil {
		return nil, err
	}
	keys := items
	if key := c.kw["key"]; key != nil && key != starlark.None {
		keys = make([]Value, len(items))
		for i, item := range items {
			k, err := c.invoke(key, item)
			if err != nil {
				return nil, err
			}
			keys[i] = k
		}
	}

	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	reverse := c.flag(-1, "reverse", false)
	if reverse { // before and after, so that equal items stay in their order
		slices.Reverse(order)
	}
	fault := sortAs(order, func(i, j int) (int, error) { return c.run.order("<", keys[i], keys[j], 0) })
	if reverse {
		slices.Reverse(order)
	}
	out := make([]Value, len(items))
	for i, at := range order {
		out[i] = items[at]
	}
	return out, fault
}
