package record

import (
	"errors"
	"time"

	"github.com/gozzard/gozzard"
)

// ErrStopped is returned by a closed store.
var ErrStopped = errors.New("store is closed")

// NewTask is what Accept records. Attempts with a final State are recorded as they are (hosts that are offline or
// unknown).
type NewTask struct {
	Task           gozzard.Task // Seq and ID are filled in by Accept; At is given
	Attempts       []gozzard.Attempt
	Register       []Process // upserted: a known one keeps its flags and RegisteredAt
	NewBytes       int       // of definitions that are new or changed; 0 if the caller has no quota of them
	IdempotencyKey string
	RequestHash    [32]byte
	Audit          gozzard.AuditRow // TaskID is filled in by Accept
	// FoldAudit, unless nil, is asked with the complete audit row before the task is recorded. If quiet, the task gets
	// neither this row nor one about its verdicts: they are counted elsewhere. done says whether the task was recorded.
	FoldAudit func(gozzard.AuditRow) (quiet bool, done func(recorded bool))
	// Committed, unless nil, receives this task once it is durable and filled in, before Accept returns. A store sends
	// its tasks in the order of their numbers, which is the order of intents. The channel must have room: the store
	// sends while it holds its writer, and waits when there is none.
	Committed chan<- *NewTask
	// InOrder says that several servers accept tasks. An attempt that is given as dispatched is recorded as pending while an
	// older one on its agent is pending: the agent would reject the older one.
	InOrder bool
	// Charge is what counts in the transaction of the task. If too little is left of a quota, nothing is recorded, and the error
	// of Accept is a *gozzard.OverQuota. A task that is known counts nothing.
	Charge []gozzard.Spending
}

// Accepted is the answer of Accept.
type Accepted struct {
	Task  gozzard.Task
	Known bool // the idempotency key had it
}

// Spent is what one task counts against the quota of its caller.
type Spent struct {
	Caller gozzard.Caller
	At     time.Time
	N      int // attempts, or bytes of definitions
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
	Journal     *gozzard.JournalPos // the agent's journal when it reported; recorded with the host if it is further
	Process     *ProcessChange
	Rejected    *gozzard.ProcID // the host did not take the definition that the attempt brought for this process
	Action      gozzard.Action  // for metrics; it is not written
	App         string          // of the task, for turns between apps; it is not written
}

// ProcessChange is what a verdict means for the recorded process.
type ProcessChange struct {
	ID     gozzard.ProcID
	Remove bool
	Hosted bool
	Wanted gozzard.RunState
}

// TaskResults is a task with its attempts, in the order of the request.
type TaskResults struct {
	Task     gozzard.Task
	Attempts []gozzard.Attempt

	// Version is the same while the attempts are the same. 0: that is not known. Only versions of one task in one server can
	// be compared.
	Version uint64
}

// Open counts the attempts without a final verdict.
func (r *TaskResults) Open() int {
	n := 0
	for i := range r.Attempts {
		if !r.Attempts[i].State.Final() {
			n++
		}
	}
	return n
}

// MaxTargets bounds one operation.
const MaxTargets = 100_000

// Preview is an attempt that an operation would make.
type Preview struct {
	Attempt gozzard.Attempt // with its verdict, if it would be rejected at once
	Defines bool            // the operation brings a definition to the record
	Before  []byte          // EncodeSpec of the recorded definition; nil: there is none, or Defines is false
	After   []byte          // EncodeSpec of the definition that it brings
}
