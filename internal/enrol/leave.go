package enrol

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/gozzard/gozzard"
)

// LeavePath is the API path that a host calls to leave the fleet.
const LeavePath = "/api/v1/enrol/leave"

// LeaveRequest is the request of a member to leave the fleet. Its certificate is its right to do so.
type LeaveRequest struct {
	Machine string `json:"machine,omitempty"` // as in JoinRequest
}

// Leave removes a member that asks for it and has authenticated with its certificate. It is what SetState does for an
// admin: the agent id can never join again, and the addresses are free. from is the address that the request came from.
func (r *Registry) Leave(
	ctx context.Context, from netip.Addr, cs *tls.ConnectionState, req LeaveRequest,
) (Answer, error) {
	// Check the certificate and the member. A host that is revoked or in quarantine does not decide about itself.
	denied := gozzard.Errorf(gozzard.ErrUnauthenticated, "this host is not an active member of the fleet")
	id, err := r.o.Authority.identify(cs, renewGrace)
	if err != nil {
		_ = r.reject("certificate", "", from, err)
		return Answer{}, denied
	}
	if !carries(ctx, id.cloud) {
		_ = r.reject(RuleRelayArea, id.agent, from, errRelayArea)
		return Answer{}, denied
	}
	r.enrolling.Lock()
	defer r.enrolling.Unlock()
	r.mu.Lock()
	rule, err := r.checkMember(id, req.Machine)
	r.mu.Unlock()
	if err != nil {
		_ = r.reject(rule, id.agent, from, err)
		return Answer{}, denied
	}

	// Record it.
	now := r.o.Now()
	rec, err := r.o.Store.ChangeMember(ctx, id.agent, func(a AgentRecord) (AgentRecord, error) {
		a.State, a.Reason, a.Changed = StateRemoved, "", now
		return a, nil
	}, AuditEntry{At: now, What: auditLeave + string(id.agent), Caller: gozzard.Caller{App: "enrolment"}})
	if err != nil {
		return Answer{}, err
	}

	// Apply it.
	r.mu.Lock()
	r.put(rec)
	delete(r.quarantines, rec.Agent)
	delete(r.certificates, rec.Agent)
	cut := r.cut
	r.mu.Unlock()
	cut(rec.Agent, rec.Cloud)
	r.o.Log.Info("host left the fleet", "agent", rec.Agent, "cloud", rec.Cloud, "from", from.String())
	return Answer{Agent: rec.Agent, Cloud: rec.Cloud, State: rec.State, IPs: rec.IPs}, nil
}

// Reach checks that the server of a membership can be reached and is the right one. Nothing is asked of it.
func Reach(ctx context.Context, m *Membership) error {
	base, err := serverURL(m.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: NewRenewer(m, "", nil).callTLS()}
	conn, err := dialer.DialContext(ctx, "tcp", base.Host)
	if err != nil {
		return fmt.Errorf("cannot leave the fleet of %s: %w", base.Host, err)
	}
	return conn.Close()
}

// Leave asks the server of a membership to remove this host.
func Leave(ctx context.Context, m *Membership, machine string) error {
	base, err := serverURL(m.Server)
	if err != nil {
		return err
	}
	k := NewRenewer(m, machine, nil)
	answer, err := call(ctx, k.callTLS(), base, LeavePath, LeaveRequest{Machine: machine})
	if err != nil {
		return fmt.Errorf("cannot leave the fleet of %s: %w", base.Host, err)
	}
	if answer.Agent != m.Agent || answer.State != StateRemoved {
		return fmt.Errorf("cannot leave the fleet of %s: it answered with agent %s, %s", base.Host, answer.Agent,
			answer.State)
	}
	return nil
}
