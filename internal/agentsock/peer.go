package agentsock

import "slices"

// rank is how much access an account has.
type rank uint8

const (
	stranger rank = iota // no access, and no answer
	member               // read access
	owner                // full access
)

// peer is the account that made a connection, as the kernel knows it.
type peer struct {
	uid    uint32
	gid    uint32
	groups []uint32
	pid    int32 // 0 if the system does not provide it
}

// rankOf returns the rank of a peer. Without a group there are no members.
func rankOf(p peer, own uint32, group *uint32) rank {
	switch {
	case p.uid == 0 || p.uid == own:
		return owner
	case group != nil && (p.gid == *group || slices.Contains(p.groups, *group)):
		return member
	}
	return stranger
}
