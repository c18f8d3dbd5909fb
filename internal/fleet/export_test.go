package fleet

// Break makes a look at any row and at all hosts panic, as a bug of the index would.
func (x *Index) Break() {
	x.rows = slab[row]{}
	x.hosts = append(x.hosts, nil)
}
