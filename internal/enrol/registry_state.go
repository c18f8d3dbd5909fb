package enrol

import (
	"context"

	"github.com/gozzard/gozzard"
)

// ErrMemberNeedsAdmin is the answer to callers without the right to exclude a host.
func ErrMemberNeedsAdmin() error {
	return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role admin on all addresses of the host; the role enroller "+
		"may only approve a host that waits for its first approval")
}

// SetState approves, revokes or removes a member. When it returns, a member that is not active cannot connect any more
// and its connections are closed.
//
// An enroller of all addresses of a member may approve it while it waits for its first approval. Everything else needs
// the role admin on all addresses: to revoke, to remove, and to lift a quarantine or the hold after a restore.
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
	r.enrolling.Lock()
	defer r.enrolling.Unlock()
	m, known := r.member(agent)
	canExclude := known && mayExclude(caller.Rights, m.Cloud, hostNets(m.IPs))
	if !known || !MayEnrol(caller.Rights, m.Cloud, hostNets(m.IPs)) {
		return AgentRecord{}, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
	}
	if to != StateActive && !canExclude { // it may enrol the member, so it knows that there is one
		return AgentRecord{}, ErrMemberNeedsAdmin()
	}
	if !canExclude && m.State == StateActive { // an approval changes nothing, not even a quarantine of this moment
		return m, nil
	}

	// Change the stored state. A quarantine may be in memory only.
	now := r.o.Now()
	a, err := r.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
		switch {
		case a.State == StateRemoved:
			return a, gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
		case to == StateActive && a.State == StateRevoked:
			return a, gozzard.Errorf(gozzard.ErrConflict,
				"agent %s is revoked; an admin can enrol it again with: gozzard token create --agent %s", agent, agent)
		case !canExclude && (a.State != StatePending || m.State != StatePending):
			return a, gozzard.Errorf(gozzard.ErrUserForbidden,
				"agent %s is %s: approving it needs the role admin on all of its addresses", agent, m.State)
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
