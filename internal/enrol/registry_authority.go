package enrol

import (
	"context"
	"maps"

	"github.com/gozzard/gozzard"
)

// The words of the audit rows about authorities. They are stored, so they cannot change.
const (
	auditRotateAuthority = "key:authority:rotate:"
	auditFinishAuthority = "key:authority:finish:"
)

// noteAuthority notes which authority signed the certificate that a member showed. mu is held.
func (r *Registry) noteAuthority(id identity) {
	if r.authorities[id.agent] == id.authority {
		return
	}
	r.authorities[id.agent] = id.authority
	r.moves[id.agent] = id.authority
	r.wakeRun()
}

// recordMoves stores what noteAuthority noted and reports whether all of it is stored.
func (r *Registry) recordMoves(ctx context.Context) bool {
	r.mu.Lock()
	pending := maps.Clone(r.moves)
	r.mu.Unlock()
	if len(pending) == 0 {
		return true
	}

	if err := r.o.Store.ShowAuthorities(ctx, pending); err != nil {
		r.o.Log.Error("cannot store which authority hosts know, trying again", "hosts", len(pending), "err", err)
		return false
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for agent, pin := range pending {
		if r.moves[agent] == pin {
			delete(r.moves, agent)
		}
	}
	return len(r.moves) == 0
}

// AuthorityMove is how far the members are on their way to the next authority.
type AuthorityMove struct {
	Current string // pin of the authority that the server proves itself with
	Next    string // pin of the next one; "": no rotation is under way
	Moved   []gozzard.AgentID
	Waiting []gozzard.AgentID // would be cut off by the end of the rotation
}

// AuthorityMove says which members have shown a certificate of the next authority. Revoked and removed members do not
// count.
func (r *Registry) AuthorityMove() AuthorityMove {
	current, next := r.o.Authority.keys()
	m := AuthorityMove{Current: pinOf(current.cert)}
	want := m.Current
	if next != nil {
		m.Next = pinOf(next.cert)
		want = m.Next
	}

	for _, a := range r.Agents() {
		if a.State == StateRevoked || a.State == StateRemoved {
			continue
		}
		r.mu.Lock()
		shown := r.authorities[a.Agent]
		r.mu.Unlock()
		if next != nil && shown != want {
			m.Waiting = append(m.Waiting, a.Agent)
			continue
		}
		m.Moved = append(m.Moved, a.Agent)
	}

	return m
}

// RotateAuthority makes the next authority. Members move to it when they renew their certificates.
func (r *Registry) RotateAuthority(ctx context.Context, caller gozzard.Caller) (AuthorityMove, error) {
	if err := r.o.Authority.Rotate(); err != nil {
		return AuthorityMove{}, err
	}
	m := r.AuthorityMove()
	r.o.Log.Info("authority rotation begun: hosts move to the next authority when they renew their certificates",
		"authority", m.Next, "hosts", len(m.Waiting))
	return m, r.o.Store.NoteAct(ctx, AuditEntry{At: r.o.Now(), Caller: caller, What: auditRotateAuthority + m.Next})
}

// FinishAuthority puts the next authority in the place of the present one. It cuts off the members that do not know it,
// so confirm must be their number.
func (r *Registry) FinishAuthority(ctx context.Context, caller gozzard.Caller, confirm int) (AuthorityMove, error) {
	// No host may get a certificate of the old authority meanwhile.
	r.enrolling.Lock()
	defer r.enrolling.Unlock()

	// Refuse to cut off hosts that the caller does not know of.
	m := r.AuthorityMove()
	switch n := len(m.Waiting); {
	case m.Next == "":
		return m, r.o.Authority.Finish() // says so
	case n > 0 && confirm == 0:
		return m, gozzard.Errorf(gozzard.ErrConflict, "%d hosts have not moved to the next authority and would be cut off: "+
			"see gozzard key status; to cut them off: gozzard key rotate authority --finish --confirm %d", n, n)
	case n != confirm:
		return m, gozzard.Errorf(gozzard.ErrConflict,
			"%d hosts have not moved to the next authority, not %d: see gozzard key status", n, confirm)
	}

	// Note it first: the key of the old authority cannot be brought back.
	act := AuditEntry{At: r.o.Now(), Caller: caller, What: auditFinishAuthority + m.Next}
	if err := r.o.Store.NoteAct(ctx, act); err != nil {
		return m, err
	}
	if err := r.o.Authority.Finish(); err != nil {
		return m, err
	}

	// Cut off the others.
	r.mu.Lock()
	cut := r.cut
	r.mu.Unlock()
	for _, agent := range m.Waiting {
		if a, ok := r.member(agent); ok {
			cut(agent, a.Cloud)
		}
	}
	r.o.Log.Info("authority rotation finished", "authority", m.Next, "moved", len(m.Moved), "cut_off", len(m.Waiting))
	return m, nil
}
