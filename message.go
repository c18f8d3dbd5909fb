package gozzard

import "time"

// ProtocolVersion is the version of the messages of this program. A receiver rejects messages of a newer version and
// reports them.
const ProtocolVersion = 1

// CommandKind says what a Command is for.
type CommandKind uint8

// The kinds of commands.
const (
	CommandWelcome CommandKind = iota + 1 // the server recorded the HELLO: the session is open
	CommandGreet                          // the server does not know this session: send HELLO again
	CommandOperate                        // run Ops
	CommandCancel                         // do not begin the operations of Cancel
	// the verdicts of Acked are recorded, report round AckRound has arrived, and the lease is renewed
	CommandAck
	CommandGroups  // Groups are all resource pools of this host
	CommandLogs    // answer Logs
	CommandUpdate  // run the release of Update, or report why not
	CommandHistory // answer History; only for agents with HostInfo.History
	CommandFile    // answer File; only for agents with HostInfo.Files
	CommandContent // Content is a part of a content that the agent asked for
)

// Command is the message from the server to an agent.
type Command struct {
	Version  uint32
	Kind     CommandKind
	Session  uint64
	Ops      []Op
	Cancel   []OpID
	Acked    []OpID
	AckRound uint64        // of a full report
	Beat     uint64        // heartbeat that this answers; CommandWelcome: Run of the HELLO that this answers
	Interval time.Duration // CommandWelcome: time between two full reports

	Groups    []Group   // CommandGroups
	Logs      *LogQuery // CommandLogs
	AckEvents uint64    // CommandAck: events up to this Seq have arrived; 0 means none

	Update *UpdateOrder // CommandUpdate

	History *HistoryQuery // CommandHistory

	File *FileQuery // CommandFile

	Content *ContentPart // CommandContent

	// Servers are all servers that this agent may use; CommandWelcome and CommandAck. None: nothing is said about them, as
	// in commands of earlier versions. Agents of earlier versions ignore it.
	Servers []ServerAddress

	// NextBeat is how long the agent waits for its next heartbeat; CommandAck of a heartbeat. 0 leaves it to the agent.
	NextBeat time.Duration
}

// Op is one attempt on its way to the agent.
type Op struct {
	ID     OpID
	Ref    AttemptRef
	Gen    uint64
	Action Action
	Key    Key
	Labels map[string]string
	Spec   []byte // by EncodeSpec, parsed after the operation is accepted; empty means the agent's definition

	// Adopt makes a start supervise a process that it finds running. Agents of earlier versions ignore it.
	Adopt bool

	// Account is the account that the caller has a right to (CanonicalAccount). The agent rejects the operation when the
	// definition has another one. "" means that the caller may use every account, or that the server is older.
	Account string

	// Trace is the trace of the operation, without its state; "": it is not traced. The agent names it in its log, and reports
	// the times of such an operation. It decides nothing. Agents of earlier versions ignore it.
	Trace Trace
}

// ReportKind says what a Report is for.
type ReportKind uint8

// The kinds of reports.
const (
	ReportHello ReportKind = iota + 1
	ReportResults
	ReportStatus
	ReportHeartbeat
	ReportEvents
	ReportLogs
	ReportUpdate
	ReportHistory
	ReportFile
	ReportContent
)

// Report is the message from an agent to the server. The connection identifies the agent; the report does not.
type Report struct {
	Version uint32
	Kind    ReportKind
	Session uint64
	Journal JournalPos

	Hello    *Hello     // ReportHello
	Results  []OpReport // ReportResults
	Statuses []Status   // ReportStatus
	Removed  []Key      // ReportStatus: processes that are not registered any more
	Round    uint64     // ReportStatus: number of the full report, 0 when it is not one
	Part     uint32
	Parts    uint32
	Beat     uint64 // ReportHeartbeat, and the last part of a full report: the number that the answer names

	Events []Event   // ReportEvents, in the order of Seq
	Logs   *LogChunk // ReportLogs

	Update *UpdateReport // ReportUpdate

	History *History // ReportHistory

	File *FileAnswer // ReportFile

	Content *ContentQuery // ReportContent

	Vitals *Vitals // ReportHeartbeat; agents of earlier versions send none
}

// Vitals is what an agent measures of its machine for each heartbeat. NotMeasured stands for what it does not know.
type Vitals struct {
	At        int64 // what the clock of the machine says while the heartbeat is sent, in Unix milliseconds
	RoundTrip int64 // the fastest of the last heartbeats and its answer, in microseconds
	Load      int64 // average of the last minute over the whole machine, in thousandths
	MemFree   int64 // memory that programs could still get, in bytes
}

// JournalPos is the journal that an agent writes and its position there. The server notices by it that a journal was
// lost or replaced by an older copy.
type JournalPos struct {
	ID  [16]byte
	LSN uint64
}

// Hello opens a session. It describes the host and has every operation of which the agent knows and whose verdict the
// server has not acknowledged.
type Hello struct {
	Run  uint64 // random for each run of the agent, because another run may use the number of a session again
	Host HostInfo
	Open []OpReport
	Kept bool // the journal has a new id because it cannot be written, but the agent has lost nothing

	// NewestGen is the newest generation that the agent has on record for any process, queued operations included. The
	// agents of earlier versions send 0.
	NewestGen uint64
}

// OpReport is what the agent knows of one operation.
type OpReport struct {
	ID      OpID
	Ref     AttemptRef
	Phase   Phase
	Outcome Outcome // PhaseDone

	// Held is the time between the arrival of the operation and this report. The server subtracts it when it measures how
	// long messages are on their way. 0: not known, as in reports of earlier versions.
	Held time.Duration

	// Waited and Ran are the times of an operation that is traced: from its arrival until it began, and from then until it
	// was done. Both are parts of Held. 0: not known, as when the agent was started again meanwhile.
	Waited time.Duration
	Ran    time.Duration
}
