package enrol

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// renewGrace is how long an expired certificate can still be renewed: the host may have been off. The host must still
// be a member.
const renewGrace = 30 * 24 * time.Hour

const (
	maxMachine  = 64
	maxHostname = 255
)

// The words of the audit rows, followed by an agent or a token. They are stored, so they cannot change.
const (
	auditJoin        = "enrol:join:"
	auditCreateToken = "enrol:token:"
	auditRevokeToken = "enrol:untoken:"
	auditRenew       = "enrol:renew:"
	auditQuarantine  = "enrol:quarantine:"
	auditApprove     = "enrol:approve:"
	auditRevoke      = "enrol:revoke:"
	auditRemove      = "enrol:remove:"
	auditLeave       = "enrol:leave:"
	auditAddress     = "enrol:address:"
)

// RegistryOptions are the parts of a Registry. Store, Authority, Address, Key and Rights are required.
type RegistryOptions struct {
	Store     Store
	Authority *Authority
	Address   func() string      // of the fabric; without a host, agents use the host that they joined
	Key       func() signing.Key // with which the server signs commands
	// Servers are all servers that hosts of a cloud area may use. nil: there is one.
	Servers func(cloud int) []gozzard.ServerAddress
	// Rights are the present rights of the creator of a token, nil for none. A token enrols only what its creator may
	// still enrol.
	Rights func(creator gozzard.Caller) *gozzard.Rights
	// Ask asks a second person about a token that brings back a revoked host. nil: none is needed.
	Ask     func(ctx context.Context, caller gozzard.Caller, t TokenRecord) error
	Refused func(rule string) // called for each rejected agent; may be nil
	Now     func() time.Time
	Log     *slog.Logger
}

// Registry knows the members of the fleet and decides which agents may connect. It is safe for concurrent use.
type Registry struct {
	o    RegistryOptions
	logs logBudget

	enrolling sync.Mutex // held while a member changes: one host at a time gets addresses

	mu           sync.Mutex
	members      map[gozzard.AgentID]AgentRecord
	owners       map[gozzard.HostAddr]gozzard.AgentID
	folded       map[string]gozzard.AgentID             // the first member whose id has these letters, in small ones
	cut          func(agent gozzard.AgentID, cloud int) // closes the connections of an agent
	readdress    func(agent gozzard.AgentID)            // applies new addresses of an agent
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
	if o.Rights == nil { // then no token is valid
		o.Rights = func(gozzard.Caller) *gozzard.Rights { return nil }
	}

	r := &Registry{
		o:            o,
		members:      map[gozzard.AgentID]AgentRecord{},
		owners:       map[gozzard.HostAddr]gozzard.AgentID{},
		folded:       map[string]gozzard.AgentID{},
		cut:          func(gozzard.AgentID, int) {},
		readdress:    func(gozzard.AgentID) {},
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

// Reload reads the members again, because another server changed some. Those that may not be connected any more are
// disconnected, and new addresses are applied.
func (r *Registry) Reload(ctx context.Context) error {
	r.enrolling.Lock()
	defer r.enrolling.Unlock()
	list, err := r.o.Store.Members(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the members of the fleet: %w", err)
	}

	var cut []AgentRecord
	var moved []gozzard.AgentID
	r.mu.Lock()
	for _, a := range list {
		before := r.members[a.Agent]
		if reflect.DeepEqual(before, a) {
			continue
		}
		r.put(a)
		if before.Agent != "" && a.State != StateActive {
			cut = append(cut, a)
		}
		if before.Agent != "" && !slices.Equal(before.IPs, a.IPs) {
			moved = append(moved, a.Agent)
		}
	}
	disconnect, readdress := r.cut, r.readdress
	r.mu.Unlock()

	for _, a := range cut {
		disconnect(a.Agent, a.Cloud)
	}
	for _, agent := range moved {
		readdress(agent)
	}
	return nil
}

// OnCut sets the function that closes the connections of an agent.
func (r *Registry) OnCut(cut func(agent gozzard.AgentID, cloud int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

// OnReaddress sets the function that is called when the addresses of an agent have changed.
func (r *Registry) OnReaddress(readdress func(agent gozzard.AgentID)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readdress = readdress
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
	if small := strings.ToLower(string(a.Agent)); r.folded[small] == "" {
		r.folded[small] = a.Agent
	}
	if a.State == StateRevoked || a.State == StateRemoved { // its addresses are free now
		return
	}

	for _, ip := range a.IPs {
		r.owners[gozzard.HostAddr{Cloud: a.Cloud, IP: ip}] = a.Agent
	}
}

// reject counts a rejected agent and logs it, unless too many were logged by the same rule. from is the address that
// the request came from, if it is known.
func (r *Registry) reject(rule string, agent gozzard.AgentID, from netip.Addr, err error) error {
	r.o.Refused(rule)
	hidden, ok := r.logs.allow(rule, r.o.Now())
	if !ok {
		return err
	}

	args := []any{"rule", rule, "agent", agent, "err", err}
	if from.IsValid() {
		args = append(args, "from", from.String())
	}
	if hidden > 0 {
		args = append(args, "not_logged_before", hidden)
	}
	r.o.Log.Warn("agent rejected", args...)
	return err
}

// Admit implements nats.Gate: it returns the agent that a certificate belongs to and until when the certificate is
// valid, or an error if the agent may not connect.
func (r *Registry) Admit(cs *tls.ConnectionState, machine string) (gozzard.AgentID, int, time.Time, error) {
	id, err := r.o.Authority.identify(cs, 0)
	if err != nil {
		return "", 0, time.Time{}, r.reject("certificate", "", netip.Addr{}, err)
	}

	r.mu.Lock()
	rule, err := r.checkMember(id, machine)
	if err == nil {
		r.noteCertificate(id)
		r.noteAuthority(id)
	}
	r.mu.Unlock()
	if err != nil {
		return "", 0, time.Time{}, r.reject(rule, id.agent, netip.Addr{}, err)
	}

	return id.agent, id.cloud, id.until, nil
}

// CloudOf is the cloud area in the certificate of a connection; ok is false if it shows none of an agent.
func (r *Registry) CloudOf(cs *tls.ConnectionState) (cloud int, ok bool) {
	id, err := r.o.Authority.identify(cs, renewGrace)
	return id.cloud, err == nil
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

// hostNets are the addresses as networks of one address each.
func hostNets(ips []netip.Addr) []netip.Prefix {
	nets := make([]netip.Prefix, 0, len(ips))
	for _, ip := range ips {
		nets = append(nets, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return nets
}
