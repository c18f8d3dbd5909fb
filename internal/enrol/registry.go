package enrol

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// renewGrace is how long a certificate that is over can still be renewed: a host may have been off. Whether it is a
// member is asked all the same.
const renewGrace = 30 * 24 * time.Hour

const (
	maxIPs      = 16
	maxMachine  = 64
	maxHostname = 255
)

// RegistryOptions are the parts of a desk. Store, Authority, Address and Key are required.
type RegistryOptions struct {
	Store     Store
	Authority *Authority
	Address   func() string      // of the fabric, told to agents; a missing host is the one they know the server by
	Key       func() signing.Key // which the server signs commands with
	Refused   func(rule string)
	Now       func() time.Time
	Log       *slog.Logger
}

// Registry knows who is a member of the fleet. It is safe for concurrent use.
type Registry struct {
	o RegistryOptions

	enrolling sync.Mutex // one host at a time: whether an address is free is decided here

	mu      sync.Mutex
	members map[gozzard.AgentID]AgentRecord
	owners  map[gozzard.HostAddr]gozzard.AgentID
	cut     func(agent gozzard.AgentID, cloud int)
	clones  map[gozzard.AgentID]string   // quarantined in memory, not yet in the record; with the reason
	heard   map[gozzard.AgentID]identity // of members of a restored record, not yet in it
	wake    chan struct{}
}

// NewRegistry reads the members. Run must be running for clones to be recorded.
func NewRegistry(ctx context.Context, o RegistryOptions) (*Registry, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}

	d := &Registry{o: o, members: map[gozzard.AgentID]AgentRecord{}, owners: map[gozzard.HostAddr]gozzard.AgentID{},
		clones: map[gozzard.AgentID]string{},
		heard:  map[gozzard.AgentID]identity{}, cut: func(gozzard.AgentID, int) {}, wake: make(chan struct{}, 1)}

	list, err := o.Store.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the members of the fleet: %w", err)
	}

	for _, a := range list {
		d.take(a)
	}

	return d, nil
}

// OnCut sets what ends the connections of an agent.
func (d *Registry) OnCut(cut func(agent gozzard.AgentID, cloud int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = cut
}

// take puts a member into memory; mu is held or nobody else knows the desk yet.
func (d *Registry) take(a AgentRecord) {
	for _, ip := range d.members[a.Agent].IPs {
		at := gozzard.HostAddr{Cloud: d.members[a.Agent].Cloud, IP: ip}
		if d.owners[at] == a.Agent {
			delete(d.owners, at)
		}
	}

	d.members[a.Agent] = a
	if a.State == StateRevoked || a.State == StateRemoved { // its addresses are free again
		return
	}

	for _, ip := range a.IPs {
		d.owners[gozzard.HostAddr{Cloud: a.Cloud, IP: ip}] = a.Agent
	}
}

// refuse counts a refusal.
func (d *Registry) refuse(rule string, agent gozzard.AgentID, err error) error {
	d.o.Refused(rule)
	d.o.Log.Warn("an agent was refused", "rule", rule, "agent", agent, "err", err)
	return err
}

// Admit tells whose certificate a connection of the fabric has shown, and until when it counts.
func (d *Registry) Admit(cs *tls.ConnectionState, machine string) (gozzard.AgentID, int, time.Time, error) {
	id, err := d.o.Authority.identify(cs, 0)
	if err != nil {
		return "", 0, time.Time{}, d.refuse("certificate", "", err)
	}

	d.mu.Lock()
	rule, err := d.standing(id, machine)
	if err == nil {
		d.hear(id)
	}

	d.mu.Unlock()

	if err != nil {
		return "", 0, time.Time{}, d.refuse(rule, id.agent, err)
	}

	return id.agent, id.cloud, id.until, nil
}

// standing tells why somebody is not let in. mu is held.
func (d *Registry) standing(id identity, machine string) (rule string, err error) {
	m, ok := d.members[id.agent]
	switch {
	case !ok || m.Cloud != id.cloud:
		return "not_enrolled", fmt.Errorf("agent %s is not enrolled", id.agent)
	case m.State != StateActive:
		return string(m.State), fmt.Errorf("agent %s is %s", id.agent, m.State)
	case id.serial != m.Serial && id.serial != m.Previous && !m.forgot(id):
		d.isolate(id.agent, "showed a certificate that was replaced: its state folder was copied or restored")
		return "old_certificate", fmt.Errorf("agent %s showed a certificate that was replaced", id.agent)
	case m.Machine != "" && machine != m.Machine:
		d.isolate(id.agent, "came from another machine than it was enrolled on: its state folder was copied or moved")
		return "other_machine", fmt.Errorf("agent %s came from another machine than it was enrolled on", id.agent)
	}

	return "", nil
}

// Clone puts an agent into quarantine that was found to run twice. Who found it ends its connections.
func (d *Registry) Clone(agent gozzard.AgentID, _ int) {
	d.mu.Lock()
	d.isolate(agent, "ran twice at the same time: its state folder was copied")
	d.mu.Unlock()
	d.o.Refused("clone")
	d.o.Log.Error("an agent runs twice and was put into quarantine", "agent", agent)
}

// Downgraded puts an agent into quarantine that speaks an older protocol than it did: a program without the newer
// checks was put in its place.
func (d *Registry) Downgraded(agent gozzard.AgentID, said, known uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isolate(agent, fmt.Sprintf("speaks protocol %d after %d: an older program was put in its place; install a newer one, then approve it", said, known))
}

// isolate takes effect at once; Run writes it down. mu is held.
func (d *Registry) isolate(agent gozzard.AgentID, reason string) {
	m := d.members[agent]
	if m.State != StateActive {
		return
	}
	m.State, m.Reason, m.Changed = StateQuarantined, reason, d.o.Now()
	d.take(m)
	d.clones[agent] = reason
	d.nudge()
}

// nudge has Run look at what is to be recorded.
func (d *Registry) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run records quarantines, and who was heard of after a restore, until ctx ends.
func (d *Registry) Run(ctx context.Context) error {
	for {
		var retry <-chan time.Time
		if clones, heard := d.recordClones(ctx), d.recordHeard(ctx); !clones || !heard {
			retry = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		case <-retry:
		}
	}
}

func (d *Registry) recordClones(ctx context.Context) (all bool) {
	d.mu.Lock()
	pending := make(map[gozzard.AgentID]string, len(d.clones))
	for a, why := range d.clones {
		pending[a] = why
	}

	cut := d.cut
	d.mu.Unlock()
	all = true
	for agent, why := range pending {
		if m, ok := d.member(agent); ok {
			cut(agent, m.Cloud)
		}
		_, err := d.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
			if a.State == StateActive {
				a.State, a.Reason, a.Changed = StateQuarantined, why, d.o.Now()
			}
			return a, nil
		}, AuditEntry{At: d.o.Now(), What: "enrol:quarantine:" + string(agent)})
		if err != nil {
			d.o.Log.Error("cannot record a quarantine, trying again", "agent", agent, "err", err)
			all = false
			continue
		}
		d.mu.Lock()
		delete(d.clones, agent)
		d.mu.Unlock()
	}

	return all
}

