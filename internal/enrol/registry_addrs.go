package enrol

import (
	"context"
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard"
)

// Addrs are the addresses of an agent. A member has those of its record, whatever it reports. Of an agent that is no
// member, such as a host that was known before this server enrolled hosts, the reported addresses count as far as no
// member has them. Callers address operations to IP addresses, so no agent must get those of another one.
func (r *Registry) Addrs(agent gozzard.AgentID, reported []gozzard.HostAddr) []gozzard.HostAddr {
	r.mu.Lock()
	defer r.mu.Unlock()

	list := slices.Clone(reported)
	if m, ok := r.members[agent]; ok {
		list = hostAddrs(m.Cloud, m.IPs)
	}
	return slices.DeleteFunc(list, func(a gozzard.HostAddr) bool {
		owner, taken := r.owners[a]
		return taken && owner != agent
	})
}

// ChangeAddrs adds and removes addresses of a member. It needs the role admin on all addresses that the member has, and
// on those that it gets.
func (r *Registry) ChangeAddrs(
	ctx context.Context, caller gozzard.Caller, agent gozzard.AgentID, add, remove []netip.Addr,
) (AgentRecord, error) {
	r.enrolling.Lock()
	defer r.enrolling.Unlock()

	// Check the rights of the caller on the member.
	m, known := r.member(agent)
	if !known || m.State == StateRemoved || !MayEnrol(caller.Rights, m.Cloud, hostNets(m.IPs)) {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
	}
	if !mayExclude(caller.Rights, m.Cloud, hostNets(m.IPs)) {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"changing the addresses of agent %s needs the role admin on all of them", agent)
	}

	// Check the new addresses.
	next, added, err := changedIPs(m.IPs, add, remove)
	if err != nil {
		return AgentRecord{}, err
	}
	if len(added) > 0 && !mayExclude(caller.Rights, m.Cloud, hostNets(added)) {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"adding these addresses needs the role admin on them")
	}
	if err := r.checkAddressesFree(caller.Rights, agent, m.Cloud, added); err != nil {
		return AgentRecord{}, err
	}
	if slices.Equal(next, m.IPs) {
		return m, nil
	}

	// Store them and use them from now on.
	now := r.o.Now()
	_, err = r.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
		a.IPs, a.Changed = next, now
		return a, nil
	}, AuditEntry{At: now, Caller: caller, What: auditAddress + string(agent) + changeText(m.IPs, next)})
	if err != nil {
		return AgentRecord{}, err
	}

	r.mu.Lock()
	m = r.members[agent] // with a quarantine of the meantime
	m.IPs, m.Changed = next, now
	r.put(m)
	readdress := r.readdress
	r.mu.Unlock()
	readdress(agent)
	return m, nil
}

// changedIPs are the addresses of a member after a change, and those that it did not have before.
func changedIPs(have, add, remove []netip.Addr) (next, added []netip.Addr, err error) {
	e := &gozzard.Error{Kind: gozzard.ErrInvalid}
	fault := func(path, text string) { e.Faults = append(e.Faults, gozzard.Fault{Path: path, Text: text}) }

	for _, ip := range remove {
		if !slices.Contains(have, ip) {
			fault("remove", ip.String()+" is not an address of this agent")
		}
	}
	next = slices.DeleteFunc(slices.Clone(have), func(ip netip.Addr) bool { return slices.Contains(remove, ip) })

	for _, ip := range add {
		if !slices.Contains(next, ip) {
			next = append(next, ip)
		}
	}
	for _, ip := range next {
		if !slices.Contains(have, ip) {
			added = append(added, ip)
		}
	}

	if len(add)+len(remove) == 0 {
		fault("add", "give at least one address to add or to remove")
	}
	if len(next) == 0 {
		fault("remove", "an agent must keep at least one address")
	}
	if len(next) > gozzard.MaxHostAddrs {
		fault("add", "an agent can have at most 16 addresses")
	}
	if len(e.Faults) > 0 {
		return nil, nil, e
	}
	return next, added, nil
}

// changeText is a change of addresses for the audit, such as " +10.0.0.2 -10.0.0.1".
func changeText(before, after []netip.Addr) (text string) {
	for _, ip := range after {
		if !slices.Contains(before, ip) {
			text += " +" + ip.String()
		}
	}
	for _, ip := range before {
		if !slices.Contains(after, ip) {
			text += " -" + ip.String()
		}
	}
	return text
}

// checkAddressesFree rejects an address that another member has. The address of a revoked member is free only for a
// caller that may revoke that member: others could bring the host back under another name.
func (r *Registry) checkAddressesFree(
	rights *gozzard.Rights, agent gozzard.AgentID, cloud int, ips []netip.Addr,
) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, at := range hostAddrs(cloud, ips) {
		if owner, taken := r.owners[at]; taken && owner != agent {
			return gozzard.Errorf(gozzard.ErrConflict,
				"address %s belongs to another enrolled host; an admin can free it with: gozzard hosts remove %s", at, at)
		}
	}

	for _, m := range r.members {
		isSame := func(ip netip.Addr) bool { return slices.Contains(m.IPs, ip) }
		if m.State == StateRevoked && m.Agent != agent && m.Cloud == cloud && slices.ContainsFunc(ips, isSame) &&
			!mayExclude(rights, m.Cloud, hostNets(m.IPs)) {
			return gozzard.Errorf(gozzard.ErrConflict,
				"one of these addresses belongs to a host that was revoked: only a token of an admin can enrol it")
		}
	}

	return nil
}

// hostAddrs are the addresses of a host in a cloud area.
func hostAddrs(cloud int, ips []netip.Addr) []gozzard.HostAddr {
	list := make([]gozzard.HostAddr, 0, len(ips))
	for _, ip := range ips {
		list = append(list, gozzard.HostAddr{Cloud: cloud, IP: ip})
	}
	return list
}
