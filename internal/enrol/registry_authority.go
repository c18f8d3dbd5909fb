package enrol

import (
	"context"
	"fmt"
	"maps"
	"strings"

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

// ReadMoves reads what members have shown to other servers.
func (r *Registry) ReadMoves(ctx context.Context) error {
	shown, err := r.o.Store.ShownAuthorities(ctx)
	if err != nil {
		return fmt.Errorf("cannot read which authorities the hosts know: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(shown, r.moves) // newer, but not stored yet
	r.authorities = shown
	return nil
}

// RotateAuthority makes the next authority. Members move to it when they renew their certificates.
func (r *Registry) RotateAuthority(ctx context.Context, caller gozzard.Caller) (AuthorityMove, error) {
	if err := r.o.Authority.Rotate(); err != nil {
		return AuthorityMove{}, err
	}
	m := r.AuthorityMove()
	r.o.Log.Info("authority rotation begun: hosts move to the next authority when they renew their certificates",
		"authority", m.Next, "hosts", len(m.Waiting))
	return m, r.o.Store.NoteAct(ctx, r.ActOfRotation(caller, m.Next))
}

// ActOfRotation is the audit row of the beginning of a rotation.
func (r *Registry) ActOfRotation(caller gozzard.Caller, next string) AuditEntry {
	return AuditEntry{At: r.o.Now(), Caller: caller, What: auditRotateAuthority + next}
}

// FinishOptions say what the end of a rotation needs beside the members.
type FinishOptions struct {
	Caller  gozzard.Caller
	Confirm int // how many members and servers are cut off

	// Away are the servers that do not have the next authority and do not run.
	Away []string

	// Record makes the end of the rotation count for all servers, with an audit row. This one has ended it when Record
	// returns. nil: this is the only server.
	Record func(ctx context.Context, act AuditEntry) error
}

// FinishAuthority puts the next authority in the place of the present one. It cuts off the members and servers that do not
// know it, so Confirm must be their number.
func (r *Registry) FinishAuthority(ctx context.Context, o FinishOptions) (AuthorityMove, error) {
	// No host may get a certificate of the old authority meanwhile.
	r.enrolling.Lock()
	defer r.enrolling.Unlock()

	// Refuse to cut off those that the caller does not know of.
	m := r.AuthorityMove()
	if m.Next == "" {
		return m, r.o.Authority.Finish() // says so
	}
	if err := o.check(len(m.Waiting)); err != nil {
		return m, err
	}

	// Note it first: the key of the old authority cannot be brought back.
	act := AuditEntry{At: r.o.Now(), Caller: o.Caller, What: auditFinishAuthority + m.Next}
	if o.Record != nil {
		return m, o.Record(ctx, act)
	}
	if err := r.o.Store.NoteAct(ctx, act); err != nil {
		return m, err
	}
	return m, r.EndRotation()
}

// check compares what is cut off with what the caller knows of.
func (o *FinishOptions) check(hosts int) error {
	away := len(o.Away)
	switch n := hosts + away; {
	case n == o.Confirm:
		return nil
	case away > 0:
		return gozzard.Errorf(gozzard.ErrConflict, "%d hosts have not moved to the next authority, and %d servers that do not run "+
			"do not have it: %s. All of them would be cut off: see gozzard key status, or start these servers; to cut them off: "+
			"gozzard key rotate authority --finish --confirm %d", hosts, away, strings.Join(o.Away, ", "), n)
	case o.Confirm == 0:
		return gozzard.Errorf(gozzard.ErrConflict, "%d hosts have not moved to the next authority and would be cut off: "+
			"see gozzard key status; to cut them off: gozzard key rotate authority --finish --confirm %d", n, n)
	default:
		return gozzard.Errorf(gozzard.ErrConflict,
			"%d hosts have not moved to the next authority, not %d: see gozzard key status", n, o.Confirm)
	}
}

// EndRotation uses the next authority alone on this server, and cuts off its members that have not moved.
func (r *Registry) EndRotation() error {
	m := r.AuthorityMove()
	if err := r.o.Authority.Finish(); err != nil {
		return err
	}

	r.mu.Lock()
	cut := r.cut
	r.mu.Unlock()
	for _, agent := range m.Waiting {
		if a, ok := r.member(agent); ok {
			cut(agent, a.Cloud)
		}
	}
	r.o.Log.Info("authority rotation finished", "authority", m.Next, "moved", len(m.Moved), "cut_off", len(m.Waiting))
	return nil
}
