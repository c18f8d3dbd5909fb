package gozzard

// Code says why an outcome is what it is. Codes are stable words: they are stored, sent and shown; each door has
// one table that turns them into its own numbers.
type Code string

// The codes of an outcome.
const (
	CodeOK             Code = "ok"
	CodeAlreadyRunning Code = "already_running" // start of something that runs; nothing was done
	CodeNotRunning     Code = "not_running"     // stop or kill of something that does not run; nothing was done
	// the command went well, the process is not in the state asked for
	CodeCheckFailed Code = "check_failed"
	// non-zero exit, time-out or no such command; Message has its output
	CodeCommandFailed Code = "command_failed"
	CodeNoDefinition  Code = "no_definition" // nothing is known of this process
	// the host would not: policy, unknown account, unsafe path, full disk
	CodeRefused           Code = "refused"
	CodeUnknownAction     Code = "unknown_action"     // the caller asked for something that does not exist
	CodeAlreadyRegistered Code = "already_registered" // register of something registered
	CodeUnreachable       Code = "unreachable"        // no such host, or its agent does not answer
	CodeInterrupted       Code = "interrupted"        // agent or host died in the middle; done at most once
	CodeSuperseded        Code = "superseded"         // a newer operation on the same process came first
	CodeExpired           Code = "expired"            // waited for the host longer than allowed
)

// Outcome is what came of one attempt.
type Outcome struct {
	Code    Code    `json:"code"`
	Message string  `json:"message,omitempty"`
	Hosted  bool    `json:"hosted,omitempty"`
	Forced  bool    `json:"forced,omitempty"` // the process had to be killed after its stop time
	Detail  *Detail `json:"detail,omitempty"` // queries only
}

// Detail is what a query reports of one process.
type Detail struct {
	PID          int     `json:"pid"` // -1 when not running
	Hosted       bool    `json:"hosted"`
	Cmdline      string  `json:"cmdline,omitempty"`
	Version      string  `json:"version,omitempty"`
	Health       string  `json:"health,omitempty"`
	CPU          float64 `json:"cpu"`     // percent of the machine, now
	CPUAvg       float64 `json:"cpu_avg"` // percent of the machine, since its start
	Mem          float64 `json:"mem"`     // percent of the machine
	MemKB        int64   `json:"mem_kb"`
	Stat         string  `json:"stat,omitempty"`
	UTime        int64   `json:"utime"` // seconds
	STime        int64   `json:"stime"`
	Threads      int     `json:"threads"`
	StartedAt    int64   `json:"started_at"` // of the process itself, Unix seconds
	Elapsed      int64   `json:"elapsed"`
	RegisteredAt int64   `json:"registered_at"`
	LastStart    int64   `json:"last_start"` // last start by the agent, or StartedAt for an adopted one
	ReportedAt   int64   `json:"reported_at"`
	ZoneOffset   int     `json:"zone_offset"` // seconds east of UTC of the host's clock
}
