package control

import (
	"context"
	"iter"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// ContentStore keeps large contents of files once, by their digests, however many hosts and tasks they are for.
type ContentStore interface {
	// KeepContents keeps contents at least until a time. One without a body must be kept already: ErrConflict. ErrStorageFull if
	// all contents together would take too much room.
	KeepContents(ctx context.Context, list []record.Content, until time.Time) error
	// Content reads a content; ErrNotFound if it is not kept any more.
	Content(ctx context.Context, digest string) ([]byte, error)
	// PruneContents removes contents whose time is over.
	PruneContents(ctx context.Context, now time.Time) error
}

// Store is the record: every acknowledged fact, durable when a call returns. It decides nothing; the conditions of its
// compare-and-sets come from gozzard.AttemptState.Sources. Writes of several goroutines may share one transaction; each
// write succeeds or fails on its own.
//
// Errors that callers can act on are *gozzard.Error: ErrStorageFull when there is no room (nothing was changed),
// ErrNotFound, ErrInvalid (an idempotency key used for another request), ErrUnavailable. A failed fsync is not an
// error to handle: the store calls the Fatal func it was built with, and nothing is acknowledged after it.
type Store interface {
	EventStore
	ContentStore

	// Accept records a task, its attempts (states as given), the definitions it registers, its audit row and its
	// idempotency key in one transaction. It draws the task's number and fills in Task.Seq, Task.ID and
	// Attempts[i].Ref. Then it sends the task on NewTask.Committed, in the order of numbers and before any later write
	// is answered. When the idempotency key is known for the same request hash nothing is written or sent, and the known
	// task is returned with Known true.
	Accept(ctx context.Context, t *record.NewTask) (record.Accepted, error)

	// HasKey reports whether a caller used an idempotency key.
	HasKey(ctx context.Context, caller gozzard.Caller, key string) (bool, error)

	// Dispatch marks attempts as sent in a session: from Pending only, and only while that session is the agent's
	// registered one. It returns, aligned with the rows, whether each was moved.
	Dispatch(ctx context.Context, rows []record.Dispatch) ([]bool, error)

	// Settle moves attempts to the state of each row if their present state is among its Sources (and is From, and
	// their session is FromSession, when those are not 0), and applies Process changes of the rows that moved. A process
	// that such a row says is Rejected gets the definition back that it had before the attempt, or is removed if it had
	// none; not if another attempt brought a definition since, or while it was not decided whether the host took the
	// one before. It returns which moved.
	Settle(ctx context.Context, rows []record.Settlement) ([]bool, error)

	// Task and its attempts in index order. ErrNotFound for an unknown or pruned task.
	Task(ctx context.Context, seq gozzard.TaskSeq) (gozzard.Task, error)
	Attempts(ctx context.Context, seq gozzard.TaskSeq) ([]gozzard.Attempt, error)

	// TasksOf lists the tasks of an app, or of one of its users if user is not "", with numbers below before (0: all),
	// the newest first, at most limit. It reads those only, however many others there are. Without an app (and user) it
	// lists the tasks of all.
	TasksOf(ctx context.Context, app, user string, before gozzard.TaskSeq, limit int) ([]gozzard.Task, error)
	// TaskItems, TaskVerdicts and TaskPlaces read parts of tasks for lists. Of a removed task there may be nothing.
	TaskItems(ctx context.Context, tasks []gozzard.TaskSeq) (map[gozzard.TaskSeq][]record.TaskItem, error)
	TaskVerdicts(ctx context.Context, tasks []gozzard.TaskSeq) ([]record.TaskVerdict, error)
	TaskPlaces(ctx context.Context, tasks []gozzard.TaskSeq) ([]record.TaskPlace, error)

	// Open lists the attempts that are not final.
	Open(ctx context.Context) ([]gozzard.Attempt, error)

	// OpenOf lists the attempts of some agents that are not final.
	OpenOf(ctx context.Context, agents []gozzard.AgentID) ([]gozzard.Attempt, error)

	// OpenOps names the attempts that are not final, in no order: of one task, or of all with 0. It costs less than Open.
	OpenOps(ctx context.Context, seq gozzard.TaskSeq) ([]record.OpenOp, error)

	// OpenSession registers a session and the host's description if the session is newer than the one recorded
	// (gozzard.MayOpenSession). It records since which session the agent has this journal (gozzard.JournalSince)
	// and returns the host as it is recorded now; when the session was not registered, as it was. A new host
	// has lost nothing: its RestoredJournal is its JournalSince. h.Protocol is the version that the agent uses now; when
	// it is below the recorded one, no session is registered. The same transaction lifts the generations of the agent
	// above h.NewestGen where they are lower (gozzard.LiftBase) and says so in Lifted. The record is an older copy then,
	// or the agent had another server meanwhile, so JournalSince and RestoredJournal become this session.
	OpenSession(ctx context.Context, h record.Host) (now record.Host, opened bool, err error)

	// Sessions gives the sessions of agents that are recorded. Unknown agents are left out.
	Sessions(ctx context.Context, agents []gozzard.AgentID) (map[gozzard.AgentID]uint64, error)

	// RaiseProtocol records the version of the protocol that an agent uses, if it is above the recorded one.
	RaiseProtocol(ctx context.Context, agent gozzard.AgentID, version uint32) error

	// JournalRestored records that a host which lost its journal has its definitions again, unless it lost its journal
	// again since.
	JournalRestored(ctx context.Context, agent gozzard.AgentID, since uint64) error

	// Hosts lists all hosts ever seen.
	Hosts(ctx context.Context) ([]record.Host, error)

	// Processes lists registered processes: those named, or all with nil, in key order. Missing ones are left out.
	Processes(ctx context.Context, ids []gozzard.ProcID) iter.Seq2[record.Process, error]

	// Rebind gives the processes and groups of all other agents last seen at an address to one agent. Definitions
	// the agent already has win. The audit row is written in the same transaction.
	Rebind(ctx context.Context, addr gozzard.HostAddr, to gozzard.AgentID, audit gozzard.AuditRow) error

	// Forget removes a host that left the fleet, with its processes and groups, in one transaction with the audit row,
	// which names the host and says how many processes it had. It returns that number. If
	// the agent comes back, it is a new host.
	Forget(ctx context.Context, host gozzard.HostRef, audit gozzard.AuditRow) (processes int, err error)

	// SetGroups upserts limits of process groups, with an audit row, in one transaction.
	SetGroups(ctx context.Context, rows []record.GroupLimits, audit gozzard.AuditRow) error
	// Groups lists the groups of a namespace, or of all with "", on the given agents.
	Groups(ctx context.Context, namespace string, agents []gozzard.AgentID) ([]record.GroupLimits, error)

	// Audit lists audit rows, newest first, at most limit.
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)

	// AddAudit adds audit rows.
	AddAudit(ctx context.Context, rows []gozzard.AuditRow) error

	// Prune removes at most limit finished tasks accepted before a time, with their attempts, idempotency keys and
	// unused definitions. It returns how many tasks it removed; the caller repeats it until that is 0. Audit rows stay.
	Prune(ctx context.Context, before time.Time, limit int) (int, error)

	// Ping checks that the record answers. It writes nothing.
	Ping(ctx context.Context) error
}

// AuditStore reads the chain of the audit. A store chains every audit row in the transaction that writes what the row
// is about.
type AuditStore interface {
	// AuditAfter lists at most limit rows after a number, in the order of the chain.
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	// AuditHead is the newest row, zero before the first.
	AuditHead(ctx context.Context) (gozzard.AuditHead, error)
}
