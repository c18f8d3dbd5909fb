package fleet

import "sort"

// blockMax bounds a block, and with it the work of an insertion at the end, a removal and the step from a block's
// start to a row.
const blockMax = 2048

// order is a list of rows by the sequence number they got when they came. A row is reached by its place among those
// that are still there, by adding up the sizes of a few hundred blocks, and removed without moving more than one
// block.
type order struct {
	blocks []block
	n      int
}

type block struct {
	// not above the sequence number of any row in the block, above that of every row in the blocks before
	first uint64
	rows  []uint32 // never empty
}

// push adds a row that came after all others.
func (o *order) push(seq uint64, row uint32) {
	o.n++
	last := len(o.blocks) - 1
	if last < 0 || len(o.blocks[last].rows) == blockMax {
		o.blocks = append(o.blocks, block{first: seq, rows: []uint32{row}})
		return
	}
	o.blocks[last].rows = append(o.blocks[last].rows, row)
}

// remove takes a row out. seqOf tells the sequence number of any row in the list, the removed one included.
func (o *order) remove(seq uint64, seqOf func(row uint32) uint64) {
	b := o.blockOf(seq)
	rows := o.blocks[b].rows
	i := sort.Search(len(rows), func(i int) bool { return seqOf(rows[i]) >= seq })
	o.blocks[b].rows = append(rows[:i], rows[i+1:]...)
	o.n--
	o.tidy(b)
}

// tidy removes an empty block and joins one that has become small with its neighbour, so that churn leaves no trail
// of nearly empty blocks.
func (o *order) tidy(b int) {
	if len(o.blocks[b].rows) == 0 {
		o.blocks = append(o.blocks[:b], o.blocks[b+1:]...)
		return
	}

	if len(o.blocks[b].rows) > blockMax/4 {
		return
	}

	left := b

	if b == len(o.blocks)-1 {
		left--
	}
	if left < 0 || len(o.blocks[left].rows)+len(o.blocks[left+1].rows) > blockMax/2 {
		return
	}

	o.blocks[left].rows = append(o.blocks[left].rows, o.blocks[left+1].rows...)
	o.blocks = append(o.blocks[:left+1], o.blocks[left+2:]...)
}

// blockOf finds the block that has or would have a sequence number; 0 in an empty list.
func (o *order) blockOf(seq uint64) int {
	return max(0, sort.Search(len(o.blocks), func(i int) bool { return o.blocks[i].first > seq })-1)
}

// slice calls f for at most limit rows from place start on.
func (o *order) slice(start, limit int, f func(row uint32)) {
	for _, b := range o.blocks {
		if limit <= 0 {
			return
		}
		if start >= len(b.rows) {
			start -= len(b.rows)
			continue
		}
		part := b.rows[start:min(len(b.rows), start+limit)]
		for _, r := range part {
			f(r)
		}
		limit -= len(part)
		start = 0
	}
}

// from gives the rows of one block whose sequence numbers are seq or above; nil when there are none. A reader that
// lets go of the lock between blocks goes on with it, whatever happened to the blocks meanwhile.
func (o *order) from(seq uint64, seqOf func(row uint32) uint64) []uint32 {
	for b := o.blockOf(seq); b < len(o.blocks); b++ {
		rows := o.blocks[b].rows
		i := 0
		if o.blocks[b].first < seq {
			i = sort.Search(len(rows), func(i int) bool { return seqOf(rows[i]) >= seq })
		}
		if i < len(rows) {
			return rows[i:]
		}
	}
	return nil
}