func (d *Registry) member(agent gozzard.AgentID) (AgentRecord, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.members[agent]
	return m, ok
}

// StateOf is the state of a member, "" for somebody who is none.
func (d *Registry) StateOf(agent gozzard.AgentID) State {
	m, _ := d.member(agent)
	return m.State
}

// Addrs leaves out of what an agent says of itself the addresses that another member enrolled with: operations are
// asked for by address.
func (d *Registry) Addrs(agent gozzard.AgentID, said []gozzard.HostAddr) []gozzard.HostAddr {
	d.mu.Lock()
	kept := slices.DeleteFunc(slices.Clone(said), func(a gozzard.HostAddr) bool {
		owner, taken := d.owners[a]
		return taken && owner != agent
	})
	d.mu.Unlock()
	if len(kept) < len(said) {
		_ = d.refuse("foreign_address", agent, errors.New("it claims an address that another agent enrolled with"))
	}
	return kept
}

// Agents lists the members, by name.
func (d *Registry) Agents() []AgentRecord {
	d.mu.Lock()
	list := make([]AgentRecord, 0, len(d.members))
	for _, m := range d.members {
		list = append(list, m)
	}

	d.mu.Unlock()

	slices.SortFunc(list, func(a, b AgentRecord) int {
		if a.Agent < b.Agent {
			return -1
		}
		return 1
	})

	return list
}

// SetState approves, revokes or removes a member. From the moment it returns nothing of a member that is not active
// is let in, and what was open is cut.
func (d *Registry) SetState(ctx context.Context, caller gozzard.Caller, agent gozzard.AgentID, to State) (AgentRecord,
	error) {
	what, ok := map[State]string{StateActive: "enrol:approve:", StateRevoked: "enrol:revoke:",
		StateRemoved: "enrol:remove:"}[to]
	if !ok {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrInvalid, "an agent cannot be made %s", to)
	}

	m, known := d.member(agent)
	if !known || !MayEnrol(caller.Rights, m.Cloud, hostNets(m.IPs)) || to != StateActive &&
		!mayExclude(caller.Rights, m.Cloud, hostNets(m.IPs)) {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
	}

	now := d.o.Now()
	d.enrolling.Lock()
	defer d.enrolling.Unlock()

	a, err := d.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
		switch {
		// whether it was put out is for those to say who could
		case a.State == StateRestored && !mayExclude(caller.Rights, m.Cloud, hostNets(m.IPs)):
			return a, gozzard.Errorf(gozzard.ErrUserForbidden,
				"agent %s waits since the record was restored from a backup: letting it in needs the role admin", agent)
		case a.State == StateRemoved:
			return a, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
		case to == StateActive && a.State == StateRevoked:
			return a, gozzard.Errorf(gozzard.ErrConflict,
				"agent %s is revoked; to let it in again: gozzard token create --agent %s", agent, agent)
		}

		a.State, a.Reason, a.Changed = to, "", now
		return a, nil
	}, AuditEntry{At: now, Caller: caller, What: what + string(agent)})

	if err != nil {
		return AgentRecord{}, err
	}

	d.mu.Lock()
	d.take(a)
	delete(d.clones, agent)
	cut := d.cut
	d.mu.Unlock()

	if to != StateActive {
		cut(agent, a.Cloud)
	}

	return a, nil
}

func hostNets(ips []netip.Addr) []netip.Prefix {
	nets := make([]netip.Prefix, 0, len(ips))
	for _, ip := range ips {
		nets = append(nets, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return nets
}
