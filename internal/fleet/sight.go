package fleet

import "github.com/gozzard/gozzard"

// sight is what one caller may see, decided once for each namespace and each host that comes up in a query.
type sight struct {
	x      *Index
	rights *gozzard.Rights
	spaces map[uint32]spaceMarks
	hosts  []hostMarks // by place
}

// spaceMarks remember the namespace too: its number may be another one's once the lock was let go.
type spaceMarks struct {
	name  string
	marks gozzard.Marks
}

type hostMarks struct {
	decided bool
	marks   gozzard.Marks
}

// newSight is nil where everything is visible.
func newSight(x *Index, rights *gozzard.Rights) *sight {
	if rights.SeesAll() {
		return nil
	}
	return &sight{x: x, rights: rights, spaces: make(map[uint32]spaceMarks)}
}

// sees reports whether a row is visible. The lock is held.
func (s *sight) sees(r *row) bool {
	name := s.x.spaces.at(r.space).name
	space, known := s.spaces[r.space]
	if !known || space.name != name {
		space = spaceMarks{name, s.rights.MarkSpace(name)}
		s.spaces[r.space] = space
	}

	if int(r.host) >= len(s.hosts) {
		s.hosts = append(s.hosts, make([]hostMarks, len(s.x.hosts)-len(s.hosts))...)
	}

	host := &s.hosts[r.host]
	if !host.decided {
		*host = hostMarks{true, s.rights.MarkHost(s.x.hosts[r.host].Info.Addrs)}
	}

	return space.marks.Meet(host.marks)
}
