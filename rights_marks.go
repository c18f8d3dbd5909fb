package gozzard

// Marks are a set of a caller's grants, one bit each. They make Sees fast for many rows: mark each namespace and each
// host once; a process is visible when the marks of its namespace and of its host meet.
type Marks struct {
	plain    []uint64 // grants that fit
	assigned []uint64 // grants that fit if the host is assigned to the business of the namespace

	biz    int     // of the namespace; 0: none
	host   HostRef // marks of a host
	rights *Rights
}

// MarkSpace marks the grants that let the caller see processes of a namespace.
func (r *Rights) MarkSpace(namespace string) Marks {
	m := r.mark(func(g *Grant) bool { return g.fitsSpace(namespace) })
	if biz, ok := BusinessOf(namespace); ok {
		m.biz = biz
	}
	return m
}

// MarkHost marks the grants that let the caller see processes of a host.
func (r *Rights) MarkHost(h HostRef) Marks {
	m := r.mark(func(g *Grant) bool { return g.fitsAddrs(h.Addrs) })
	m.host = h
	return m
}

func (r *Rights) mark(fits func(g *Grant) bool) Marks {
	if r == nil {
		return Marks{}
	}

	n := (len(r.Grants) + 63) / 64
	bits := make([]uint64, 2*n)
	m := Marks{plain: bits[:n], assigned: bits[n:], rights: r}
	for i := range r.Grants {
		g := &r.Grants[i]
		if !g.sees() || !fits(g) {
			continue
		}
		to := m.plain
		if g.Scope() == HostsAssigned {
			to = m.assigned
		}
		to[i/64] |= 1 << (i % 64)
	}

	return m
}

// Meet reports whether a grant is in the marks of a namespace and in those of a host. One of the two is m.
func (m Marks) Meet(o Marks) bool {
	if meet(m.plain, o.plain) {
		return true
	}
	space, host := m, o
	if space.biz == 0 {
		space, host = o, m
	}
	return space.biz != 0 && meet(m.assigned, o.assigned) && space.rights.assigned(space.biz, host.host)
}

func meet(a, b []uint64) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}
