package agent

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// endCommands ends the commands that an earlier run of this agent left running: those of operations in progress, and
// those of supervision. It spares the processes that are on record. It returns what it found for operations.
func (a *Agent) endCommands() map[gozzard.OpID]supervise.Leftover {
	found := map[gozzard.OpID]supervise.Leftover{}
	onRecord := func(key gozzard.Key, p supervise.Proc) bool { return a.state.held[key].Proc == p }
	for _, l := range a.o.Host.EndCommands(onRecord) {
		log := a.log.With("ns", l.Key.Namespace, "proc", l.Key.Name, "action", l.Action, "ended", l.Ended)
		if l.Err != nil {
			log.Error("cannot end a command of the previous run of the agent", "err", l.Err)
		} else {
			log.Warn("ended a command of the previous run of the agent")
		}

		// An operation may have run several commands: the one that cannot be ended matters.
		if before, ok := found[l.Op]; l.Op != (gozzard.OpID{}) && (!ok || before.Err == nil) {
			found[l.Op] = l
		}
	}
	return found
}

// interruptedMessage says what happened to the command of an operation that was in progress when the agent ended.
func interruptedMessage(l supervise.Leftover) string {
	const text = gozzard.InterruptedText
	switch {
	case l.Err != nil:
		return clip(fmt.Sprintf("%s; its command still runs: %v", text, l.Err))
	case l.Ended > 0:
		return text + "; its command was still running and was ended"
	}
	return text
}

// keepStopped ends the supervision of a process that an interrupted stop or kill has ended. Whether the operation counts
// as done or not: a process that was to be stopped and is gone must not be started again.
func (a *Agent) keepStopped(op *operation) error {
	rec, managed := a.state.procs[op.key]
	held, known := a.state.held[op.key]
	ended := op.action == gozzard.ActionStop || op.action == gozzard.ActionKill
	if !ended || !managed || !rec.Hosted || !known || held.IsZero() || a.o.Host.Alive(held.Proc) {
		return nil
	}

	rec.Hosted, rec.Wanted = false, gozzard.StateStopped
	e := entry{Process: &rec}
	lsn, err := a.journal.Write(true, e.encode(recordProcess))
	if err != nil && !errors.Is(err, journal.ErrNoSpace) {
		return err
	}
	a.state.apply(recordProcess, &e, lsn)
	a.log.Warn("an interrupted operation has ended the process: it stays stopped", "op", op.id,
		"ns", op.key.Namespace, "proc", op.key.Name, "action", op.action)
	return nil
}
