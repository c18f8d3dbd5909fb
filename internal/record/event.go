package record

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// Event is an event of the fleet. Its ID is drawn when it is recorded: IDs are in the order of commits, follow the clock
// and are never used again. Seq is the agent's number, which is not recorded with the event.
type Event struct {
	ID    uint64
	Agent gozzard.AgentID
	Addr  gozzard.HostAddr
	gozzard.Event

	// The task that caused it, checked against the record. Zero: none is known, or the reader may not read that task.
	Task gozzard.TaskID
	App  string
	User string
}

// EventCause is an attempt that may have caused an event, as the record has it.
type EventCause struct {
	Op    gozzard.OpID
	Agent gozzard.AgentID
	Key   gozzard.Key
	Task  gozzard.TaskID
	App   string
	User  string
}

// EventFilter chooses events; every field that is not empty must fit, and a list fits when one of its values does.
type EventFilter struct {
	Namespaces []string // patterns with * and ?
	Names      []string // patterns with * and ?
	Agents     []gozzard.AgentID
	Kinds      []gozzard.EventKind
	Since      time.Time // happened then or later
}

// Fits reports whether an event is chosen.
func (f *EventFilter) Fits(e *Event) bool {
	return f.FitsSource(e.Agent, e.Key, e.Kind) && (f.Since.IsZero() || e.At >= f.Since.UnixMilli())
}

// FitsSource reports whether events of a kind of a process of an agent can be chosen.
func (f *EventFilter) FitsSource(agent gozzard.AgentID, key gozzard.Key, kind gozzard.EventKind) bool {
	has := func(list []string, s string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(pattern string) bool {
			return gozzard.MatchGlob(pattern, s)
		})
	}
	return has(f.Namespaces, key.Namespace) && has(f.Names, key.Name) &&
		(len(f.Agents) == 0 || slices.Contains(f.Agents, agent)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind))
}

// AllSources reports whether events of every kind, of all processes of all agents can be chosen.
func (f *EventFilter) AllSources() bool {
	return len(f.Namespaces)+len(f.Names)+len(f.Agents)+len(f.Kinds) == 0
}

// EventPage is a part of the events, in the order in which they arrived.
type EventPage struct {
	Events []Event
	Next   uint64 // where to continue: the number of the newest event that was read
	Lost   bool   // some events after the given number may be missing: they are old, and were removed
}

// EventQuery asks the record for events.
type EventQuery struct {
	After, UpTo uint64 // numbers above After and up to UpTo
	Filter      EventFilter
	Sees        func(agent gozzard.AgentID, addr gozzard.HostAddr, namespace string) bool // nil: everything is seen
	Newest      bool                                                                      // the newest that fit, not the oldest
	Limit       int
}

// EventState says what the record has of events.
type EventState struct {
	Last    uint64 // the number of the newest event that was ever recorded
	Removed uint64 // the highest number of an event that was removed
}

// EventKeep says how long events are kept.
type EventKeep struct {
	Before time.Time // those that were recorded before are removed
	// Most is how many stay. Of more the oldest are removed: of the hosts with the most, there of the namespaces with the
	// most, and there of the processes and kinds with the most.
	Most int
}
