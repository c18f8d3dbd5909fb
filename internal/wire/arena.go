package wire

import "strings"

// arena stores the strings of one message in few pieces of memory. A piece is small, because it cannot be freed before
// all of its strings.
type arena struct {
	piece strings.Builder
	left  int // bytes of input that may still become strings
	last  lastLabels
}

const arenaPiece = 4 << 10

// keep returns a copy of v as a string.
func (a *arena) keep(v []byte) string {
	if len(v) == 0 {
		return ""
	}
	if len(v) > arenaPiece/4 {
		return string(v)
	}
	if a.piece.Cap()-a.piece.Len() < len(v) {
		a.piece = strings.Builder{}
		a.piece.Grow(min(max(a.left, len(v)), arenaPiece))
	}

	start := a.piece.Len()
	a.piece.Write(v)
	a.left -= len(v)
	return a.piece.String()[start:]
}
