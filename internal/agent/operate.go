package agent

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Limits of what the agent accepts. The server has tighter ones; these protect the host from a broken server.
const (
	maxSpecBytes    = 1 << 20
	maxLabels       = 256
	maxMessageBytes = 64 << 10
	maxTombstones   = 100_000
)

var errNotBegun = errors.New("cancelled before it began")

// handleOperate accepts the operations of a command.
func (a *Agent) handleOperate(cmd *gozzard.Command) {
	var start []supervise.Op
	a.mu.Lock()
	for i := range cmd.Ops {
		op := a.accept(cmd.Session, &cmd.Ops[i])
		switch {
		case op == nil:
		case op.action.OnFile():
			a.queueFile(op, &cmd.Ops[i])
		case op.action == gozzard.ActionScript:
			a.queueScript(op, &cmd.Ops[i])
		case op.action.OnAgent():
			a.queueRestart(op, &cmd.Ops[i])
		default:
			start = append(start, a.supervisorOp(op, &cmd.Ops[i]))
		}
	}
	a.mu.Unlock()

	for _, op := range start {
		if op.Action == gozzard.ActionUnhost && a.forbids(op.Key.Namespace, op.Spec) {
			op.Spec = nil // nothing of it is stored; the process is let go by the definition that is there
		}
		a.sup.Apply(op)
	}
}

// accept decides about one operation. It returns nil if there is nothing to run. The caller holds a.mu.
func (a *Agent) accept(session uint64, in *gozzard.Op) *operation {
	// Collect what the decision depends on.
	known := a.findOp(in.ID)
	view := gozzard.AgentView{
		Session: a.state.session, Leased: a.contact.Leased(session, a.o.Now()),
		NewestGen: max(a.state.gens[in.Key], a.queuedGens[in.Key]),
	}
	if known != nil {
		view.Phase = known.phase
	}

	// Leave what is new to the next run of the agent if this one is about to end.
	if a.restarting && known == nil {
		a.log.Debug("an operation waits for the restart of the agent", "op", in.ID)
		return nil
	}

	// Decide.
	switch gozzard.Admit(view, session, in.Gen, in.Action.ReadOnly()) {
	case gozzard.AdmitAnswer:
		a.queueResult(known)
	case gozzard.AdmitRefuseOld:
		a.writeTombstone(a.addOp(in), gozzard.Outcome{
			Code: gozzard.CodeSuperseded,
			Message: fmt.Sprintf("not executed: this operation has generation %d, but the host has generation %d on "+
				"record for %s and executes newer ones only; if the operation is still wanted, send it again",
				in.Gen, view.NewestGen, clip(in.Key.String())),
		})
	case gozzard.AdmitQueue:
		op := a.addOp(in)
		if out, bad := checkOp(in); bad {
			a.writeTombstone(op, out)
			return nil
		}
		op.phase = gozzard.PhaseQueued
		if !op.action.ReadOnly() {
			a.queuedGens[op.key] = op.gen
		}
		return op
	case gozzard.AdmitRefuseSession:
		a.log.Debug("rejected an operation of another session",
			"op", in.ID, "session", session, "current", view.Session, "leased", view.Leased)
	}
	return nil
}

// findOp returns a known operation. It also finds the acknowledged tombstones of this session. The caller holds a.mu.
func (a *Agent) findOp(id gozzard.OpID) *operation {
	if op := a.state.ops[id]; op != nil {
		return op
	}
	if op := a.tombstones[id]; op != nil {
		a.state.ops[id] = op // its result is sent again, and the server acknowledges it again
		delete(a.tombstones, id)
		return op
	}
	return nil
}

