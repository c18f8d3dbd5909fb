package agent

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Bounds of what is taken in. The server has its own, tighter ones; these keep a broken one from filling the host.
const (
	maxSpecBytes    = 1 << 20
	maxLabels       = 256
	maxMessageBytes = 64 << 10
	maxBuried       = 100_000
)

var errNotBegun = errors.New("cancelled before it began")

// operate takes in the operations of a command.
func (a *Agent) operate(cmd *gozzard.Command) {
	var start []supervise.Op
	a.mu.Lock()
	for i := range cmd.Ops {
		if op := a.admit(cmd.Session, &cmd.Ops[i]); op != nil {
			start = append(start, a.task(op, &cmd.Ops[i]))
		}
	}
	a.mu.Unlock()
	for _, op := range start {
		a.sup.Apply(op)
	}
}

// admit decides about one operation; nil: nothing is to be run. a.mu is held.
func (a *Agent) admit(session uint64, in *gozzard.Op) *operation {
	known := a.find(in.ID)
	st := gozzard.AgentView{
		Session: a.state.session, Leased: a.contact.Leased(session, a.o.Now()),
		NewestGen: max(a.state.gens[in.Key], a.taken[in.Key]),
	}

	if known != nil {
		st.Phase = known.phase
	}

	switch gozzard.Admit(st, session, in.Gen, in.Action.ReadOnly()) {
	case gozzard.AdmitAnswer:
		a.tell(known)
	case gozzard.AdmitRefuseOld:
		a.bury(a.adopt(in), gozzard.Outcome{Code: gozzard.CodeSuperseded,
			Message: fmt.Sprintf("a newer operation on %s came first (generation %d, newest %d)",
				clip(in.Key.String()), in.Gen, st.NewestGen)})
	case gozzard.AdmitQueue:
		op := a.adopt(in)
		if out, bad := refusal(in); bad {
			a.bury(op, out)
			return nil
		}
		op.phase = gozzard.PhaseQueued
		if !op.action.ReadOnly() {
			a.taken[op.key] = op.gen
		}
		return op
	case gozzard.AdmitRefuseSession:
		a.log.Debug("operation of another session was not taken in", "op", in.ID, "session", session, "current",
			st.Session, "leased", st.Leased)
	}

	return nil
}

// find also knows the tombstones of this session that were acknowledged. a.mu is held.
func (a *Agent) find(id gozzard.OpID) *operation {
	if op := a.state.ops[id]; op != nil {
		return op
	}
	if op := a.buried[id]; op != nil {
		a.state.ops[id] = op // told again, so acknowledged again
		delete(a.buried, id)
		return op
	}
	return nil
}

// adopt makes an operation known. a.mu is held.
func (a *Agent) adopt(in *gozzard.Op) *operation {
	key := gozzard.Key{Namespace: clipName(in.Key.Namespace), Name: clipName(in.Key.Name)} // a valid one stays as it is
	op := &operation{id: in.ID, ref: in.Ref, gen: in.Gen, action: in.Action, key: key}
	a.state.ops[op.id] = op
	return op
}

// refusal checks what arrived. Nothing of it has been looked at before, and names travel into paths and logs.
func refusal(in *gozzard.Op) (out gozzard.Outcome, refused bool) {
	no := func(format string, args ...any) (gozzard.Outcome, bool) {
		return gozzard.Outcome{Code: gozzard.CodeRefused, Message: fmt.Sprintf(format, args...)}, true
	}

	if in.Action == gozzard.ActionNone || in.Action > gozzard.ActionUnregister {
		return gozzard.Outcome{Code: gozzard.CodeUnknownAction,
			Message: fmt.Sprintf("the agent does not know %s", in.Action)}, true
	}

	if in.ID == (gozzard.OpID{}) {
		return no("operation has no id")
	}
	if err := gozzard.ValidateName(in.Key.Namespace); err != nil {
		return no("namespace: %s", clip(err.Error()))
	}
	if err := gozzard.ValidateName(in.Key.Name); err != nil {
		return no("name: %s", clip(err.Error()))
	}
	if len(in.Spec) > maxSpecBytes {
		return no("definition has %d bytes, at most %d are allowed", len(in.Spec), maxSpecBytes)
	}
	if len(in.Labels) > maxLabels {
		return no("there are %d labels, at most %d are allowed", len(in.Labels), maxLabels)
	}

	for k, v := range in.Labels {
		if len(k) > gozzard.MaxNameBytes || len(v) > gozzard.MaxNameBytes {
			return no("a label is longer than %d bytes", gozzard.MaxNameBytes)
		}
	}

	return gozzard.Outcome{}, false
}

// task is the operation as the supervisor runs it.
func (a *Agent) task(op *operation, in *gozzard.Op) supervise.Op {
	t := supervise.Op{ID: op.id, Action: op.action, Key: op.key, Labels: in.Labels, Spec: in.Spec}
	spec := in.Spec

	if op.action.ReadOnly() {
		t.Begin = func() error { return a.judge(op, spec) }
		t.Done = func(out gozzard.Outcome, _ *supervise.Record, _ bool) { a.answered(op, out) }
		return t
	}

	t.Begin = func() error {
		if err := a.judge(op, spec); err != nil {
			return err
		}
		err := a.begin(op)
		if err != nil {
			a.giveRoom(op.key)
		}
		return err
	}

	t.Done = a.acted(in, func(out gozzard.Outcome, rec *supervise.Record,
		removed bool) {
		a.done(op, out, rec, removed)
	})

	return t
}

// answered keeps the answer of a query, in memory: asked again after a crash it is simply run again.
func (a *Agent) answered(op *operation, out gozzard.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if op.phase != gozzard.PhaseQueued {
		return
	}
	op.phase, op.outcome = gozzard.PhaseDone, out
	a.tell(op)
}

