package agentsock

import "slices"

// rank is what somebody may.
type rank uint8

const (
	stranger rank = iota // nothing, not even an answer
	member               // look
	owner                // everything
)

// peer is who made a connection, as the kernel knows him.
type peer struct {
	uid    uint32
	gid    uint32
	groups []uint32
	pid    int32 // 0 where it is not told
}

// judge ranks a peer. Without a group there are no members.
func judge(p peer, own uint32, group *uint32) rank {
	switch {
	case p.uid == 0 || p.uid == own:
		return owner
	case group != nil && (p.gid == *group || slices.Contains(p.groups, *group)):
		return member
	}
	return stranger
}
