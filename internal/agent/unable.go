package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
)

// A state folder that cannot be written does not end supervision. What the agent learns meanwhile is only in memory,
// and Recover writes all of it when the folder can be written again.
//
// An operation without a durable intent could happen twice: a restarted agent would not know it, and the server would
// take that for proof that it never began. So the agent first gives its journal another id and opens a session with it.
// After a restart the file has the old id again, and the server treats what it does not find there as interrupted, not
// as never begun. Only stop and kill run that way, because a process that cannot be stopped is worse. Everything else
// is rejected. Within one life of the agent the generations in memory keep everything from happening twice.

const (
	lookEvery    = time.Second            // between two looks at the state folder
	announceWait = 10 * time.Second       // how long an operation waits for a session with the new id
	announceLook = 20 * time.Millisecond  // between two looks whether there is one
	roundSoon    = 200 * time.Millisecond // until all statuses say that the folder cannot be written
)

// keep is write for what this life of the agent must know even if it cannot be recorded. Its LSN is 0 then.
func (a *Agent) keep(vital bool, t journal.Type, e *entry) (uint64, error) {
	lsn, err := a.write(vital, t, e)
	if errors.Is(err, journal.ErrUnable) {
		a.state.apply(t, e, 0)
		return 0, nil
	}
	return lsn, err
}

// sync makes everything up to an LSN durable before it is reported. If the journal cannot record, it is enough that the
// server gets the new id with the report.
func (a *Agent) sync(lsn uint64) error {
	err := a.journal.Sync(lsn)
	if errors.Is(err, journal.ErrUnable) && a.journal.Detached() {
		return nil
	}
	return err
}

// mayRunUnrecorded reports whether an action is carried out although it cannot be recorded.
func mayRunUnrecorded(action gozzard.Action) bool {
	return action == gozzard.ActionStop || action == gozzard.ActionKill
}

// beginUnrecorded lets an operation begin whose intent could not be made durable, or rejects it.
func (a *Agent) beginUnrecorded(op *operation, why error) error {
	announced := mayRunUnrecorded(op.action) && a.awaitAnnounced()
	lsn, err := a.keepIntent(op, announced, why)
	if err != nil || lsn == 0 {
		return err
	}

	// The folder can be written again, so the intent must be durable.
	if err = a.journal.Sync(lsn); errors.Is(err, journal.ErrUnable) {
		return a.beginUnrecorded(op, err)
	}
	return err
}

// keepIntent begins an operation if the server knows that it may not be recorded. Otherwise it rejects the operation.
func (a *Agent) keepIntent(op *operation, announced bool, why error) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if op.phase != gozzard.PhaseBegun && !gozzard.MayBegin(op.phase) { // cancelled meanwhile
		return 0, errNotBegun
	}

	// Reject it.
	if !announced {
		text := "the state folder on the host cannot be written, so only stop and kill are carried out: "
		if mayRunUnrecorded(op.action) {
			text = "the state folder on the host cannot be written, and the server does not know it yet, try again: "
		}
		a.writeTombstone(op, gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(text + reasonOf(why))})
		a.log.Error("rejected an operation: the state folder cannot be written",
			"op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "action", op.action)
		return 0, why
	}

	// Begin it.
	lsn, err := a.keep(true, recordIntent, op.intent())
	if err != nil {
		a.writeTombstone(op, gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(err.Error())})
		return 0, err
	}
	if a.queuedGens[op.key] <= op.gen {
		delete(a.queuedGens, op.key)
	}
	if lsn == 0 {
		a.log.Warn("an operation runs without a record: the state folder cannot be written",
			"op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "action", op.action)
	}
	return lsn, nil
}

// awaitAnnounced waits until the server has accepted a session with an id of the journal that is not the one in its
// file, or the journal can record again.
func (a *Agent) awaitAnnounced() bool {
	a.wake()
	for end := time.Now().Add(announceWait); time.Now().Before(end); {
		a.mu.Lock()
		session := a.state.session
		known := a.state.welcomed && a.announced == a.journal.ID()
		a.mu.Unlock()
		if known && (a.journal.Detached() || a.journal.Fault() == nil) && a.contact.Leased(session, a.o.Now()) {
			return true
		}

		select {
		case <-a.ended:
			return false
		case <-time.After(announceLook):
		}
	}
	return false
}

// watchState notices that the state folder cannot be written, makes it known, and records again as soon as it can. It
// returns when to look again.
func (a *Agent) watchState(now time.Time) time.Time {
	if a.o.Simulated {
		return time.Time{}
	}
	p := &a.plan
	known := a.stateFault() != ""
	if p.look.After(now) && (known || a.journal.Fault() == nil) {
		return p.look
	}

	p.look = now.Add(lookEvery)
	err := a.journal.Check()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // it says nothing about the folder
		return p.look
	}
	if errors.Is(err, journal.ErrUnable) {
		err = a.recoverJournal(err)
	}
	a.setStateFault(err, now)
	return p.look
}

