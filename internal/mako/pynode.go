package mako

import "slices"

// nodeKind is what a node of a Python tree is.
type nodeKind int

const (
	kName nodeKind = iota
	kNumber
	kString
	kBytes
	kFormatted // an f-string: its parts
	kField     // {expression!conversion:spec} in an f-string
	kConstant  // True, False, None, ...
	kAttribute
	kSubscript
	kSlice
	kCall
	kKeyword // name=value in a call; without a name: **value
	kStarred
	kBinary
	kBool
	kUnary
	kCompare
	kConditional
	kLambda
	kTuple
	kList
	kSet
	kDict
	kListOf // comprehensions
	kSetOf
	kDictOf
	kGenerator
	kClause // for target in iter if ...
	kYield

	kExpression
	kAssign
	kAugmented
	kReturn
	kDelete
	kPass
	kBreak
	kContinue
	kGlobal
	kNonlocal
	kAssert
	kRaise
	kImport
	kImportFrom
	kIf
	kWhile
	kFor
	kTry
	kHandler
	kWith
	kDef
	kClass
	kParameters
	kParameter
	kBlock

	kWrite // text of a template
	kShow  // an expression of a template
)

// node is a node of a Python tree. Its children are in the order in which Python's own tree has them, because the checker
// reports the first fault in that order. A child that is optional may be nil.
type node struct {
	kind  nodeKind
	line  int
	name  string   // identifier, operator, literal
	names []string // of imports, comparisons, global, and filters
	kids  []*node
	paren bool // a tuple in brackets; a loop of a control line
}

// maxDepth limits how deep a tree of Python is, because what follows the parser calls itself for each level. Chains of
// operators and of elif make levels too.
const maxDepth = 2000

// deeper reports whether a tree has more levels.
func (n *node) deeper(levels int) bool {
	if n == nil {
		return false
	}
	if levels == 0 {
		return true
	}
	for _, k := range n.kids {
		if k.deeper(levels - 1) {
			return true
		}
	}
	return false
}

// walk visits a node and those under it, parents first, until visit returns false.
func (n *node) walk(visit func(*node) bool) bool {
	if n == nil {
		return true
	}
	if !visit(n) {
		return false
	}
	for _, k := range n.kids {
		if !k.walk(visit) {
			return false
		}
	}
	return true
}

// has says whether a tree has a node of one of the kinds.
func (n *node) has(kinds ...nodeKind) bool {
	return !n.walk(func(k *node) bool { return !slices.Contains(kinds, k.kind) })
}
