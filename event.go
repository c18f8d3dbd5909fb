package gozzard

// EventKind says what happened to a process. The words with an underscore are those that callers of the process API
// know.
type EventKind string

// The kinds of events.
const (
	EventStarted            EventKind = "started"
	EventExited             EventKind = "exited"
	EventRestartSuccess     EventKind = "process_restart_success"
	EventRestartFailed      EventKind = "process_restart_failed"
	EventCancelRestart      EventKind = "process_cancel_restart"
	EventLimitExceeded      EventKind = "process_resource_limit_exceed"
	EventGroupLimitExceeded EventKind = "process_group_resource_limit_exceed"
	EventHealth             EventKind = "health" // became failing or well again
	EventRan                EventKind = "ran"    // a periodic or one-shot process ended by itself
)

// Event is something that happened to one process on one host. Seq counts on the agent and never goes back within
// one journal.
type Event struct {
	Seq     uint64    `json:"seq"`
	Key     Key       `json:"key"`
	Kind    EventKind `json:"kind"`
	At      int64     `json:"at"` // Unix milliseconds
	PID     int       `json:"pid,omitempty"`
	Code    int       `json:"code,omitempty"`   // exit code, -1 when it was ended by a signal
	Signal  string    `json:"signal,omitempty"` // such as SIGKILL
	Core    bool      `json:"core,omitempty"`
	Message string    `json:"message,omitempty"`
}
