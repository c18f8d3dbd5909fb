package mako

import (
	"sync"

	"go.starlark.net/starlark"
)

// The most that one tree keeps of what was found in it.
const (
	maxFound      = 256
	maxFoundItems = 100_000 // of all results together; 16 bytes of a text count as an item
)

// treeResults keeps what paths gave in a tree, because a template asks the same of each of thousands of instances. A tree does not
// change once templates see it.
type treeResults struct {
	mu    sync.Mutex
	by    map[foundKey]*result
	items int
}

type foundKey struct {
	from *Element
	path string
}

// result is what a path gave: a value that cannot change, or the items of a list.
type result struct {
	value Value
	items []Value
	spent int // what it cost, which everybody pays that asks for it: limits do not depend on what others did before
}

// results are those of the tree of an element.
func results(from *Element) *treeResults {
	for from.parent != nil {
		from = from.parent
	}
	if f := from.found.Load(); f != nil {
		return f
	}
	from.found.CompareAndSwap(nil, &treeResults{by: map[foundKey]*result{}})
	return from.found.Load()
}

func (f *treeResults) get(key foundKey) *result {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by[key]
}

func (f *treeResults) put(key foundKey, r *result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := len(r.items)
	if text, ok := r.value.(starlark.String); ok {
		size = len(text) / 16
	}
	if len(f.by) >= maxFound || f.items+size > maxFoundItems || f.by[key] != nil {
		return
	}
	f.by[key] = r
	f.items += size
}

// evaluate is the value of an XPath expression, seen from an element.
func (r *run) evaluate(from *Element, path string) (Value, error) {
	all, key := results(from), foundKey{from, path}
	if known := all.get(key); known != nil {
		if err := r.payPath(path); err != nil {
			return nil, err
		}
		if err := r.pay(known.spent); err != nil {
			return nil, err
		}
		return known.copy(), nil
	}

	expr, err := r.compilePath(path)
	if err != nil {
		return nil, err
	}
	before := r.spent
	v, err := r.search(from, expr)
	if err != nil {
		return nil, err
	}
	made := &result{value: v, spent: r.spent - before}
	if l, ok := v.(*starlark.List); ok {
		made.value, made.items = nil, listItems(l)
	}
	all.put(key, made)
	return v, nil
}

// copy is the value; a list is a new one, because a template may change it.
func (r *result) copy() Value {
	if r.value != nil {
		return r.value
	}
	return starlark.NewList(append([]Value(nil), r.items...))
}

// pay counts what many small steps have cost together.
func (r *run) pay(n int) error {
	if n > r.limits.Memory-r.spent {
		return &limitError{"the template uses too much memory"}
	}
	r.spent += n
	return r.spend(0)
}
