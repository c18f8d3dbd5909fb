package agent

import (
	"fmt"

	"github.com/gozzard/gozzard"
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
