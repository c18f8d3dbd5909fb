package gozzard

import (
	"fmt"
	"log/slog"
)

// Action is what an operation asks of one process. The zero value is no action and is refused everywhere: a
// forgotten field never starts a fleet.
type Action uint8

// The actions.
const (
	ActionNone Action = iota
	ActionStart
	ActionStop
	ActionQuery
	ActionHost
	ActionUnhost
	ActionRestart
	ActionReload
	ActionKill
	ActionRegister
	ActionUpdate
	ActionUnregister
)

var actionNames = [...]string{"none", "start", "stop", "query", "host", "unhost", "restart", "reload", "kill",
	"register", "update", "unregister"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// LogValue is the word.
func (a Action) LogValue() slog.Value { return slog.StringValue(a.String()) }

// ParseAction is the inverse of String; "none" is not accepted.
func ParseAction(s string) (Action, error) {
	for i, n := range actionNames {
		if i > 0 && n == s {
			return Action(i), nil
		}
	}
	return ActionNone, fmt.Errorf("unknown action %q", s)
}

// ReadOnly actions change nothing on the host: they need no place in the order of intents and no journal entry.
func (a Action) ReadOnly() bool { return a == ActionQuery }

// RunsCommand reports whether the action may run a shell command, so that identity and paths must be complete.
func (a Action) RunsCommand() bool {
	switch a {
	case ActionStart, ActionStop, ActionHost, ActionRestart, ActionReload, ActionKill:
		return true
	}
	return false
}

// Supersedes reports whether a newer pending action of this kind makes an older pending one pointless: of start,
// stop, host and unhost only the newest waiting one is sent; restart, reload and kill go in order.
func (a Action) Supersedes(older Action) bool {
	set := func(x Action) bool {
		return x == ActionStart || x == ActionStop || x == ActionHost || x == ActionUnhost
	}
	return set(a) && set(older)
}
