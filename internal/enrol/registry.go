package enrol

import (
	"cmp"
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

// renewGrace is how long an expired certificate can still be renewed: the host may have been off. The host must still
// be a member.
const renewGrace = 30 * 24 * time.Hour

const (
	maxIPs      = 16
	maxMachine  = 64
	maxHostname = 255
)

// The words of the audit rows, followed by an agent or a token. They are stored, so they cannot change.
const (
	auditJoin        = "enrol:join:"
	auditCreateToken = "enrol:token:"
	auditRevokeToken = "enrol:untoken:"
	auditQuarantine  = "enrol:quarantine:"
	auditApprove     = "enrol:approve:"
	auditRevoke      = "enrol:revoke:"
	auditRemove      = "enrol:remove:"
)

// RegistryOptions are the parts of a Registry. Store, Authority, Address and Key are required.
type RegistryOptions struct {
	Store     Store
	Authority *Authority
	Address   func() string      // of the fabric; without a host, agents use the host that they joined
	Key       func() signing.Key // with which the server signs commands
	Refused   func(rule string)  // called for each rejected agent; may be nil

	// Ask asks a second person about a token that brings back a revoked host. nil: none is needed.
	Ask func(ctx context.Context, caller gozzard.Caller, t TokenRecord) error

	Now func() time.Time
	Log *slog.Logger
}

// Registry knows the members of the fleet and decides which agents may connect. It is safe for concurrent use.
type Registry struct {
	o RegistryOptions

	enrolling sync.Mutex // held while a member changes: one host at a time gets addresses

	mu           sync.Mutex
	members      map[gozzard.AgentID]AgentRecord
	owners       map[gozzard.HostAddr]gozzard.AgentID
	cut          func(agent gozzard.AgentID, cloud int) // closes the connections of an agent
	quarantines  map[gozzard.AgentID]string             // in force but not stored yet; with the reason
	certificates map[gozzard.AgentID]identity           // seen after a restore, not stored yet
	authorities  map[gozzard.AgentID]string             // pin of the authority whose certificate an agent showed last
	moves        map[gozzard.AgentID]string             // of authorities, not stored yet
	wake         chan struct{}
}

// NewRegistry reads the members. Run must be called: it stores quarantines.
func NewRegistry(ctx context.Context, o RegistryOptions) (*Registry, error) {
	// Fill in the defaults.
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}

	r := &Registry{
		o:            o,
		members:      map[gozzard.AgentID]AgentRecord{},
		owners:       map[gozzard.HostAddr]gozzard.AgentID{},
		cut:          func(gozzard.AgentID, int) {},
		quarantines:  map[gozzard.AgentID]string{},
		certificates: map[gozzard.AgentID]identity{},
		moves:        map[gozzard.AgentID]string{},
		wake:         make(chan struct{}, 1),
	}

	// Read the members.
	list, err := o.Store.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the members of the fleet: %w", err)
	}

	for _, a := range list {
		r.put(a)
	}

	if r.authorities, err = o.Store.ShownAuthorities(ctx); err != nil {
		return nil, fmt.Errorf("cannot read which authorities the hosts know: %w", err)
	}

	return r, nil
}

