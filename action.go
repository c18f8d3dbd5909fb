package gozzard

import (
	"fmt"
	"log/slog"
	"slices"
)

// Action is what an operation does to one process. The zero value is no action and is rejected everywhere, so a
// forgotten field never starts a fleet.
type Action uint8

// The actions. Their numbers are sent and stored.
const (
	ActionNone         Action = iota
	ActionStart               // start the process and supervise it
	ActionStop                // stop the process; it is not started again
	ActionQuery               // report the process and change nothing
	ActionHost                // supervise the process
	ActionUnhost              // stop supervising the process; it keeps running
	ActionRestart             // stop and start the process, or run its restart command
	ActionReload              // run the reload command
	ActionKill                // end the process at once
	ActionRegister            // record a definition for the host, unless it has one
	ActionUpdate              // replace the definition that the host has
	ActionUnregister          // remove the definition from the host
	ActionConfigure           // write a file (FileSpec); it is about no process
	ActionScript              // run a script (ScriptSpec); it is about no process
	ActionTransfer            // write a file (FileSpec) that was read on another host
	ActionRestartAgent        // restart the agent (RestartSpec); it is about no process
)

var actionNames = [...]string{"none", "start", "stop", "query", "manage", "unmanage", "restart", "reload", "kill",
	"register", "update", "unregister", "configure", "script",
	"transfer", "restart-agent"}

// The words of earlier versions, which are BlueKing's. They are accepted everywhere.
const (
	wordHost   = "host"
	wordUnhost = "unhost"
)

// ActionWords are the words of all actions.
func ActionWords() []string { return slices.Clone(actionNames[ActionStart:]) }

// String is the word for the action.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// LogValue is the action as logs show it.
func (a Action) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Stored is the word for the action in what is stored and in digests of it. It never changes, so that a record can be
// read, and a digest compared, by earlier and later versions.
func (a Action) Stored() string {
	switch a {
	case ActionHost:
		return wordHost
	case ActionUnhost:
		return wordUnhost
	}
	return a.String()
}

// ParseAction is the inverse of String and of Stored; "none" is not accepted.
func ParseAction(s string) (Action, error) {
	switch s {
	case wordHost:
		return ActionHost, nil
	case wordUnhost:
		return ActionUnhost, nil
	}

	for i, n := range actionNames {
		if i > 0 && n == s {
			return Action(i), nil
		}
	}
	return ActionNone, fmt.Errorf("unknown action %q", s)
}

// ReadOnly reports whether the action changes nothing on the host. Such an action needs no place in the order of
// operations and no journal entry.
func (a Action) ReadOnly() bool { return a == ActionQuery }

// OnFile reports whether the action is about a file and not about a process.
func (a Action) OnFile() bool { return a == ActionConfigure || a == ActionTransfer }

// OnProcess reports whether the action is about a process, so that its definition is one of a process.
func (a Action) OnProcess() bool { return !a.OnFile() && a != ActionScript && !a.OnAgent() }

// OnAgent reports whether the action is about the agent of a host. It runs as no account.
func (a Action) OnAgent() bool { return a == ActionRestartAgent }

// Listed reports whether only a grant that lists the action gives the right to it: no role has it, not even that of admins.
func (a Action) Listed() bool { return a == ActionScript || a == ActionTransfer }

// Named reports whether an operator has the right to the action only by a grant that lists it. Admins have it.
func (a Action) Named() bool { return a == ActionConfigure || a.OnAgent() }

// Valid reports whether the action exists.
func (a Action) Valid() bool { return a > ActionNone && a <= ActionRestartAgent }

// RunsCommand reports whether the action may run a shell command. The definition must then have a user and paths.
func (a Action) RunsCommand() bool {
	switch a {
	case ActionStart, ActionStop, ActionHost, ActionRestart, ActionReload, ActionKill:
		return true
	}
	return false
}

// Supersedes reports whether the action makes an older one that still waits for its host pointless. Of start, stop,
// manage and unmanage only the newest is sent; restart, reload and kill are all sent, in their order.
func (a Action) Supersedes(older Action) bool {
	set := func(x Action) bool {
		return x == ActionStart || x == ActionStop || x == ActionHost || x == ActionUnhost
	}
	return set(a) && set(older)
}
