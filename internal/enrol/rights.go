package enrol

import (
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard"
)

// MayEnrol reports whether somebody may bring in hosts of a cloud area that come from these networks; no network
// stands for all.
func MayEnrol(r *gozzard.Rights, cloud int, nets []netip.Prefix) bool {
	return holds(r, cloud, nets, gozzard.RoleEnroller, gozzard.RoleAdmin)
}

// mayExclude reports whether somebody may put such hosts out.
func mayExclude(r *gozzard.Rights, cloud int, nets []netip.Prefix) bool {
	return holds(r, cloud, nets, gozzard.RoleAdmin)
}

// holds: a right on some businesses only is none on hosts, which others use, too.
func holds(r *gozzard.Rights, cloud int, nets []netip.Prefix, roles ...gozzard.Role) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g gozzard.Grant) bool {
		return slices.Contains(roles, g.Role) && len(g.Businesses)+len(g.Namespaces) == 0 &&
			(len(g.Clouds) == 0 || slices.Contains(g.Clouds, cloud)) && (len(g.Nets) == 0 || covered(g.Nets, nets))
	})
}

func covered(by, nets []netip.Prefix) bool {
	return len(nets) > 0 && !slices.ContainsFunc(nets, func(n netip.Prefix) bool {
		return !slices.ContainsFunc(by, func(b netip.Prefix) bool {
			return b.Bits() <= n.Bits() &&
				b.Contains(n.Addr())
		})
	})
}