// OnCut sets the function that closes the connections of an agent.
func (r *Registry) OnCut(cut func(agent gozzard.AgentID, cloud int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

// put stores a member in memory. mu is held, or no other goroutine knows the Registry yet.
func (r *Registry) put(a AgentRecord) {
	for _, ip := range r.members[a.Agent].IPs {
		at := gozzard.HostAddr{Cloud: r.members[a.Agent].Cloud, IP: ip}
		if r.owners[at] == a.Agent {
			delete(r.owners, at)
		}
	}

	r.members[a.Agent] = a
	if a.State == StateRevoked || a.State == StateRemoved { // its addresses are free now
		return
	}

	for _, ip := range a.IPs {
		r.owners[gozzard.HostAddr{Cloud: a.Cloud, IP: ip}] = a.Agent
	}
}

// reject counts and logs a rejected agent.
func (r *Registry) reject(rule string, agent gozzard.AgentID, err error) error {
	r.o.Refused(rule)
	r.o.Log.Warn("agent rejected", "rule", rule, "agent", agent, "err", err)
	return err
}

// Admit implements nats.Gate: it returns the agent that a certificate belongs to and until when the certificate is
// valid, or an error if the agent may not connect.
func (r *Registry) Admit(cs *tls.ConnectionState, machine string) (gozzard.AgentID, int, time.Time, error) {
	id, err := r.o.Authority.identify(cs, 0)
	if err != nil {
		return "", 0, time.Time{}, r.reject("certificate", "", err)
	}

	r.mu.Lock()
	rule, err := r.checkMember(id, machine)
	if err == nil {
		r.noteCertificate(id)
		r.noteAuthority(id)
	}
	r.mu.Unlock()
	if err != nil {
		return "", 0, time.Time{}, r.reject(rule, id.agent, err)
	}

	return id.agent, id.cloud, id.until, nil
}

// checkMember returns why an agent may not connect or renew, and the rule for the metrics. It puts an agent into
// quarantine that shows signs of a copy. mu is held.
func (r *Registry) checkMember(id identity, machine string) (rule string, err error) {
	m, ok := r.members[id.agent]
	switch {
	case !ok || m.Cloud != id.cloud:
		return "not_enrolled", fmt.Errorf("agent %s is not enrolled", id.agent)
	case m.State != StateActive:
		return string(m.State), fmt.Errorf("agent %s is %s", id.agent, m.State)
	case id.serial != m.Serial && id.serial != m.Previous && !m.issuedAfterBackup(id):
		r.quarantine(id.agent, "showed a certificate that was replaced: its state folder was copied or restored")
		return "old_certificate", fmt.Errorf("agent %s showed a certificate that was replaced", id.agent)
	case m.Machine != "" && machine != m.Machine:
		r.quarantine(id.agent, "came from another machine than at enrolment: its state folder was copied or moved")
		return "other_machine", fmt.Errorf("agent %s came from another machine than it was enrolled on", id.agent)
	}

	return "", nil
}

func (r *Registry) member(agent gozzard.AgentID) (AgentRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.members[agent]
	return m, ok
}

// StateOf is the state of a member, "" for an agent that is not enrolled.
func (r *Registry) StateOf(agent gozzard.AgentID) State {
	m, _ := r.member(agent)
	return m.State
}

// Addrs filters the addresses that an agent reports: it removes those that another member enrolled with. Callers
// address operations to IP addresses, so an agent must not get those of another one.
func (r *Registry) Addrs(agent gozzard.AgentID, reported []gozzard.HostAddr) []gozzard.HostAddr {
	r.mu.Lock()
	kept := slices.DeleteFunc(slices.Clone(reported), func(a gozzard.HostAddr) bool {
		owner, taken := r.owners[a]
		return taken && owner != agent
	})
	r.mu.Unlock()

	if len(kept) < len(reported) {
		_ = r.reject("foreign_address", agent, errors.New("it reports an address that another agent enrolled with"))
	}
	return kept
}

// Agents lists the members, by name.
func (r *Registry) Agents() []AgentRecord {
	r.mu.Lock()
	list := make([]AgentRecord, 0, len(r.members))
	for _, m := range r.members {
		list = append(list, m)
	}
	r.mu.Unlock()

	slices.SortFunc(list, func(a, b AgentRecord) int { return cmp.Compare(a.Agent, b.Agent) })
	return list
}

// SetState approves, revokes or removes a member. When it returns, a member that is not active cannot connect any more
// and its connections are closed.
func (r *Registry) SetState(
	ctx context.Context, caller gozzard.Caller, agent gozzard.AgentID, to State,
) (AgentRecord, error) {
	word, ok := map[State]string{
		StateActive: auditApprove, StateRevoked: auditRevoke, StateRemoved: auditRemove,
	}[to]
	if !ok {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrInvalid, "an agent cannot be made %s", to)
	}

	// Check the rights of the caller.
	m, known := r.member(agent)
	canExclude := known && mayExclude(caller.Rights, m.Cloud, hostNets(m.IPs))
	if !known || !MayEnrol(caller.Rights, m.Cloud, hostNets(m.IPs)) || to != StateActive && !canExclude {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
	}

	// Change the stored state.
	now := r.o.Now()
	r.enrolling.Lock()
	defer r.enrolling.Unlock()
	a, err := r.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
		switch {
		// The agent may have been revoked after the backup: only a caller that can revoke decides about that.
		case a.State == StateRestored && !canExclude:
			return a, gozzard.Errorf(gozzard.ErrUserForbidden,
				"agent %s waits since the record was restored from a backup: approving it needs the role admin", agent)
		case a.State == StateRemoved:
			return a, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
		case to == StateActive && a.State == StateRevoked:
			return a, gozzard.Errorf(gozzard.ErrConflict,
				"agent %s is revoked; to enrol it again: gozzard token create --agent %s", agent, agent)
		}

		a.State, a.Reason, a.Changed = to, "", now
		return a, nil
	}, AuditEntry{At: now, Caller: caller, What: word + string(agent)})
	if err != nil {
		return AgentRecord{}, err
	}

	// Apply it.
	r.mu.Lock()
	r.put(a)
	delete(r.quarantines, agent)
	cut := r.cut
	r.mu.Unlock()
	if to != StateActive {
		cut(agent, a.Cloud)
	}
	return a, nil
}

// hostNets are the addresses as networks of one address each.
func hostNets(ips []netip.Addr) []netip.Prefix {
	nets := make([]netip.Prefix, 0, len(ips))
	for _, ip := range ips {
		nets = append(nets, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return nets
}
