package gozzard

// Code is the reason of an outcome. Codes are stored, sent and shown, so they do not change. Each door has one table
// that turns them into its numbers.
type Code string

// The codes of an outcome.
const (
	CodeOK             Code = "ok"
	CodeAlreadyRunning Code = "already_running" // nothing was done: the process to start was running
	CodeNotRunning     Code = "not_running"     // nothing was done: the process to stop or kill was not running
	// the command succeeded, but the process is not in the wanted state
	CodeCheckFailed Code = "check_failed"
	// the command failed, timed out or does not exist; Message has its output
	CodeCommandFailed Code = "command_failed"
	CodeNoDefinition  Code = "no_definition" // the host and the record have no definition
	// the host refused: policy, unknown account, unsafe path, full disk
	CodeRefused           Code = "refused"
	CodeUnknownAction     Code = "unknown_action"     // the caller asked for an action that does not exist
	CodeAlreadyRegistered Code = "already_registered" // the process to register has a definition
	CodeUnreachable       Code = "unreachable"        // the host is unknown, or its agent does not answer
	// the agent or the host went down during the operation; it was done at most once
	CodeInterrupted Code = "interrupted"
	CodeSuperseded  Code = "superseded" // a newer operation on the same process replaced it
	CodeExpired     Code = "expired"    // its time was over before the host had it
	CodeCancelled   Code = "cancelled"  // its caller cancelled it before it was sent to the host
	CodeBusy        Code = "busy"       // its time was over while it waited for other operations
)

// InterruptedText begins the message of an agent about an operation that was in progress when the agent ended. After
// "; " follows what became of its command, if the command was still running.
const InterruptedText = "the agent ended in the middle of the operation"

// Outcome is the result of one attempt.
type Outcome struct {
	Code    Code    `json:"code"`
	Message string  `json:"message,omitempty"`
	Hosted  bool    `json:"hosted,omitempty"`
	Forced  bool    `json:"forced,omitempty"` // the process did not stop in time and was killed
	Policy  bool    `json:"policy,omitempty"` // with CodeRefused: the policy of the host forbids it
	Detail  *Detail `json:"detail,omitempty"` // of queries

	Script *ScriptResult `json:"script,omitempty"` // of scripts that were run
	File   FileResult    `json:"file,omitzero"`    // of operations on files
}

// Detail is what a query reports about one process.
type Detail struct {
	PID          int     `json:"pid"` // -1 when not running
	Hosted       bool    `json:"hosted"`
	Cmdline      string  `json:"cmdline,omitempty"`
	Version      string  `json:"version,omitempty"`
	Health       string  `json:"health,omitempty"`
	CPU          float64 `json:"cpu"`     // percent of the machine, now
	CPUAvg       float64 `json:"cpu_avg"` // percent of the machine, since the process started
	Mem          float64 `json:"mem"`     // percent of the machine
	MemKB        int64   `json:"mem_kb"`
	Stat         string  `json:"stat,omitempty"`
	UTime        int64   `json:"utime"` // seconds
	STime        int64   `json:"stime"`
	Threads      int     `json:"threads"`
	StartedAt    int64   `json:"started_at"` // of the process itself, Unix seconds
	Elapsed      int64   `json:"elapsed"`
	RegisteredAt int64   `json:"registered_at"`
	LastStart    int64   `json:"last_start"` // by the agent; StartedAt if the agent did not start it
	ReportedAt   int64   `json:"reported_at"`
	ZoneOffset   int     `json:"zone_offset"` // seconds east of UTC of the host's clock
}

// NotPermitted begins the message of CodeRefused when the caller has no right to do it.
const NotPermitted = "not permitted"

// NotInFleet is a part of the message of CodeUnreachable if no such host is in the fleet, or the caller may not see it.
const NotInFleet = "is not in the fleet"

// NothingToDo reports whether a code says that the process was in the state that the action wants. That is no failure.
func NothingToDo(a Action, code Code) bool {
	switch code {
	case CodeAlreadyRunning:
		return a == ActionStart
	case CodeNotRunning:
		return a == ActionStop || a == ActionKill
	case CodeAlreadyRegistered:
		return a == ActionRegister
	}
	return false
}
