package waves

import (
	"time"

	"github.com/gozzard/gozzard"
)

// State of a job or task.
type State string

// The states. A job is never ignored.
const (
	Pending   State = "pending"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Ignored   State = "ignored" // there was nothing to do
)

// Final reports whether it stays as it is, until a retry.
func (s State) Final() bool { return s == Succeeded || s == Failed || s == Ignored }

// Granularity says which processes wait for each other.
type Granularity string

// The granularities: waves are formed within each business, set, module or host.
const (
	ByBusiness Granularity = "BIZ"
	BySet      Granularity = "SET"
	ByModule   Granularity = "MODULE"
	ByHost     Granularity = "HOST"
)

// Job is one action on many processes.
type Job struct {
	ID          int64
	Biz         int
	Action      gozzard.Action
	Caller      gozzard.Caller
	Expression  string // for people
	Request     []byte // the door's own words for the scope, only carried
	Granularity Granularity
	State       State
	Reason      Reason // why it failed as a whole; zero otherwise
	Message     string
	Started     time.Time
	Ended       time.Time // zero while it is not final
}

// Task is one process instance of a job.
type Task struct {
	ID       int64 // unique among all jobs
	Job      int64
	Biz      int
	Process  int
	Name     string // alias
	Set      int
	Module   int
	Local    int
	Inst     int
	Key      gozzard.Key
	Agent    gozzard.AgentID
	Addr     gozzard.HostAddr
	Group    string // waves of one group follow each other
	Wave     int    // 0 goes first
	Priority int
	Round    int            // 0 at first, one more with each retry
	Task     gozzard.TaskID // the operation that carried it in this round; "" before
	State    State
	Reason   Reason
	Code     gozzard.Code // of the verdict, when Reason is ReasonVerdict
	Message  string
	Info     []byte // a picture of the process for the door, only carried
	Started  time.Time
	Ended    time.Time

	// What an operation on it carries, as it was when the job was created: what is applied to the business later does not change what a job does.
	// Read only when TaskFilter.Definitions asks for it.
	Labels map[string]string
	Spec   []byte // gozzard.EncodeSpec; empty: none
}

// Reason is why a task or job did not succeed.
type Reason string

// The reasons.
const (
	ReasonNone     Reason = ""
	ReasonVerdict  Reason = "verdict"  // the operation had another verdict than done: Code and Message
	ReasonMissing  Reason = "missing"  // the process lacks an attribute that the action needs; repeating does not help
	ReasonEarlier  Reason = "earlier"  // an earlier wave of its group failed
	ReasonNothing  Reason = "nothing"  // nothing fits the scope
	ReasonTimeout  Reason = "timeout"  // no verdict in time
	ReasonRefused  Reason = "refused"  // the operation was not accepted: Message
	ReasonInternal Reason = "internal" // Message
)
