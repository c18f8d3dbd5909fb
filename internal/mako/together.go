package mako

import (
	"strconv"
	"strings"
)

// maxTogether is how many texts and values one call writes.
const maxTogether = 200

// mayJoin says whether texts and values that follow each other may be written by one call. Then the values are made before the texts
// between them are written, which shows only if a fault is caught, or if the template says what an operator does.
func mayJoin(block *node) bool { return !block.has(kTry, kClass) }

// next writes the first statements, and returns how many.
func (l *lowering) next(all []*node) int {
	if n := l.together(all); n > 1 {
		args := make([]string, n)
		for i, k := range all[:n] {
			if k.kind == kWrite {
				args[i] = strconv.Quote(k.name)
			} else {
				args[i] = l.expr(shown(k))
			}
		}
		l.emit(all[0].line, "k_out("+strings.Join(args, ", ")+")")
		return n
	}
	l.statement(all[0])
	return 1
}

// together counts the statements at the start of a list that one call can write. Its arguments are known before it writes the
// first of them: so only the first may be a call, which may write or change a value.
func (l *lowering) together(all []*node) int {
	for i, k := range all {
		if l.exact || i == maxTogether || k.kind != kWrite && shown(k) == nil || k.kind == kShow && i > 0 && k.has(kCall) {
			return i
		}
	}
	return len(all)
}

// shown is the expression that a statement shows without a filter, else nil.
func shown(n *node) *node {
	if n.kind == kShow && len(n.kids) == 1 && len(n.kids[0].kids) == 1 {
		return n.kids[0].kids[0]
	}
	return nil
}
