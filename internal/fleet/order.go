package fleet

import "sort"

// blockMax is the largest number of rows in a block. It limits the work of a removal and of a search in a block.
const blockMax = 2048

// order is a list of rows by the sequence numbers of their arrival. To find the n-th row it adds up the sizes of a few
// hundred blocks. To remove a row it moves the rows of one block only.
type order struct {
	blocks []block
	n      int
}

// block is a part of an order.
type block struct {
	// At most the sequence number of the first row in the block, and above those of all rows in earlier blocks.
	first uint64
	rows  []uint32 // never empty
}

// push adds a row at the end.
func (o *order) push(seq uint64, row uint32) {
	o.n++
	last := len(o.blocks) - 1
	if last < 0 || len(o.blocks[last].rows) == blockMax {
		o.blocks = append(o.blocks, block{first: seq, rows: []uint32{row}})
		return
	}
	o.blocks[last].rows = append(o.blocks[last].rows, row)
}

// remove removes a row. seqOf returns the sequence number of any row in the list, including the removed one.
func (o *order) remove(seq uint64, seqOf func(row uint32) uint64) {
	b := o.blockOf(seq)
	rows := o.blocks[b].rows
	i := sort.Search(len(rows), func(i int) bool { return seqOf(rows[i]) >= seq })
	o.blocks[b].rows = append(rows[:i], rows[i+1:]...)
	o.n--
	o.tidy(b)
}

// tidy removes an empty block and merges a small one with its neighbour, so that many removals do not leave nearly
// empty blocks.
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

// blockOf returns the block that has or would have a sequence number; 0 in an empty list.
func (o *order) blockOf(seq uint64) int {
	return max(0, sort.Search(len(o.blocks), func(i int) bool { return o.blocks[i].first > seq })-1)
}

// slice calls f for at most limit rows, beginning with the row number start.
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

// from returns rows of one block with sequence numbers of at least seq, nil if there are none. A reader that releases
// the lock between blocks can continue with it, even if the blocks have changed.
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
