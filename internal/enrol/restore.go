package enrol

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
)

// RestoreStore is a record that may come from a backup. It does not contain what was revoked or removed after the
// backup was made.
type RestoreStore interface {
	// RestoredFrom returns when the backup was made, and how many hosts wait for a confirmation. The time is zero for
	// a record that comes from no backup or is confirmed.
	RestoredFrom(ctx context.Context) (from time.Time, waiting int, err error)

	// ConfirmRestore makes the waiting members active and returns them. It fails if another number of hosts is waiting
	// than the caller expects. All of it is one transaction with its audit row.
	ConfirmRestore(ctx context.Context, waiting int, act AuditEntry) ([]AgentRecord, error)
}

// Restore rejects the hosts of a restored record until an admin confirms that they still belong to the fleet. It is
// safe for concurrent use.
type Restore struct {
	store    RestoreStore
	registry *Registry // nil: hosts connect with a join secret
	from     atomic.Pointer[time.Time]
}

// OpenRestore reads whether a record was restored. registry is nil where hosts have no certificates.
func OpenRestore(ctx context.Context, store RestoreStore, registry *Registry) (*Restore, error) {
	from, _, err := store.RestoredFrom(ctx)
	if err != nil {
		return nil, err
	}

	r := &Restore{store: store, registry: registry}
	r.from.Store(&from)
	return r, nil
}

// From is when the backup was made that waits for a confirmation, zero if none waits.
func (r *Restore) From() time.Time {
	if r == nil {
		return time.Time{}
	}
	return *r.from.Load()
}

// Holds reports whether the reports of all hosts must be dropped. Without certificates the server cannot distinguish a
// member from a host that was revoked after the backup. With certificates each member waits by its state.
func (r *Restore) Holds() bool { return r != nil && r.registry == nil && !r.From().IsZero() }

// Reload reads again whether a confirmation waits: another server may have got it.
func (r *Restore) Reload(ctx context.Context) error {
	if r == nil {
		return nil
	}
	from, _, err := r.store.RestoredFrom(ctx)
	if err == nil {
		r.from.Store(&from)
	}
	return err
}

// Waiting counts the hosts that wait for the confirmation.
func (r *Restore) Waiting(ctx context.Context) (int, error) {
	_, n, err := r.store.RestoredFrom(ctx)
	return n, err
}

// Confirm accepts all waiting hosts. waiting is the number that the admin has seen: no other host is accepted.
func (r *Restore) Confirm(ctx context.Context, caller gozzard.Caller, waiting int) (int, error) {
	if r.From().IsZero() {
		return 0, gozzard.Errorf(gozzard.ErrConflict,
			"this record was not restored from a backup, or the restore is confirmed already")
	}

	// Store the confirmation.
	act := AuditEntry{
		At: time.Now(), Caller: caller, What: "restore:confirm:" + r.From().UTC().Format(time.RFC3339),
	}
	if r.registry != nil {
		r.registry.enrolling.Lock()
		defer r.registry.enrolling.Unlock()
	}
	members, err := r.store.ConfirmRestore(ctx, waiting, act)
	if err != nil {
		return 0, err
	}

	// Apply it.
	if r.registry != nil {
		r.registry.mu.Lock()
		for _, m := range members {
			r.registry.put(m)
		}
		r.registry.mu.Unlock()
	}
	r.from.Store(&time.Time{})
	return waiting, nil
}

// issuedAfterBackup reports whether a certificate can be one that was issued after the backup that this record comes
// from. A certificate from before the backup that is not in the record was already replaced then.
func (a *AgentRecord) issuedAfterBackup(id identity) bool {
	// The times in certificates are whole seconds.
	return !a.Restored.IsZero() && !id.issued.Before(a.Restored.Truncate(time.Second))
}

// noteCertificate records the certificate with which a member of a restored record connects first. From then on any
// other certificate is treated as a copy. mu is held.
func (r *Registry) noteCertificate(id identity) {
	m := r.members[id.agent]
	if m.Restored.IsZero() {
		return
	}

	r.put(m.withCertificate(id))
	r.certificates[id.agent] = id
	r.wakeRun()
}

// withCertificate is the record of a member that has connected after a restore.
func (a AgentRecord) withCertificate(id identity) AgentRecord {
	if id.serial != a.Serial && id.serial != a.Previous {
		a.Serial, a.Previous, a.NotAfter = id.serial, "", id.until
	}
	a.Restored = time.Time{}
	return a
}

// recordCertificates stores the certificates of noteCertificate and reports whether all of them are stored. If the
// server ends before, the next connections bring them again.
func (r *Registry) recordCertificates(ctx context.Context) (all bool) {
	r.mu.Lock()
	pending := maps.Clone(r.certificates)
	r.mu.Unlock()

	all = true
	for agent, id := range pending {
		_, err := r.o.Store.ChangeMember(ctx, agent, func(a AgentRecord) (AgentRecord, error) {
			if a.Restored.IsZero() { // renewed or joined in the meantime
				return a, nil
			}
			return a.withCertificate(id), nil
		}, AuditEntry{})
		if err != nil {
			r.o.Log.Error("cannot store the certificate of a host after a restore, trying again",
				"agent", agent, "err", err)
			all = false
			continue
		}

		r.mu.Lock()
		if r.certificates[agent] == id {
			delete(r.certificates, agent)
		}
		r.mu.Unlock()
	}

	return all
}
