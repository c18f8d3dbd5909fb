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
