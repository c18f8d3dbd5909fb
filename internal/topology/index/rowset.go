package index

import (
	"iter"
	mathbits "math/bits"
)

// rowSet is a set of rows, one bit for each row. For two million rows it has a quarter of a megabyte and is counted in
// about ten microseconds. Bits after the last row are 0.
type rowSet []uint64

func newRowSet(rows int) rowSet { return make(rowSet, (rows+63)/64) }

func (b rowSet) has(row uint32) bool { return b[row/64]>>(row%64)&1 != 0 }

func (b rowSet) set(row uint32) { b[row/64] |= 1 << (row % 64) }

// assign adds a row or removes it.
func (b rowSet) assign(row uint32, on bool) {
	if on {
		b.set(row)
	} else {
		b[row/64] &^= 1 << (row % 64)
	}
}

func (b rowSet) count() int {
	n := 0
	for _, w := range b {
		n += mathbits.OnesCount64(w)
	}
	return n
}

// resize returns a set for a number of rows, empty or full. It reuses the memory of b if that is large enough.
func (b rowSet) resize(rows int, full bool) rowSet {
	words := (rows + 63) / 64
	if cap(b) < words {
		b = make(rowSet, words)
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

// and removes the rows that are not in o.
func (b rowSet) and(o rowSet) {
	o = o[:len(b)]
	for i := range b {
		b[i] &= o[i]
	}
}

// keepRange keeps the rows at positions from to to-1 of the set and removes all others.
func (b rowSet) keepRange(from, to int) {
	seen := 0
	for i, w := range b {
		n := mathbits.OnesCount64(w)
		if seen < from || seen+n > to {
			for rest, position := w, seen; rest != 0; rest, position = rest&(rest-1), position+1 {
				if position < from || position >= to {
					w &^= rest & -rest
				}
			}
			b[i] = w
		}
		seen += n
	}
}

// appendRange appends the rows at positions from to to-1 of the set.
func (b rowSet) appendRange(out []uint32, from, to int) []uint32 {
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

// all iterates over the rows of the set. The loop may remove the row that it is at.
func (b rowSet) all() iter.Seq[uint32] {
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
