package control

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/gozzard/gozzard"
)

// Store is the record: every acknowledged fact, durable when a call returns. It decides nothing; conditions of its compare-and-sets come from
// gozzard.AttemptState.Sources. Write calls of several goroutines may share one transaction; each succeeds or fails for itself.
//
// Errors that callers can act on are *gozzard.Error: ErrStorageFull when there is no room (nothing was changed), ErrNotFound, ErrInvalid (an
// idempotency key used for another request), ErrUnavailable. A failed fsync is not an error to handle: the store calls the Fatal func it was
// built with, and nothing is acknowledged after it.
type Store interface {
	// Accept records a task, its attempts (states as given), the definitions it registers, its audit row and its idempotency key in one
	// transaction. It draws the task's number and fills in Task.Seq, Task.ID and Attempts[i].Ref. When the idempotency key is known for the
	// same request hash nothing is written and the known task is returned with Known true.
	Accept(ctx context.Context, t *NewTask) (Accepted, error)

	// Dispatch marks attempts as sent in a session: from Pending only, and only while that session is the agent's registered one. It returns,
	// aligned with the rows, whether each was moved.
	Dispatch(ctx context.Context, rows []Dispatch) ([]bool, error)

	// Settle moves attempts to the state of each row if their present state is among its Sources (and is From, and their session is FromSession,
	// when those are not 0), and applies Process changes of the rows that moved. It returns which moved.
	Settle(ctx context.Context, rows []Settlement) ([]bool, error)

	// Task and its attempts in index order. ErrNotFound for an unknown or pruned task.
	Task(ctx context.Context, seq gozzard.TaskSeq) (gozzard.Task, error)
	Attempts(ctx context.Context, seq gozzard.TaskSeq) ([]gozzard.Attempt, error)

	// Open lists the attempts that are not final: of one agent, or of all with "".
	Open(ctx context.Context, agent gozzard.AgentID) ([]gozzard.Attempt, error)

	// OpenSession registers a session and the host's description if the session is newer than the one recorded (gozzard.MayOpenSession). It
	// records since which session the agent has this journal (gozzard.JournalSince) and returns the host as it is recorded now; when the
	// session was not registered, as it was. A host that is new has lost nothing: it counts as laid down. h.Protocol is what the agent speaks now: below
	// the one recorded no session is registered.
	OpenSession(ctx context.Context, h HostRecord) (now HostRecord, opened bool, err error)

	// RaiseProtocol records the version of the protocol that an agent speaks, if it is above the one recorded.
	RaiseProtocol(ctx context.Context, agent gozzard.AgentID, version uint32) error

	// LaidDown records that a host which lost its journal has the server's copy of its processes again, unless it lost it once more since.
	LaidDown(ctx context.Context, agent gozzard.AgentID, since uint64) error

	// Hosts lists all hosts ever seen.
	Hosts(ctx context.Context) ([]HostRecord, error)

	// Processes lists registered processes: those named, or all with nil, in key order. Missing ones are left out.
	Processes(ctx context.Context, ids []gozzard.ProcID) iter.Seq2[ProcessRecord, error]

	// Rebind gives the processes and groups of all other agents last seen at an address to one agent. Definitions the agent already has win.
	Rebind(ctx context.Context, addr gozzard.HostAddr, to gozzard.AgentID) error

	// SetGroups upserts limits of process groups, with an audit row, in one transaction.
	SetGroups(ctx context.Context, rows []GroupRecord, audit AuditRow) error
	// Groups lists the groups of a namespace, or of all with "", on the given agents.
	Groups(ctx context.Context, namespace string, agents []gozzard.AgentID) ([]GroupRecord, error)

	// Audit lists audit rows, newest first, at most limit.
	Audit(ctx context.Context, limit int) ([]AuditRow, error)

	// Prune removes at most limit finished tasks accepted before a time, with their attempts, idempotency keys and unused definitions. It
	// returns how many tasks went; repeated until 0. Audit rows stay.
	Prune(ctx context.Context, before time.Time, limit int) (int, error)

	// Ping writes nothing and tells whether the record answers.
	Ping(ctx context.Context) error
}

// ErrStopped is returned by a store that was closed.
var ErrStopped = errors.New("store is closed")

// NewTask is what Accept records. Attempts with a final State are recorded as they are (hosts that are offline or unknown).
type NewTask struct {
	Task           gozzard.Task // Seq and ID are filled in by Accept; At is given
	Attempts       []gozzard.Attempt
	Register       []ProcessRecord // upserted: of a known one, the flags and RegisteredAt are kept
	IdempotencyKey string
	RequestHash    [32]byte
	Audit          AuditRow // TaskID is filled in by Accept
	// Committed is called once the task is durable and filled in, before Accept returns. Tasks of one server are told in the order of their numbers, so
	// whoever sends them on from here keeps the order of intents. It must be quick.
	Committed func()
}

// Accepted is the answer of Accept.
type Accepted struct {
	Task  gozzard.Task
	Known bool // the idempotency key had it
}

// Dispatch is one row of Store.Dispatch.
type Dispatch struct {
	Ref      gozzard.AttemptRef
	Agent    gozzard.AgentID
	Session  uint64
	Deadline time.Time
}

// Settlement is one row of Store.Settle.
type Settlement struct {
	Ref         gozzard.AttemptRef
	Op          gozzard.OpID // must be the attempt's, else the row does not move
	Agent       gozzard.AgentID
	To          gozzard.AttemptState
	From        gozzard.AttemptState // 0: any of To's Sources
	FromSession uint64               // 0: any
	Outcome     gozzard.Outcome
	Journal     *gozzard.JournalPos // the agent's journal when it reported; kept with the host if it is further
	Process     *ProcessChange
}

// ProcessChange is what a verdict means for the recorded process.
type ProcessChange struct {
	ID     gozzard.ProcID
	Remove bool
	Hosted bool
	Wanted gozzard.RunState
}

// HostRecord is a host as recorded.
type HostRecord struct {
	Info    gozzard.HostInfo
	Session uint64
	Journal gozzard.JournalPos
	// JournalSince is the first session in which the agent had this journal. Attempts of earlier sessions cannot be judged by it.
	JournalSince uint64
	// LaidDown is the JournalSince for which the server's copy of its processes was laid down again, or need not be. Another value means that the host
	// has lost them and does not have them back yet.
	LaidDown uint64
	LastSeen time.Time
	Protocol uint32 // the highest version that the agent has spoken and was welcomed with
}

// ProcessRecord is a registered process as recorded: the server's copy of definition and desired flags.
type ProcessRecord struct {
	ID           gozzard.ProcID
	Labels       map[string]string
	Spec         []byte // EncodeSpec
	Hosted       bool
	Wanted       gozzard.RunState
	RegisteredAt time.Time
}

// GroupRecord is the resource pool of one process group on one host.
type GroupRecord struct {
	Agent      gozzard.AgentID
	Addr       gozzard.HostAddr
	Namespace  string
	Group      string
	CPULimit   float64
	MemLimit   float64
	CPUWeight  int
	MemWeight  int
	Labels     map[string]string
	SupplierID int
}

// AuditRow says who asked for what.
type AuditRow = gozzard.AuditRow

// AuditStore reads the chain of the audit. Stores chain every row that they are given, in the transaction that writes what it is about.
type AuditStore interface {
	// AuditAfter lists at most limit rows after a number, in the order of the chain.
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	// AuditHead is the newest row, zero before the first.
	AuditHead(ctx context.Context) (gozzard.AuditHead, error)
}
