package record

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// Event is an event of the fleet. ID counts on this server and goes on over its restarts.
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
	has := func(list []string, s string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(pattern string) bool {
			return gozzard.MatchGlob(pattern, s)
		})
	}
	return has(f.Namespaces, e.Key.Namespace) && has(f.Names, e.Key.Name) &&
		(len(f.Agents) == 0 || slices.Contains(f.Agents, e.Agent)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) && (f.Since.IsZero() || e.At >= f.Since.UnixMilli())
}

// EventPage is a part of the events, in the order in which they arrived.
type EventPage struct {
	Events []Event
	Next   uint64 // where to continue: the number of the newest event that was read
	Lost   bool   // some events after the given number may be missing: only the newest are in memory
}
