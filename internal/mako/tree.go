package mako

import (
	"strings"
	"sync/atomic"

	"github.com/antchfx/xpath"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Element is an element of the tree cc: the business with its sets, modules and hosts.
type Element struct {
	Tag        string
	Attributes []Attribute
	Children   []*Element

	parent *Element
	at     int                         // position among the children of the parent
	found  atomic.Pointer[treeResults] // of the first element: what paths gave in its tree
}

// Attribute is an attribute of an element.
type Attribute struct{ Name, Value string }

// Add appends a child.
func (e *Element) Add(child *Element) {
	child.parent, child.at = e, len(e.Children)
	e.Children = append(e.Children, child)
}

// Get is the value of an attribute.
func (e *Element) Get(name string) (string, bool) {
	for _, a := range e.Attributes {
		if a.Name == name {
			return a.Value, true
		}
	}
	return "", false
}

// element is an element as a value: what lxml gives in the original.
type element struct{ of *Element }

func (e *element) String() string       { return "<Element " + e.of.Tag + ">" }
func (e *element) Type() string         { return "lxml.etree._Element" }
func (e *element) Freeze()              {}
func (e *element) Truth() starlark.Bool { return len(e.of.Children) > 0 }
func (e *element) Hash() (uint32, error) {
	h, err := starlark.String(e.of.Tag).Hash()
	return h + 31*uint32(e.of.at), err // #nosec G115 -- any number will do
}

// CompareSameType makes two values of one element equal, also as keys.
func (e *element) CompareSameType(op syntax.Token, other Value, _ int) (bool, error) {
	o, ok := other.(*element)
	switch op {
	case syntax.EQL:
		return ok && e.of == o.of, nil
	case syntax.NEQ:
		return !ok || e.of != o.of, nil
	}
	return false, raise("TypeError", "'%s' not supported between instances of '%s' and '%s'", op, typeName(e), typeName(other))
}

// Len is the number of children.
func (e *element) Len() int { return len(e.of.Children) }

// Index is a child.
func (e *element) Index(i int) Value { return &element{e.of.Children[i]} }

// Iterate goes through the children.
func (e *element) Iterate() starlark.Iterator { return elements(e.of.Children).Iterate() }

func elements(all []*Element) *starlark.List {
	items := make([]Value, len(all))
	for i, e := range all {
		items[i] = &element{e}
	}
	return starlark.NewList(items)
}

func (e *element) attribute(name string) (Value, bool) {
	switch name {
	case "tag":
		return starlark.String(e.of.Tag), true
	case "attrib":
		return &attributes{e.of}, true
	case "text", "tail":
		return starlark.None, true
	case "getparent":
		return builtin(name, func(*call) (Value, error) {
			if e.of.parent == nil {
				return starlark.None, nil
			}
			return &element{e.of.parent}, nil
		}), true
	case "getchildren":
		return builtin(name, func(*call) (Value, error) { return elements(e.of.Children), nil }), true
	case "itertext":
		return builtin(name, func(*call) (Value, error) { return starlark.NewList(nil), nil }), true
	case "keys", "values", "items", "get":
		return (&attributes{e.of}).attribute(name)
	case "find", "findall", "findtext", "iterfind":
		return builtin(name, e.find), true
	case "xpath":
		return builtin(name, e.xpath), true
	}
	return nil, false
}

// find is find, findall, iterfind and findtext: paths below the element.
func (e *element) find(c *call) (Value, error) {
	path, err := c.text(0, "path", "")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(path, "/") {
		return nil, raise("SyntaxError", "cannot use absolute path on element")
	}
	found, err := c.run.evaluate(e.of, path)
	if err != nil {
		return nil, err
	}
	list, ok := found.(*starlark.List)
	if !ok {
		return nil, raise("SyntaxError", "invalid path")
	}

	switch {
	case c.name == "findall" || c.name == "iterfind":
		return list, nil
	case list.Len() == 0:
		if v := c.arg(1, "default"); v != nil && c.name == "findtext" {
			return v, nil
		}
		return starlark.None, nil
	case c.name == "findtext":
		return starlark.String(""), nil
	}
	return list.Index(0), nil
}

func (e *element) xpath(c *call) (Value, error) {
	path, err := c.text(0, "_path", "")
	if err != nil {
		return nil, err
	}
	return c.run.evaluate(e.of, path)
}

// search is the value of an expression that is not known yet.
func (r *run) search(from *Element, expr *xpath.Expr) (v Value, err error) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case *limitError:
			v, err = nil, fault
		default: // the library panics where an argument has the wrong type
			v, err = nil, raise("ValueError", "XPath error: %v", fault)
		}
	}()

	switch found := expr.Evaluate(&navigator{run: r, at: from, attr: -1}).(type) {
	case float64:
		return starlark.Float(found), nil
	case string:
		return starlark.String(found), nil
	case bool:
		return starlark.Bool(found), nil
	case *xpath.NodeIterator:
		return r.nodes(found)
	}
	return nil, raise("ValueError", "XPath error")
}

