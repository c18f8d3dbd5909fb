package mako

import (
	"slices"

	"go.starlark.net/starlark"
)

// kernelTry is a try statement: the body, the handlers as pairs of a function for the types and the handler, else, and
// finally. It returns how the statement was left.
func kernelTry(c *call) (Value, error) {
	left, err := c.tryHandlers()
	final := c.args[3]
	if final == starlark.None {
		return left, err
	}
	if err != nil {
		if _, catchable := asException(err); !catchable {
			return nil, err
		}
	}
	over, finalErr := c.invoke(final)
	if finalErr != nil {
		return nil, finalErr
	}
	if over != starlark.None { // the finally block left the function or the loop
		return over, nil
	}
	return left, err
}

func (c *call) tryHandlers() (Value, error) {
	left, err := c.invoke(c.args[0])
	if err == nil {
		if left != starlark.None || c.args[2] == starlark.None {
			return left, nil
		}
		return c.invoke(c.args[2])
	}
	e, catchable := asException(err)
	if !catchable {
		return nil, err
	}

	handlers, _ := c.args[1].(*starlark.List)
	for i := range handlers.Len() {
		pair, _ := handlers.Index(i).(starlark.Tuple)
		if pair[0] != starlark.None {
			types, typeErr := c.invoke(pair[0])
			if typeErr != nil {
				return nil, typeErr
			}
			if !e.matches(types) {
				continue
			}
		}
		c.run.caught = append(c.run.caught, e)
		left, err := c.invoke(pair[1], e)
		c.run.caught = c.run.caught[:len(c.run.caught)-1]
		return left, err
	}
	return nil, err
}

func kernelRaise(c *call) (Value, error) {
	if len(c.args) == 0 {
		if n := len(c.run.caught); n > 0 {
			return nil, c.run.caught[n-1]
		}
		return nil, raise("RuntimeError", "No active exception to reraise")
	}
	v := c.args[0]
	switch t := v.(type) {
	case *pyType:
		made, err := c.invoke(t)
		if err != nil {
			return nil, err
		}
		v = made
	case *class:
		made, err := c.invoke(t)
		if err != nil {
			return nil, err
		}
		v = made
	}

	if e, ok := v.(*exception); ok {
		return nil, e
	}
	return nil, raise("TypeError", "exceptions must derive from BaseException")
}

func kernelAssert(c *call) (Value, error) {
	if c.args[0].Truth() {
		return starlark.None, nil
	}
	e := &exception{kind: exceptions["AssertionError"]}
	if len(c.args) > 1 {
		message, err := c.invoke(c.args[1])
		if err != nil {
			return nil, err
		}
		e.args = starlark.Tuple{message}
	}
	return nil, e
}

// kernelClass makes a class of its name, bases and attributes.
func kernelClass(c *call) (Value, error) {
	made := &class{name: str(c.args[0])}
	given, err := c.items(c.args[1])
	if err != nil {
		return nil, err
	}
	var bases []*class
	for _, b := range given {
		switch b := b.(type) {
		case *class:
			bases = append(bases, b)
			if made.base == nil {
				made.base = b.base
			}
		case *pyType:
			if b.is(exceptions["BaseException"]) {
				made.base = b
			} else if b.name != "object" {
				return nil, raise("NotImplementedError", "classes derived from %s are not supported", b.name)
			}
		default:
			return nil, raise("TypeError", "bases must be types")
		}
	}
	made.attrs, _ = c.args[2].(*starlark.Dict)
	if made.order, err = c.run.lookupOrder(made, bases); err != nil {
		return nil, err
	}
	return made, nil
}

// lookupOrder is the order in which a class and its bases are searched. It is Python's: each base comes before what it is
// derived from, and the bases stay in their order.
func (r *run) lookupOrder(made *class, bases []*class) ([]*class, error) {
	lists := make([][]*class, 0, len(bases)+1)
	for _, b := range bases {
		lists = append(lists, b.order)
	}
	lists = append(lists, bases)

	order := []*class{made}
	for {
		lists = slices.DeleteFunc(lists, func(l []*class) bool { return len(l) == 0 })
		if len(lists) == 0 {
			return order, nil
		}
		at := slices.IndexFunc(lists, func(l []*class) bool {
			return !slices.ContainsFunc(lists, func(other []*class) bool { return slices.Contains(other[1:], l[0]) })
		})
		if at < 0 {
			return nil, raise("TypeError", "Cannot create a consistent method resolution order (MRO) for bases")
		}
		next := lists[at][0]
		if err := r.spendEach(len(lists), 64*len(lists)); err != nil {
			return nil, err
		}
		order = append(order, next)
		for i, l := range lists {
			if l[0] == next {
				lists[i] = l[1:]
			}
		}
	}
}

func kernelImportFrom(c *call) (Value, error) {
	m, err := c.run.module(str(c.args[0]))
	if err != nil {
		return nil, err
	}
	name := str(c.args[1])
	v, err := c.run.attribute(m, name)
	if err != nil {
		return nil, raise("ImportError", "cannot import name '%s' from '%s'", name, str(c.args[0]))
	}
	return v, nil
}
