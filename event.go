package gozzard

import (
	"fmt"
	"strconv"
	"strings"
)

// EventKind says what happened to a process or a host. The values are stored, sent and visible to callers, so they do not
// change.
type EventKind string

// The kinds of events.
const (
	EventStarted            EventKind = "started"                 // by an operation, or found running
	EventStartFailed        EventKind = "start_failed"            // an operation could not start it
	EventExited             EventKind = "exited"                  // whatever the reason
	EventRestarted          EventKind = "process_restart_success" // by the agent, because it was not running or unhealthy
	EventRestartFailed      EventKind = "process_restart_failed"
	EventRestartCancelled   EventKind = "process_cancel_restart" // an operation stopped it, or ended its supervision
	EventLimitExceeded      EventKind = "process_resource_limit_exceed"
	EventGroupLimitExceeded EventKind = "process_group_resource_limit_exceed"
	EventHealth             EventKind = "health"     // its health check began to fail, or passed again
	EventRan                EventKind = "ran"        // a periodic or one-shot process ended by itself
	EventOrphaned           EventKind = "orphaned"   // its main process ended, others of its processes still run
	EventCrashLoop          EventKind = "crash_loop" // it ended quickly for the CrashLoopExits-th time in a row

	// EventForeignAddress is about a host and has no process: its agent reported addresses that are not its own.
	EventForeignAddress EventKind = "foreign_address"
	// EventPolicyChanged is about a host and has no process: its policy or its release key is not what it was.
	EventPolicyChanged EventKind = "policy_changed"
	// EventHostLost and EventHostBack are about a host and have no process: its agent is silent, or reports again.
	EventHostLost EventKind = "host_lost"
	EventHostBack EventKind = "host_back"
	// EventTaskFailed is about a task, and has no host: attempts of it failed. It has a process if all attempts are of one.
	EventTaskFailed EventKind = "task_failed"
	// EventLeftOut is about a business, and has neither a host nor a process: a part of its source was not taken over.
	EventLeftOut EventKind = "topology_left_out"
)

// EventKindInfo is a kind with its meaning, as help and pages show it.
type EventKindInfo struct {
	Kind    EventKind
	Meaning string
}

// EventKinds is the list of all kinds.
func EventKinds() []EventKindInfo {
	return []EventKindInfo{
		{EventStarted, "an operation started the process, or the agent found it running"},
		{EventStartFailed, "an operation could not start the process; the message says why"},
		{EventExited, "the process ended, with exit code, signal and core dump if they are known"},
		{EventRestarted, "the agent restarted the process"},
		{EventRestartFailed, "the agent could not restart the process"},
		{EventRestartCancelled, "a planned restart was cancelled: by an operation, or after too many ends"},
		{EventLimitExceeded, "the process was over a limit"},
		{EventGroupLimitExceeded, "the pool of the namespace was over a limit"},
		{EventHealth, "the health check began to fail, or passes again"},
		{EventRan, "a run of a periodic or one-shot process ended"},
		{EventOrphaned, "the main process ended, and other processes of it still run"},
		{EventCrashLoop, "the process ended quickly several times in a row; the agent starts it again after longer and longer pauses"},
		{EventHostLost, "about a host: its agent is silent"},
		{EventHostBack, "about a host: its agent reports again"},
		{EventTaskFailed, "about a task: it has ended, and attempts of it failed"},
		{EventForeignAddress, "about a host: its agent reported addresses that are not its own"},
		{EventPolicyChanged, "about a host: its policy or its release key is not what it was"},
		{EventLeftOut, "about a business: a part of what CMDB has was not taken over"},
	}
}

// Event is something that happened to one process on one host. The agent numbers its events with Seq, which only grows
// within one journal.
type Event struct {
	Seq     uint64    `json:"seq"`
	Key     Key       `json:"key"`
	Kind    EventKind `json:"kind"`
	At      int64     `json:"at"` // Unix milliseconds
	PID     int       `json:"pid,omitempty"`
	Code    int       `json:"code,omitempty"`   // exit code; -1 when a signal ended the process
	Known   bool      `json:"known,omitempty"`  // Code is the exit code; earlier versions did not say so
	Signal  string    `json:"signal,omitempty"` // such as SIGKILL
	Core    bool      `json:"core,omitempty"`   // the kernel wrote a core dump
	Message string    `json:"message,omitempty"`
	Cause   Cause     `json:"cause,omitzero"` // the operation that caused it; zero: none
}

// ExitCode is the exit code of an event that has one. It is not known if a signal ended the process, or if nobody saw how
// it ended. Agents of earlier versions do not tell an unknown code from 0, so their 0 is not known.
func (e *Event) ExitCode() (code int, known bool) {
	known = e.Signal == "" && (e.Known || e.Code > 0)
	if !known {
		return 0, false
	}
	return e.Code, true
}

// Cause names the operation that caused an event. An agent claims it; the server checks it against the record.
type Cause struct {
	Op  OpID
	Ref AttemptRef
}

// IsZero reports whether there is no cause.
func (c Cause) IsZero() bool { return c == Cause{} }

// MarshalText writes the cause as operation, task and index with colons between.
func (c Cause) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s:%d:%d", c.Op, c.Ref.Task, c.Ref.Index), nil
}

// UnmarshalText is the inverse of MarshalText.
func (c *Cause) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ":")
	if len(parts) != 3 {
		return fmt.Errorf("%.80q is not the cause of an event", text)
	}

	op, err := ParseOpID(parts[0])
	if err != nil {
		return err
	}
	task, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return fmt.Errorf("%.80q is not the cause of an event: %w", text, err)
	}
	index, err := strconv.ParseInt(parts[2], 10, 32)
	if err != nil {
		return fmt.Errorf("%.80q is not the cause of an event: %w", text, err)
	}

	*c = Cause{Op: op, Ref: AttemptRef{Task: TaskSeq(task), Index: int32(index)}}
	return nil
}