// nodes are the nodes of a result in the order of the document: elements, and texts for attributes.
func (r *run) nodes(found *xpath.NodeIterator) (Value, error) {
	var items []Value
	for found.MoveNext() {
		n, ok := found.Current().(*navigator)
		if !ok {
			continue
		}
		switch {
		case n.attr >= 0:
			items = append(items, starlark.String(n.at.Attributes[n.attr].Value))
		case n.at != nil:
			items = append(items, &element{n.at})
		}
	}
	return r.list(items)
}

// attributes are the attributes of an element as a value: a dict that cannot be changed.
type attributes struct{ of *Element }

func (a *attributes) String() string {
	d := starlark.NewDict(len(a.of.Attributes))
	for _, one := range a.of.Attributes {
		_ = d.SetKey(starlark.String(one.Name), starlark.String(one.Value)) // strings can be keys
	}
	return repr(d)
}
func (a *attributes) Type() string          { return "lxml.etree._Attrib" }
func (a *attributes) Freeze()               {}
func (a *attributes) Truth() starlark.Bool  { return len(a.of.Attributes) > 0 }
func (a *attributes) Hash() (uint32, error) { return 7, nil }

// Len is the number of attributes.
func (a *attributes) Len() int { return len(a.of.Attributes) }

// Iterate goes through the names.
func (a *attributes) Iterate() starlark.Iterator { return starlark.NewList(a.list("keys")).Iterate() }

func (a *attributes) get(name string) (Value, bool) {
	v, ok := a.of.Get(name)
	return starlark.String(v), ok
}

func (a *attributes) list(what string) []Value {
	all := make([]Value, len(a.of.Attributes))
	for i, one := range a.of.Attributes {
		name, value := starlark.String(one.Name), starlark.String(one.Value)
		all[i] = map[string]Value{"keys": name, "values": value, "items": starlark.Tuple{name, value}}[what]
	}
	return all
}

func (a *attributes) attribute(name string) (Value, bool) {
	switch name {
	case "get":
		return builtin(name, func(c *call) (Value, error) {
			if err := c.count(1, 2); err != nil {
				return nil, err
			}
			key, _ := c.args[0].(starlark.String)
			if v, ok := a.get(string(key)); ok {
				return v, nil
			}
			if v := c.kw["default"]; v != nil {
				return v, nil
			}
			return c.otherwise(1), nil
		}), true
	case "keys", "values", "items":
		return builtin(name, func(c *call) (Value, error) { return c.run.list(a.list(name)) }), true
	case "has_key":
		return builtin(name, func(c *call) (Value, error) {
			key, err := c.text(0, "", "")
			_, ok := a.get(key)
			return starlark.Bool(ok), err
		}), true
	}
	return nil, false
}

// thisValue is the variable this: the set, the module and the host of the process.
type thisValue struct{ set, module, host *Element }

func (t *thisValue) String() string        { return "<this>" }
func (t *thisValue) Type() string          { return "This" }
func (t *thisValue) Freeze()               {}
func (t *thisValue) Truth() starlark.Bool  { return true }
func (t *thisValue) Hash() (uint32, error) { return 8, nil }

func (t *thisValue) attribute(name string) (Value, bool) {
	one := map[string]*Element{"cc_set": t.set, "cc_module": t.module, "cc_host": t.host}
	e, known := one[name]
	switch {
	case name == "attrib":
		return &attributes{&Element{}}, true
	case known && e == nil:
		return starlark.None, true
	case known:
		return &element{e}, true
	}
	return nil, false
}
