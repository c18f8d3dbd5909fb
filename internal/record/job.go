package record

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// JobState is the state of a job or of one of its tasks.
type JobState string

// The states. A job is never ignored.
const (
	JobPending   JobState = "pending"
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobIgnored   JobState = "ignored" // there was nothing to do
)

// Final reports whether it stays as it is, until a retry.
func (s JobState) Final() bool {
	return s == JobSucceeded || s == JobFailed || s == JobIgnored
}

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
	Action      gozzard.Action // ActionConfigure if it has work
	Work        JobWork        // on configuration files; WorkNone: the job operates processes
	Choice      ConfigChoice   // which files
	Caller      gozzard.Caller
	Expression  string // for people
	Request     []byte // the scope as the door was given it, only carried
	Granularity Granularity
	State       JobState
	Reason      JobReason // why it failed as a whole; zero otherwise
	Message     string
	Started     time.Time
	Ended       time.Time // zero while it is not final
	Trace       gozzard.Trace
}

// JobSteps is what the work of a job calls between its steps.
type JobSteps struct {
	Save  func(tasks []*JobTask) error // records the state of tasks
	Renew func() error                 // brings the job up to date: the rights of its creator, and whether somebody has stopped it
	Pause func(d time.Duration) error  // waits, and keeps no other job from being done meanwhile
}

// JobTask is one process instance of a job.
type JobTask struct {
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
	State    JobState
	Reason   JobReason
	Code     gozzard.Code // of the verdict, when Reason is ReasonVerdict
	Message  string
	Info     []byte // a picture of the process for the door, only carried
	Result   []byte // what a task on configuration files did: ConfigDone; only where JobTaskFilter asks for it
	Started  time.Time
	Ended    time.Time

	// What an operation on it carries, as it was when the job was created: what is applied to the business later
	// does not change what a job does. Read only when TaskFilter.Definitions asks for it.
	Labels map[string]string
	Spec   []byte // gozzard.EncodeSpec; empty: none
}

// JobReason is why a task or job did not succeed.
type JobReason string

// The reasons.
const (
	ReasonNone    JobReason = ""
	ReasonVerdict JobReason = "verdict" // the operation had another verdict than done: Code and Message
	// the process does not have an attribute that the action needs; a retry does not help
	ReasonMissing JobReason = "missing"
	// a template in an attribute cannot be rendered: Message; a retry does not help
	ReasonTemplate JobReason = "template"
	ReasonEarlier  JobReason = "earlier"  // an earlier wave of its group failed
	ReasonNothing  JobReason = "nothing"  // nothing fits the scope
	ReasonTimeout  JobReason = "timeout"  // no verdict in time
	ReasonRefused  JobReason = "refused"  // the operation was not accepted: Message
	ReasonInternal JobReason = "internal" // Message
)

// JobFilter chooses jobs of one business. Empty fields fit all.
type JobFilter struct {
	Biz     int
	IDs     []int64
	Actions []string // gozzard.Action.String, or a JobWork
	Apps    []string `json:",omitempty"` // only by the Runner
	Users   []string
	States  []JobState
	Configs *bool `json:",omitempty"` // only jobs on configuration files, or only those on processes
	// Template is for jobs on configuration files: those that name this template, or none, which are about all that are bound.
	Template int64     `json:",omitempty"`
	From     time.Time // of Started
	Until    time.Time
	Start    int
	Limit    int // < 0: all
}

// JobCount is the number of jobs of a business that began in the same quarter of an hour and have the same of everything
// else here.
type JobCount struct {
	Biz    int
	Action gozzard.Action
	Work   JobWork
	App    string
	User   string
	State  JobState
	At     time.Time // the beginning of the quarter
	Count  int
}

// JobTaskFilter chooses tasks of one job. Empty fields fit all.
type JobTaskFilter struct {
	Job       int64
	IDs       []int64
	Sets      []int
	Modules   []int
	Processes []int
	Names     []string
	States    []JobState
	Start     int
	Limit     int // < 0: all

	Definitions bool // with Labels and Spec, and without Info
	Results     bool // with Result
}

// JobTaskPage is an answer to JobTaskFilter.
type JobTaskPage struct {
	Total  int
	Tasks  []JobTask
	Counts map[JobState]int // of all tasks of the job
}

// MaxJobTasks bounds one job: it is recorded in one transaction.
const MaxJobTasks = 2 * MaxTargets

// JobRequest asks for an action on the processes that a query finds.
type JobRequest struct {
	Caller      gozzard.Caller
	Biz         int
	Action      gozzard.Action
	Work        JobWork        // see Job
	Choice      ConfigChoice   // see Job
	Query       topology.Query // of that business; its order and page are not looked at
	Expression  string         // for people
	Raw         []byte         // the scope as the door was given it, only carried
	Granularity Granularity    // "": ByBusiness

	// Confirm is how many tasks the caller expects; 0: it does not say. More than ConfirmAbove must be confirmed, unless it is 0.
	Confirm, ConfirmAbove int

	// Info makes the picture of an instance that the door wants back with its task. It may be nil.
	Info func(it *TopologyItem) []byte
}
