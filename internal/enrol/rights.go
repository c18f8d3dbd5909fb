package enrol

import (
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard"
)

// MayEnrol reports whether the rights allow to enrol hosts of a cloud area from these networks. No networks means all
// networks.
func MayEnrol(r *gozzard.Rights, cloud int, nets []netip.Prefix) bool {
	return hasRole(r, cloud, nets, gozzard.RoleEnroller, gozzard.RoleAdmin)
}

// mayExclude reports whether the rights allow to revoke or remove such hosts.
func mayExclude(r *gozzard.Rights, cloud int, nets []netip.Prefix) bool {
	return hasRole(r, cloud, nets, gozzard.RoleAdmin)
}

// mayCreate reports whether the rights allow a token. known is the member that the token is for, if it is for one. A
// token for a member needs the right on all addresses of the member: to enrol, while the member waits for its first
// approval; else to exclude, because the token disconnects a member that is active, and undoes a revocation, a
// quarantine or the hold after a restore.
func mayCreate(
	r *gozzard.Rights, cloud int, nets []netip.Prefix, agent gozzard.AgentID, known *AgentRecord,
) bool {
	if agent == "" {
		return MayEnrol(r, cloud, nets)
	}
	if known.Agent != agent || len(nets) > 0 && !MayEnrol(r, known.Cloud, nets) {
		return false
	}
	if known.State == StatePending {
		return MayEnrol(r, known.Cloud, hostNets(known.IPs))
	}
	return mayExclude(r, known.Cloud, hostNets(known.IPs))
}

// hasRole reports whether one grant has one of the roles on the cloud area and all networks. A grant on some businesses
// or namespaces only does not count: other businesses use the same hosts.
func hasRole(r *gozzard.Rights, cloud int, nets []netip.Prefix, roles ...gozzard.Role) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g gozzard.Grant) bool {
		return slices.Contains(roles, g.Role) && len(g.Businesses)+len(g.Namespaces) == 0 &&
			(len(g.Clouds) == 0 || slices.Contains(g.Clouds, cloud)) &&
			(len(g.Nets) == 0 || covered(g.Nets, nets))
	})
}

// covered reports whether there are networks and each of them is inside of one of by.
func covered(by, nets []netip.Prefix) bool {
	isOutside := func(n netip.Prefix) bool {
		contains := func(b netip.Prefix) bool { return b.Bits() <= n.Bits() && b.Contains(n.Addr()) }
		return !slices.ContainsFunc(by, contains)
	}
	return len(nets) > 0 && !slices.ContainsFunc(nets, isOutside)
}
