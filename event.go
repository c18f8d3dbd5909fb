package gozzard

// EventKind says what happened to a process or a host. The values are stored, sent and visible to callers, so they do not
// change.
type EventKind string

// The kinds of events.
const (
	EventStarted            EventKind = "started"                 // by an operation, or found running
	EventExited             EventKind = "exited"                  // whatever the reason
	EventRestarted          EventKind = "process_restart_success" // by the agent, because it was not running or unhealthy
	EventRestartFailed      EventKind = "process_restart_failed"
	EventRestartCancelled   EventKind = "process_cancel_restart" // an operation stopped it, or ended its supervision
	EventLimitExceeded      EventKind = "process_resource_limit_exceed"
	EventGroupLimitExceeded EventKind = "process_group_resource_limit_exceed"
	EventHealth             EventKind = "health"   // its health check began to fail, or passed again
	EventRan                EventKind = "ran"      // a periodic or one-shot process ended by itself
	EventOrphaned           EventKind = "orphaned" // its main process ended, others of its processes still run

	// EventForeignAddress is about a host and has no process: its agent reported addresses that are not its own.
	EventForeignAddress EventKind = "foreign_address"
	// EventPolicyChanged is about a host and has no process: its policy or its release key is not what it was.
	EventPolicyChanged EventKind = "policy_changed"
)

// Event is something that happened to one process on one host. The agent numbers its events with Seq, which only grows
// within one journal.
type Event struct {
	Seq     uint64    `json:"seq"`
	Key     Key       `json:"key"`
	Kind    EventKind `json:"kind"`
	At      int64     `json:"at"` // Unix milliseconds
	PID     int       `json:"pid,omitempty"`
	Code    int       `json:"code,omitempty"`   // exit code; -1 when a signal ended the process
	Signal  string    `json:"signal,omitempty"` // such as SIGKILL
	Core    bool      `json:"core,omitempty"`   // the kernel wrote a core dump
	Message string    `json:"message,omitempty"`
}