// addOp adds an operation to the state. The caller holds a.mu.
func (a *Agent) addOp(in *gozzard.Op) *operation {
	// A valid key is not changed by this.
	key := gozzard.Key{Namespace: clipName(in.Key.Namespace), Name: clipName(in.Key.Name)}
	op := &operation{id: in.ID, ref: in.Ref, gen: in.Gen, action: in.Action, key: key, arrived: a.o.Now(),
		trace: gozzard.Trace(gozzard.Clip(in.Trace.Parent(), gozzard.TraceParentBytes))}
	a.state.ops[op.id] = op
	return op
}

// checkOp checks an operation. Nothing has checked it before on this host, and its names are in logs and in the
// environment of its commands. Files and control groups have digests of them.
func checkOp(in *gozzard.Op) (out gozzard.Outcome, rejected bool) {
	reject := func(format string, args ...any) (gozzard.Outcome, bool) {
		return gozzard.Outcome{Code: gozzard.CodeRefused, Message: fmt.Sprintf(format, args...)}, true
	}

	if !in.Action.Valid() {
		return gozzard.Outcome{
			Code: gozzard.CodeUnknownAction, Message: fmt.Sprintf("the agent does not know %s", in.Action),
		}, true
	}

	if in.ID == (gozzard.OpID{}) {
		return reject("operation has no id")
	}
	if err := gozzard.ValidateProcessName(in.Key.Namespace); err != nil {
		return reject("namespace: %s", clip(err.Error()))
	}
	if err := gozzard.ValidateProcessName(in.Key.Name); err != nil {
		return reject("name: %s", clip(err.Error()))
	}

	if len(in.Spec) > maxSpecBytes {
		return reject("definition has %d bytes, at most %d are allowed", len(in.Spec), maxSpecBytes)
	}
	if len(in.Labels) > maxLabels {
		return reject("there are %d labels, at most %d are allowed", len(in.Labels), maxLabels)
	}
	for k, v := range in.Labels {
		if len(k) > gozzard.MaxNameBytes || len(v) > gozzard.MaxProcessNameBytes {
			return reject("a label is longer than %d bytes", gozzard.MaxProcessNameBytes)
		}
	}

	return gozzard.Outcome{}, false
}

// supervisorOp is the operation as the supervisor runs it.
func (a *Agent) supervisorOp(op *operation, in *gozzard.Op) supervise.Op {
	t := supervise.Op{ID: op.id, Ref: op.ref, Action: op.action, Key: op.key, Labels: in.Labels, Spec: in.Spec,
		Adopt: in.Adopt}
	if a.o.Policy != nil {
		t.Account = a.o.Policy.KeptAccount
	}
	spec, account := in.Spec, in.Account

	// A query needs no journal.
	if op.action.ReadOnly() {
		t.Begin = func() error {
			a.noteBegin(op)
			return a.checkPolicy(op, spec, account)
		}
		t.Done = func(out gozzard.Outcome, _ *supervise.Record, _ bool) {
			if op.veiled && out.Detail != nil {
				out.Detail.Cmdline = ""
			}
			a.finishQuery(op, out)
		}
		return t
	}

	// Everything else has its intent and its end there.
	t.Begin = func() error {
		if err := a.checkPolicy(op, spec, account); err != nil {
			return err
		}
		a.noteFirst(op, &t)
		err := a.begin(op)
		if err != nil {
			a.uncountProcess(op.key)
		}
		return err
	}

	t.Done = a.reportAct(in, func(out gozzard.Outcome, rec *supervise.Record, removed bool) {
		a.finish(op, out, rec, removed)
	})
	return t
}

// finishQuery stores the answer to a query in memory only: if a crash loses it, the server asks again.
func (a *Agent) finishQuery(op *operation, out gozzard.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if op.phase != gozzard.PhaseQueued {
		return
	}
	op.phase, op.outcome = gozzard.PhaseDone, out
	a.noteEnd(op)
	a.queueResult(op)
}

