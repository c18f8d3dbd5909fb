package notify

import (
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// fits reports whether a subscription chooses an alert.
func fits(s *record.SubscriptionSpec, a *record.Alert) bool {
	kinds := s.Kinds
	if len(kinds) == 0 {
		kinds = Kinds()[:usualKinds]
	}
	if !slices.Contains(kinds, a.Kind) || !fitsSpace(s, a.Key.Namespace) || !fitsText(s.Names, a.Key.Name) {
		return false
	}
	if len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h string) bool { return fitsHost(h, a) }) {
		return false
	}
	for k, v := range s.Labels {
		if got, ok := a.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// fitsSpace: a namespace fits if its business or its name is listed. What is about a host alone has no namespace, and fits
// only a subscription that names none.
func fitsSpace(s *record.SubscriptionSpec, namespace string) bool {
	if len(s.Businesses)+len(s.Namespaces) == 0 {
		return true
	}
	if biz, ok := gozzard.BusinessOf(namespace); ok && slices.Contains(s.Businesses, biz) {
		return true
	}
	return len(s.Namespaces) > 0 && fitsText(s.Namespaces, namespace)
}

func fitsText(patterns []string, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return gozzard.MatchGlob(p, s) })
}

// fitsHost reports whether a network or a pattern fits the host of an alert.
func fitsHost(pattern string, a *record.Alert) bool {
	if a.Agent == "" {
		return false
	}
	if net, err := netip.ParsePrefix(pattern); err == nil {
		return a.Addr.IP.IsValid() && net.Contains(a.Addr.IP)
	}
	if gozzard.MatchGlob(pattern, string(a.Agent)) || a.Hostname != "" && gozzard.MatchGlob(pattern, a.Hostname) {
		return true
	}
	return a.Addr.IP.IsValid() && (gozzard.MatchGlob(pattern, a.Addr.IP.String()) || gozzard.MatchGlob(pattern, a.Addr.String()))
}
