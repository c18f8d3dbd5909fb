package index

import (
	"iter"
	mathbits "math/bits"
)

// bits is a set of rows: a quarter of a megabyte for two million, counted in some ten microseconds. Bits past the
// last row are 0.
type bits []uint64

func newBits(rows int) bits { return make(bits, (rows+63)/64) }

func (b bits) has(row uint32) bool { return b[row/64]>>(row%64)&1 != 0 }

func (b bits) set(row uint32) { b[row/64] |= 1 << (row % 64) }

func (b bits) put(row uint32, on bool) {
	if on {
		b.set(row)
	} else {
		b[row/64] &^= 1 << (row % 64)
	}
}

func (b bits) count() int {
	n := 0
	for _, w := range b {
		n += mathbits.OnesCount64(w)
	}
	return n
}

// resize gives a set of that many rows, empty or full, in the same memory where it is large enough.
func (b bits) resize(rows int, full bool) bits {
	words := (rows + 63) / 64
	if cap(b) < words {
		b = make(bits, words)
	}

	b = b[:words]

	if !full {
		clear(b)
		return b
	}

	for i := range b {
		b[i] = ^uint64(0)
	}

	if rows%64 != 0 {
		b[words-1] = 1<<(rows%64) - 1
	}

	return b
}

// and removes what is not in o.
func (b bits) and(o bits) {
	o = o[:len(b)]
	for i := range b {
		b[i] &= o[i]
	}
}

// window keeps the rows at places from to to-1 of the set and removes all others.
func (b bits) window(from, to int) {
	seen := 0
	for i, w := range b {
		n := mathbits.OnesCount64(w)
		if seen < from || seen+n > to {
			for rest, place := w, seen; rest != 0; rest, place = rest&(rest-1), place+1 {
				if place < from || place >= to {
					w &^= rest & -rest
				}
			}
			b[i] = w
		}
		seen += n
	}
}

// take appends the rows at places from to to-1 of the set.
func (b bits) take(out []uint32, from, to int) []uint32 {
	seen := 0
	for i := 0; i < len(b) && seen < to; i++ {
		w := b[i]
		n := mathbits.OnesCount64(w)
		if seen+n <= from {
			seen += n
			continue
		}
		for ; w != 0 && seen < to; w &= w - 1 {
			if seen >= from {
				out = append(out, uint32(i*64+mathbits.TrailingZeros64(w)))
			}
			seen++
		}
	}

	return out
}

// all are the rows of the set. A row may be removed when it comes up.
func (b bits) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(uint32(i*64 + mathbits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}