// begin makes the intent durable, right before the effect.
func (a *Agent) begin(op *operation) error {
	a.o.Failpoint("intent")
	lsn, err := a.intend(op)
	if err != nil {
		return err
	}
	if err := a.journal.Sync(lsn); err != nil { // the agent is ending; what it finds at its next start is INTERRUPTED
		return err
	}
	a.o.Failpoint("after-intent")
	return nil
}

// intend writes INTENT. Without room the operation never happens. Its tombstone is vital and uses the reserve; when
// not even that has room, "never" is told from memory, which is as good: this process remembers it for the whole
// session, and after the session nobody takes the operation in, because it is of an old one.
func (a *Agent) intend(op *operation) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if !gozzard.MayBegin(op.phase) {
		return 0, errNotBegun
	}

	lsn, err := a.write(false, recordIntent, &entry{Op: op.entry()})
	if errors.Is(err, journal.ErrNoSpace) {
		a.bury(op, gozzard.Outcome{Code: gozzard.CodeRefused,
			Message: "journal of the host has no room: " + err.Error()})
		a.log.Error("operation was refused: the journal has no room", "op", op.id, "ns", op.key.Namespace, "proc",
			op.key.Name)
	}

	if err == nil && a.taken[op.key] <= op.gen {
		delete(a.taken, op.key)
	}

	return lsn, err
}

// done makes the end durable, with the process as it is now, before anything follows from it.
func (a *Agent) done(op *operation, out gozzard.Outcome, rec *supervise.Record, removed bool) {
	a.o.Failpoint("after-effect")
	out.Message = clip(out.Message)
	if lsn := a.end(op, entry{Op: op.entry(), Outcome: &out, Process: rec, Removed: removed}); lsn > 0 {
		if a.journal.Sync(lsn) != nil { // told by fatal
			return
		}
		a.o.Failpoint("after-done")
		a.mu.Lock()
		a.tell(op)
		a.mu.Unlock()
	}
}

// end writes DONE, or keeps it for later when there is no room.
func (a *Agent) end(op *operation, e entry) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()

	if op.phase != gozzard.PhaseBegun {
		return 0
	}
	if len(a.unsaved) > 0 { // in order, so that the newest record of a process wins
		a.unsaved = append(a.unsaved, unsaved{op, e})
		return 0
	}

	lsn, err := a.write(true, recordDone, &e)
	if err == nil {
		delete(a.coming, op.key)
	}

	switch {
	case errors.Is(err, journal.ErrNoSpace):
		a.unsaved = append(a.unsaved, unsaved{op, e})
		a.log.Error("end of an operation cannot be recorded yet: the journal has no room", "op", op.id)
		a.wake()
	case err != nil: // it stays begun, and INTERRUPTED after the restart that follows
		a.log.Error("end of an operation cannot be recorded", "op", op.id, "error", err)
	}

	return lsn
}

// saveEnds tries again what found no room. It reports whether something is left.
func (a *Agent) saveEnds() (left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	for len(a.unsaved) > 0 {
		u := a.unsaved[0]
		if _, err := a.write(true, recordDone, &u.end); err != nil {
			return true
		}
		a.unsaved = a.unsaved[1:]
		delete(a.coming, u.op.key)
		a.tell(u.op)
	}

	a.unsaved = nil
	return false
}

// cancel gives up on what has not begun.
func (a *Agent) cancel(cmd *gozzard.Command) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if cmd.Session != a.state.session {
		return
	}

	for _, id := range cmd.Cancel {
		op := a.find(id)
		if op == nil {
			op = a.adopt(&gozzard.Op{ID: id})
		}
		if next := gozzard.OnCancel(op.phase); next != op.phase {
			a.bury(op, gozzard.Outcome{Code: gozzard.CodeExpired, Message: "cancelled before it began"})
			continue
		}
		a.tell(op)
	}
}

// bury writes a tombstone and has it told. For one without room see intend. a.mu is held.
func (a *Agent) bury(op *operation, out gozzard.Outcome) {
	e := entry{Op: op.entry(), Outcome: &out}
	if _, err := a.write(true, recordNever, &e); err != nil {
		op.phase, op.outcome = gozzard.PhaseNever, out
		if !errors.Is(err, journal.ErrNoSpace) { // the journal is broken and nothing more will be told
			return
		}
	}
	a.tell(op)
}

// acked forgets verdicts that are durable at the server. That itself need not be durable: told again, they are
// acknowledged again. Begun and done operations that come once more are refused by their generation. A tombstone
// may be of an operation that has yet to arrive, so it is remembered until the session ends, which refuses it from
// then on.
func (a *Agent) acked(cmd *gozzard.Command) {
	if len(cmd.Acked) == 0 {
		return
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if cmd.Session != a.state.session {
		return
	}

	var e entry
	for _, id := range cmd.Acked {
		op := a.state.ops[id]
		if op == nil || !op.settled() {
			continue
		}
		if op.phase == gozzard.PhaseNever {
			a.buried[id] = op
		}
		if op.lsn > 0 {
			e.Ops = append(e.Ops, opText(id))
		}
		delete(a.state.ops, id)
	}

	if len(e.Ops) > 0 {
		if _, err := a.write(false, recordAck, &e); err != nil {
			a.log.Debug("acknowledgement was not recorded", "error", err)
		}
	}

	if len(a.buried) > maxBuried { // forgetting some would be wrong; a new session makes all of them needless
		a.contact.greeted(a.state.session)
	}
}

// clip bounds a text that came from elsewhere and keeps it valid.
func clip(s string) string {
	return gozzard.Clip(s, maxMessageBytes)
}

func clipName(s string) string {
	return gozzard.Clip(s, gozzard.MaxNameBytes)
}
