package gozzard

import "time"

// ProtocolVersion is spoken by this build. A receiver refuses what is newer than it knows and says so.
const ProtocolVersion = 1

// CommandKind tells the messages to an agent apart.
type CommandKind uint8

// What a server says to an agent.
const (
	CommandWelcome CommandKind = iota + 1 // HELLO was taken in: the session is open
	CommandGreet                          // the server does not know this session: say HELLO again
	CommandOperate                        // run Ops
	CommandCancel                         // give up on Cancel where not yet begun
	// verdicts of Acked are durable; report round AckRound has arrived; the lease is renewed
	CommandAck
	CommandGroups // the pools of this host are Groups, all of them
	CommandLogs   // answer Logs
	CommandUpdate // become the release of Update, or say why not
)

// Command is the only message that goes down.
type Command struct {
	Version  uint32
	Kind     CommandKind
	Session  uint64
	Ops      []Op
	Cancel   []OpID
	Acked    []OpID
	AckRound uint64        // of a full report
	Beat     uint64        // heartbeat that is answered; Welcome: Run of the HELLO that is answered
	Interval time.Duration // Welcome: how often a full report is wanted

	Groups    []Group   // CommandGroups
	Logs      *LogQuery // CommandLogs
	AckEvents uint64    // CommandAck: events up to this Seq have arrived; 0 none

	Update *UpdateOrder // CommandUpdate
}

// Op is one attempt on its way to the agent.
type Op struct {
	ID     OpID
	Ref    AttemptRef
	Gen    uint64
	Action Action
	Key    Key
	Labels map[string]string
	Spec   []byte // EncodeSpec, not parsed before the operation is admitted; empty: what the agent has
}

// ReportKind tells the messages from an agent apart.
type ReportKind uint8

// What an agent says to the server.
const (
	ReportHello ReportKind = iota + 1
	ReportResults
	ReportStatus
	ReportHeartbeat
	ReportEvents
	ReportLogs
	ReportUpdate
)

// Report is the only message that goes up. Who sent it is known from the connection, never from its content.
type Report struct {
	Version uint32
	Kind    ReportKind
	Session uint64
	Journal JournalPos

	Hello    *Hello     // ReportHello
	Results  []OpReport // ReportResults
	Statuses []Status   // ReportStatus
	Removed  []Key      // ReportStatus: no longer managed
	Round    uint64     // ReportStatus: not 0 for a part of a full report
	Part     uint32
	Parts    uint32
	Beat     uint64 // ReportHeartbeat

	Events []Event   // ReportEvents, in the order of Seq
	Logs   *LogChunk // ReportLogs

	Update *UpdateReport // ReportUpdate
}

// JournalPos tells which journal an agent writes and how far it is; a lost or rolled-back journal is noticed by it.
type JournalPos struct {
	ID  [16]byte
	LSN uint64
}

// Hello opens a session: who the host is, and every operation the agent knows of whose verdict the server has not
// acknowledged.
type Hello struct {
	// random for each run of the agent: tells a repeated HELLO from that of another run which reuses the number of
	// a session
	Run  uint64
	Host HostInfo
	Open []OpReport
}

// OpReport is what the agent knows of one operation.
type OpReport struct {
	ID      OpID
	Ref     AttemptRef
	Phase   Phase
	Outcome Outcome // PhaseDone
}