// recoverJournal tries to record again. If that is not possible, it gives the journal another id, and returns why.
func (a *Agent) recoverJournal(fault error) error {
	a.mu.Lock()
	defer a.mu.Unlock()

	err := a.journal.Recover(a.state.snapshot(!a.trial), a.restoreID)
	if err != nil {
		a.log.Debug("the journal still cannot record", "err", err)
		a.journal.Detach()
		return fmt.Errorf("%w (%w)", fault, err)
	}

	for _, op := range a.state.ops {
		op.unrecorded = false
	}
	a.log.Warn("the journal records again", "dir", a.o.Dir, "was", reasonOf(fault))
	return a.journal.Check()
}

// restoreID writes the identity of the agent into a state folder that was made again.
func (a *Agent) restoreID() error {
	if _, err := os.Lstat(filepath.Join(a.o.Dir, identityName)); err == nil {
		return nil
	}
	a.log.Warn("the state folder was deleted and is made again: other files that were in it are lost, such as the "+
		"policy and what a host has from its enrolment; put them back before the agent is restarted", "dir", a.o.Dir)
	return storeID(a.journal, a.info.Agent)
}

// setStateFault makes a change of the fault known: in the log, in all statuses, and to the server, which learns it from
// the HELLO of a new session.
func (a *Agent) setStateFault(err error, now time.Time) {
	text := ""
	if err != nil {
		text = reasonOf(err)
	}
	a.faultMu.Lock()
	changed := (a.fault == "") != (text == "")
	a.fault = text
	a.faultMu.Unlock()

	id := a.journal.ID()
	if !changed && (text == "" || id == a.plan.reportedID) {
		return
	}
	a.plan.reportedID = id

	if text == "" {
		a.log.Info("the state folder can be written again", "dir", a.o.Dir)
	} else {
		a.log.Error(gozzard.StateUnwritable+": supervision goes on, output of commands is dropped, and nothing survives "+
			"a restart of the agent that could not be recorded", "dir", a.o.Dir, "err", text)
	}

	a.mu.Lock()
	session := a.state.session
	a.mu.Unlock()
	a.contact.requestSession(session)
	a.plan.round = now.Add(roundSoon)
}

// stateFault returns why the state folder cannot be written, or "".
func (a *Agent) stateFault() string {
	a.faultMu.Lock()
	defer a.faultMu.Unlock()
	return a.fault
}

// hostInfo is the description of the host, with the present faults of the state folder and of the policy.
func (a *Agent) hostInfo() gozzard.HostInfo {
	info := a.info
	info.Form, info.History = gozzard.DefinitionForm, a.o.History != nil
	info.Files = a.o.Files != nil
	if a.o.PolicyDigest != nil {
		info.PolicyDigest = a.o.PolicyDigest()
	}
	info.DefaultAccount = a.defaultAccount()
	if a.o.PolicyFault != nil {
		if err := a.o.PolicyFault(); err != nil {
			info.Degraded = append(slices.Clone(info.Degraded), clip("the policy file of this host is invalid, and the last valid "+
				"policy stays in effect: "+strings.ReplaceAll(err.Error(), "\n", "; ")))
		}
	}
	if fault := a.stateFault(); fault != "" {
		info.Degraded = append(slices.Clone(info.Degraded), gozzard.StateUnwritable+" ("+fault+
			"): supervision goes on, but what cannot be recorded is lost if the agent restarts, and output is dropped")
	}
	return info
}

// withFault adds the fault of the state folder to the message of a status.
func (a *Agent) withFault(st gozzard.Status) gozzard.Status {
	if fault := a.stateFault(); fault != "" {
		st.Message = clip(joinText(st.Message, gozzard.StateUnwritable+" on this host: "+fault))
	}
	return st
}

// opReport is what the server gets about an operation. The caller holds a.mu.
func (a *Agent) opReport(op *operation) gozzard.OpReport {
	r := op.report()
	if op.unrecorded && op.phase == gozzard.PhaseDone && a.journal.Fault() != nil {
		note := "the host could not record this, because " + gozzard.StateUnwritable +
			"; if its agent is restarted before that is mended, it acts on its older record"
		if mayRunUnrecorded(op.action) {
			note += " and may start the process again"
		}
		r.Outcome.Message = clip(joinText(r.Outcome.Message, note))
	}
	return r
}

func joinText(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// reasonOf is the text of an error of the journal, without the words that every such error begins with.
func reasonOf(err error) string {
	return strings.TrimPrefix(err.Error(), journal.ErrUnable.Error()+": ")
}
