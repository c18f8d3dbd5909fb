package enrol

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
)

// RestoreStore is a record that may have come out of a backup. What was revoked or removed after the backup was
// taken is forgotten by it.
type RestoreStore interface {
	// RestoredFrom is when the backup was taken, zero for a record that came from none or was confirmed, and how
	// many hosts wait for that.
	RestoredFrom(ctx context.Context) (from time.Time, waiting int, err error)
	// ConfirmRestore lets the members in that wait, if there are as many hosts waiting as the caller thinks, and
	// gives them as they are now. All of it is one transaction with its audit row.
	ConfirmRestore(ctx context.Context, waiting int, act AuditEntry) ([]AgentRecord, error)
}

// Restore keeps the hosts of a restored record out until an admin has said which of them still belong to the fleet.
// It is safe for concurrent use.
type Restore struct {
	store RestoreStore
	desk  *Registry // nil: hosts are let in by a secret
	from  atomic.Pointer[time.Time]
}

// OpenRestore reads whether a record was restored. Members wait by their state; desk is nil where there are none.
func OpenRestore(ctx context.Context, store RestoreStore, desk *Registry) (*Restore, error) {
	from, _, err := store.RestoredFrom(ctx)
	if err != nil {
		return nil, err
	}
	r := &Restore{store: store, desk: desk}
	r.from.Store(&from)
	return r, nil
}

// From is when the backup was taken that waits to be confirmed, zero when nothing does.
func (r *Restore) From() time.Time {
	if r == nil {
		return time.Time{}
	}
	return *r.from.Load()
}

// Holds reports whether nothing is heard of any host: where hosts have no certificates, none can be told from one
// that was put out.
func (r *Restore) Holds() bool { return r != nil && r.desk == nil && !r.From().IsZero() }

// Waiting counts the hosts that are kept out.
func (r *Restore) Waiting(ctx context.Context) (int, error) {
	_, n, err := r.store.RestoredFrom(ctx)
	return n, err
}

// Confirm lets all hosts in that wait. waiting is how many the admin has seen, so that none is let in that he has not.
func (r *Restore) Confirm(ctx context.Context, caller gozzard.Caller, waiting int) (int, error) {
	if r.From().IsZero() {
		return 0, gozzard.Errorf(gozzard.ErrConflict,
			"this record was not restored from a backup, or that is confirmed already")
	}

	now := time.Now()
	act := AuditEntry{At: now, Caller: caller, What: "restore:confirm:" + r.From().UTC().Format(time.RFC3339)}

	if r.desk != nil {
		r.desk.enrolling.Lock()
		defer r.desk.enrolling.Unlock()
	}

	members, err := r.store.ConfirmRestore(ctx, waiting, act)
	if err != nil {
		return 0, err
	}

	if r.desk != nil {
		r.desk.mu.Lock()
		for _, m := range members {
			r.desk.take(m)
		}
		r.desk.mu.Unlock()
	}

	r.from.Store(&time.Time{})
	return waiting, nil
}

// forgot reports whether a certificate can be one that was given out after the backup was taken which this member
// came from. One of before that is not in the record was replaced already then.
func (a *AgentRecord) forgot(id identity) bool {
	return !a.Restored.IsZero() && !id.issued.Before(a.Restored.Truncate(time.Second)) // certificates count in seconds
}

// hear takes note of the certificate that a member of a restored record has: from now on any other one is a copy.
// mu is held.
func (d *Registry) hear(id identity) {
	m := d.members[id.agent]
	if m.Restored.IsZero() {
		return
	}
	m = m.heardBy(id)
	d.take(m)
	d.heard[id.agent] = id
	d.nudge()
}

func (a AgentRecord) heardBy(id identity) AgentRecord {
	if id.serial != a.Serial && id.serial != a.Previous {
		a.Serial, a.Previous, a.NotAfter = id.serial, "", id.until
	}
	a.Restored = time.Time{}
	return a
}

// recordHeard writes down what hear found. A server that ends before finds it again.
func (d *Registry) recordHeard(ctx context.Context) (all bool) {
	d.mu.Lock()
	pending := make(map[gozzard.AgentID]identity, len(d.heard))
	for a, id := range d.heard {
		pending[a] = id
	}

	d.mu.Unlock()
	all = true
	for agent, id := range pending {
		_, err := d.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
			if a.Restored.IsZero() { // renewed or joined meanwhile
				return a, nil
			}
			return a.heardBy(id), nil
		}, AuditEntry{})
		if err != nil {
			d.o.Log.Error("cannot record the certificate of a host after a restore, trying again", "agent", agent,
				"err", err)
			all = false
			continue
		}
		d.mu.Lock()
		if d.heard[agent] == id {
			delete(d.heard, agent)
		}
		d.mu.Unlock()
	}

	return all
}