// begin makes the intent durable, right before the effect.
func (a *Agent) begin(op *operation) error {
	a.o.Failpoint("intent")
	lsn, err := a.writeIntent(op)
	if err == nil {
		err = a.journal.Sync(lsn)
	}
	if errors.Is(err, journal.ErrUnable) {
		err = a.beginUnrecorded(op, err)
	}
	if err != nil { // after a failed sync the agent is ending; its next start finds the operation INTERRUPTED
		return err
	}
	a.o.Failpoint("after-intent")
	a.noteBegin(op)
	return nil
}

// endsWork reports whether an action only ends something. Such actions may use the headroom of the journal: what fills
// the disk may be the process that they end.
func endsWork(action gozzard.Action) bool {
	return action == gozzard.ActionStop || action == gozzard.ActionKill || action == gozzard.ActionUnhost
}

// writeIntent writes INTENT. If there is no room on the disk, the operation never happens. Its tombstone may not use the
// reserve of the journal, or rejected operations could use it up. It is sent from memory. That is as good: this process
// remembers it for the whole session, and after the session the operation is rejected because its session is old.
func (a *Agent) writeIntent(op *operation) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if !gozzard.MayBegin(op.phase) {
		return 0, errNotBegun
	}

	write := a.write
	if endsWork(op.action) {
		write = a.writeEnding
	}
	lsn, err := write(false, recordIntent, op.intent())
	if errors.Is(err, journal.ErrNoSpace) {
		a.writeTombstone(op, gozzard.Outcome{
			Code: gozzard.CodeRefused, Message: "the disk of the journal on the host is full: " + err.Error(),
		})
		a.log.Error("rejected an operation: the disk of the journal is full",
			"op", op.id, "ns", op.key.Namespace, "proc", op.key.Name)
	}
	if err == nil && a.queuedGens[op.key] <= op.gen {
		delete(a.queuedGens, op.key)
	}
	return lsn, err
}

// handleCancel cancels operations that have not begun.
func (a *Agent) handleCancel(cmd *gozzard.Command) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if cmd.Session != a.state.session {
		return
	}

	working := a.processesAtWork()
	for _, id := range cmd.Cancel {
		op := a.findOp(id)
		if op == nil {
			op = a.addOp(&gozzard.Op{ID: id})
		}
		if next := gozzard.OnCancel(op.phase); next != op.phase {
			a.writeTombstone(op, cancelled(op, working))
			continue
		}
		a.queueResult(op)
	}
}

// processesAtWork lists the processes on which an operation runs, or on which several wait: between the end of one and
// the begin of the next none runs. The caller holds a.mu.
func (a *Agent) processesAtWork() map[gozzard.Key]bool {
	working, waiting := map[gozzard.Key]bool{}, map[gozzard.Key]bool{}
	for _, op := range a.state.ops {
		switch op.phase {
		case gozzard.PhaseBegun:
			working[op.key] = true
		case gozzard.PhaseQueued:
			working[op.key] = working[op.key] || waiting[op.key]
			waiting[op.key] = true
		}
	}
	return working
}

// cancelled is the outcome of an operation that is cancelled before it began. The server cancels operations whose time
// is over.
func cancelled(op *operation, working map[gozzard.Key]bool) gozzard.Outcome {
	switch {
	case op.phase == gozzard.PhaseAbsent:
		return gozzard.Outcome{Code: gozzard.CodeExpired,
			Message: "not executed: its time was over before it reached the host"}
	case working[op.key]:
		return gozzard.Outcome{Code: gozzard.CodeBusy,
			Message: "not executed: its time was over while it waited for other operations on the same process, which " +
				"run one after the other; if it is still wanted, send it again"}
	}
	return gozzard.Outcome{Code: gozzard.CodeBusy,
		Message: "not executed: its time was over while it waited for other operations on this host; " +
			"if it is still wanted, send it again"}
}

// clip limits the length of a text from outside and makes it valid UTF-8.
func clip(s string) string {
	return gozzard.Clip(s, maxMessageBytes)
}

func clipName(s string) string {
	return gozzard.Clip(s, gozzard.MaxProcessNameBytes)
}
