package fleet

import "github.com/gozzard/gozzard"

// visibility decides what one caller may see. It decides once for each namespace and each host of a query.
type visibility struct {
	x      *Index
	rights *gozzard.Rights
	spaces map[uint32]spaceMarks
	hosts  []hostMarks // by index
}

// spaceMarks stores the name of the namespace too: after the lock was released its number may belong to another one.
type spaceMarks struct {
	name  string
	marks gozzard.Marks
}

// hostMarks is the decision about a host.
type hostMarks struct {
	decided bool
	marks   gozzard.Marks
}

// newVisibility returns nil if everything is visible.
func newVisibility(x *Index, rights *gozzard.Rights) *visibility {
	if rights.SeesAll() {
		return nil
	}
	return &visibility{x: x, rights: rights, spaces: make(map[uint32]spaceMarks)}
}

// sees reports whether a row is visible. The lock is held.
func (v *visibility) sees(r *row) bool {
	name := v.x.spaces.at(r.space).name
	space, known := v.spaces[r.space]
	if !known || space.name != name {
		space = spaceMarks{name, v.rights.MarkSpace(name)}
		v.spaces[r.space] = space
	}

	if int(r.host) >= len(v.hosts) {
		v.hosts = append(v.hosts, make([]hostMarks, len(v.x.hosts)-len(v.hosts))...)
	}

	host := &v.hosts[r.host]
	if !host.decided {
		*host = hostMarks{true, v.rights.MarkHost(v.x.hosts[r.host].Info.Ref())}
	}

	return space.marks.Meet(host.marks)
}
