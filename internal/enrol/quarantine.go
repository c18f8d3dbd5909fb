package enrol

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/gozzard/gozzard"
)

// Clone implements nats.Gate: it puts an agent into quarantine of which two copies run. The caller closes their
// connections.
func (r *Registry) Clone(agent gozzard.AgentID, _ int) {
	r.mu.Lock()
	r.quarantine(agent, "ran twice at the same time: its state folder was copied")
	r.mu.Unlock()

	r.o.Refused("clone")
	r.o.Log.Error("agent put into quarantine: two copies of it are running", "agent", agent)
}

// Downgraded puts an agent into quarantine that uses an older protocol than before: its program may have been replaced
// by one without the newer checks.
func (r *Registry) Downgraded(agent gozzard.AgentID, current, before uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quarantine(agent, fmt.Sprintf("speaks protocol %d after %d: its program was replaced by an older one; "+
		"install a newer one, then approve it", current, before))
}

// quarantine takes effect at once; Run stores it. mu is held.
func (r *Registry) quarantine(agent gozzard.AgentID, reason string) {
	m := r.members[agent]
	if m.State != StateActive {
		return
	}
	m.State, m.Reason, m.Changed = StateQuarantined, reason, r.o.Now()
	r.put(m)
	r.quarantines[agent] = reason
	r.wakeRun()
}

// wakeRun makes Run store what has changed.
func (r *Registry) wakeRun() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run stores quarantines, and the certificates that agents show after a restore, until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	for {
		var retry <-chan time.Time
		quarantines, certificates := r.recordQuarantines(ctx), r.recordCertificates(ctx)
		if moves := r.recordMoves(ctx); !quarantines || !certificates || !moves {
			retry = time.After(time.Second)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-retry:
		}
	}
}

// recordQuarantines stores the quarantines and reports whether all of them are stored.
func (r *Registry) recordQuarantines(ctx context.Context) (all bool) {
	r.mu.Lock()
	pending := maps.Clone(r.quarantines)
	cut := r.cut
	r.mu.Unlock()

	all = true
	for agent, reason := range pending {
		if m, ok := r.member(agent); ok {
			cut(agent, m.Cloud)
		}

		// Store it, unless the state has changed meanwhile.
		_, err := r.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
			if a.State == StateActive {
				a.State, a.Reason, a.Changed = StateQuarantined, reason, r.o.Now()
			}
			return a, nil
		}, AuditEntry{At: r.o.Now(), What: auditQuarantine + string(agent)})
		if err != nil {
			r.o.Log.Error("cannot store a quarantine, trying again", "agent", agent, "err", err)
			all = false
			continue
		}

		r.mu.Lock()
		delete(r.quarantines, agent)
		r.mu.Unlock()
	}

	return all
}
