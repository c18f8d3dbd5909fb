package ratelimit

// PlatformQuota is the quota of apps that act on the whole fleet at once, such as one that restarts a plug-in on all
// hosts. With the quota of other apps it would be rejected in the middle of 12,000 hosts.
const PlatformQuota = 100_000

// ownQuota is the quota that an app or a user has for itself: from the settings, or as a known app of the platform. A
// server without quotas, or with a higher one for all, has none for those.
func (b *Blast) ownQuota(name string) (n int, own bool) {
	if n, own = b.Quotas[name]; own {
		return n, true
	}
	if b.Platform[name] && b.Quota > 0 && b.Quota < PlatformQuota {
		return PlatformQuota, true
	}
	return 0, false
}
