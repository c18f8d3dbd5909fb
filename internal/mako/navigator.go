package mako

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/antchfx/xpath"
)

// navigator moves through a tree for the XPath library. At nil is the document above the first element. Each move counts,
// because an expression of a few characters may ask for more moves than there is time.
type navigator struct {
	run  *run
	at   *Element
	top  *Element // the first element, once it is known
	attr int      // position of an attribute, or -1
}

func (n *navigator) step() {
	if err := n.run.spend(8); err != nil {
		panic(err)
	}
}

func (n *navigator) root() *Element {
	if n.top != nil || n.at == nil {
		return n.top
	}
	top := n.at
	for top.parent != nil {
		top = top.parent
	}
	n.top = top
	return top
}

// NodeType is what the position is.
func (n *navigator) NodeType() xpath.NodeType {
	switch {
	case n.attr >= 0:
		return xpath.AttributeNode
	case n.at == nil:
		return xpath.RootNode
	}
	return xpath.ElementNode
}

// LocalName is the name of an element or attribute.
func (n *navigator) LocalName() string {
	switch {
	case n.attr >= 0:
		return n.at.Attributes[n.attr].Name
	case n.at == nil:
		return ""
	}
	return n.at.Tag
}

// Prefix is always empty: the tree has no namespaces.
func (n *navigator) Prefix() string { return "" }

// Value is the text of an attribute; elements have none.
func (n *navigator) Value() string {
	if n.attr >= 0 {
		return n.at.Attributes[n.attr].Value
	}
	return ""
}

// Copy is another navigator at the same position.
func (n *navigator) Copy() xpath.NodeNavigator {
	c := *n
	return &c
}

// MoveToRoot moves to the document.
func (n *navigator) MoveToRoot() {
	n.step()
	n.root()
	n.at, n.attr = nil, -1
}

// MoveToParent moves up.
func (n *navigator) MoveToParent() bool {
	n.step()
	switch {
	case n.attr >= 0:
		n.attr = -1
		return true
	case n.at == nil:
		return false
	}
	n.root()
	n.at = n.at.parent
	return true
}

// MoveToNextAttribute moves to the first or the next attribute.
func (n *navigator) MoveToNextAttribute() bool {
	n.step()
	if n.at == nil || n.attr+1 >= len(n.at.Attributes) {
		return false
	}
	n.attr++
	return true
}

// MoveToChild moves to the first child.
func (n *navigator) MoveToChild() bool {
	n.step()
	switch {
	case n.attr >= 0:
		return false
	case n.at == nil:
		n.at = n.top
		return n.at != nil
	case len(n.at.Children) == 0:
		return false
	}
	n.at = n.at.Children[0]
	return true
}

// MoveToFirst moves to the first of the siblings.
func (n *navigator) MoveToFirst() bool {
	n.step()
	if n.attr >= 0 || n.at == nil || n.at.parent == nil || n.at.at == 0 {
		return false
	}
	n.at = n.at.parent.Children[0]
	return true
}

// MoveToNext moves to the next sibling.
func (n *navigator) MoveToNext() bool { return n.sibling(1) }

// MoveToPrevious moves to the sibling before.
func (n *navigator) MoveToPrevious() bool { return n.sibling(-1) }

func (n *navigator) sibling(by int) bool {
	n.step()
	if n.attr >= 0 || n.at == nil || n.at.parent == nil {
		return false
	}
	at := n.at.at + by
	if at < 0 || at >= len(n.at.parent.Children) {
		return false
	}
	n.at = n.at.parent.Children[at]
	return true
}

// MoveTo moves to the position of another navigator.
func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*navigator)
	if !ok {
		return false
	}
	n.at, n.attr, n.top = o.at, o.attr, o.top
	return true
}

// compilePath reads an expression, once for each run. The functions tokenize and lcontains are GSEKit's own; they are
// written with functions that XPath has.
func (r *run) compilePath(path string) (*xpath.Expr, error) {
	if e := r.paths[path]; e != nil {
		return e, nil
	}
	if len(path) > maxPath {
		return nil, &limitError{fmt.Sprintf("a path of the template has %d bytes; at most %d are allowed", len(path), maxPath)}
	}
	if err := r.payPath(path); err != nil {
		return nil, err
	}
	written := withoutOwn(path)
	for _, m := range pathCall.FindAllStringSubmatch(written, -1) {
		if name := m[1]; name != "" && !pathFunctions[name] {
			return nil, raise("ValueError", "Unregistered function: %s", name)
		}
	}

	e, err := xpath.Compile(written)
	if err != nil {
		return nil, raise("SyntaxError", "Invalid expression")
	}
	r.paths[path] = e
	return e, nil
}

// payPath counts what it costs to read an expression, once for each run.
func (r *run) payPath(path string) error {
	if _, paid := r.paths[path]; paid {
		return nil
	}
	if err := r.spendEach(len(path), 100); err != nil {
		return err
	}
	if r.paths == nil {
		r.paths = map[string]*xpath.Expr{}
	}
	r.paths[path] = nil
	return nil
}

// maxPath limits the length of a path, because the library calls itself for each step of it.
const maxPath = 4096

// pathCall finds what is called in a path. Strings match too, with no name, so that nothing in them is taken for a call.
var pathCall = regexp.MustCompile(`"[^"]*"|'[^']*'|([\p{L}_][\p{L}\p{N}_.:-]*)\s*\(`)

// pathFunctions has the functions of XPath 1.0, the tests of nodes, and operators that may be before a bracket. The library
// has others, such as replace: their results may be as large as they like.
var pathFunctions = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("last position count local-name namespace-uri name string concat starts-with contains " +
		"substring-before substring-after substring string-length normalize-space translate boolean not true false number " +
		"sum floor ceiling round node text comment and or div mod") {
		all[name] = true
	}
	return all
}()

// withoutOwn writes lcontains(tokenize(a, s), b) as contains(concat(s, a, s), concat(s, b, s)).
func withoutOwn(path string) string {
	const begin = "lcontains("
	at := strings.Index(path, begin)
	if at < 0 {
		return path
	}
	outer, rest, ok := pathArguments(path[at+len(begin):])
	if !ok || len(outer) != 2 {
		return path
	}
	list, found := strings.CutPrefix(strings.TrimSpace(outer[0]), "tokenize(")
	if !found {
		return path
	}
	inner, _, ok := pathArguments(list)
	if !ok || len(inner) != 2 {
		return path
	}
	s := inner[1]
	return path[:at] + "contains(concat(" + s + "," + inner[0] + "," + s + "),concat(" + s + "," + outer[1] + "," + s + "))" +
		withoutOwn(rest)
}

// pathArguments splits the arguments of a function up to its bracket.
func pathArguments(text string) (args []string, rest string, ok bool) {
	open, begin := 0, 0
	quote := byte(0)
	for i := range len(text) {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[':
			open++
		case c == ')' && open == 0:
			return append(args, text[begin:i]), text[i+1:], true
		case c == ')' || c == ']':
			open--
		case c == ',' && open == 0:
			args = append(args, text[begin:i])
			begin = i + 1
		}
	}
	return nil, "", false
}
