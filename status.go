package gozzard

import (
	"fmt"
	"math"
)

// RunState is the wanted or the actual state of a process.
type RunState uint8

// The run states. The numbers are sent to callers.
const (
	StateUnregistered RunState = 0
	StateRunning      RunState = 1
	StateStopped      RunState = 2
)

// String is the word for the state.
func (s RunState) String() string {
	switch s {
	case StateUnregistered:
		return "unregistered"
	case StateRunning:
		return "running"
	case StateStopped:
		return "stopped"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Status is the state of one process as its agent last reported it. It is held in memory and at most one report
// interval old.
type Status struct {
	Key
	Labels       map[string]string
	Wanted       RunState
	State        RunState
	Hosted       bool
	PID          int32 // -1 when not running
	Version      string
	Message      string
	RegisteredAt int64 // Unix seconds, as all times here
	StartedAt    int64
	ReportedAt   int64
	CPU          float32 // percent of the whole machine, process tree
	Mem          float32
	FD           int32
	Disk         int64
	Net          int64

	// Agents of earlier versions report nothing of this.
	Condition     Condition // see ConditionOf
	Kind          ShownKind
	Restarts      uint32  // without a request, since an operation last started or stopped it
	Exit          Ending  // of the newest process that ended
	NextAt        int64   // next start or run in Unix milliseconds; 0: none is planned
	LastRun       LastRun // of a process that is expected to end
	MemBytes      int64   // resident memory, process tree
	Health        Health
	HealthMessage string // what is wrong; empty if nothing is
}

// Finite is x, or 0 when x is infinite or not a number: JSON cannot write those.
func Finite[F float32 | float64](x F) F {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return 0
	}
	return x
}

// StateUnwritable begins the sentence in HostInfo.Degraded by which an agent reports that it cannot write its state
// folder.
const StateUnwritable = "the state folder cannot be written"

// HostInfo is what an agent reports about its host.
type HostInfo struct {
	Agent     AgentID
	Addrs     []HostAddr // the first is shown to people
	Hostname  string
	OS        string
	Arch      string
	Version   string // of the agent
	BootID    string
	StartedAt int64 // of the agent
	CPUs      int
	MemBytes  int64
	Mode      AgentMode
	Degraded  []string // what does not work on this host, in words

	// PolicyDigest is the SHA-256 of the policy of the host in hexadecimal digits, and behind a slash the one of its
	// release key, if it has a key. Agents of earlier versions send none.
	PolicyDigest string

	// DefaultAccount is the account of commands whose definition names none. Without one the host runs no such command.
	// Agents of earlier versions send none, and run such a command as their own account, if their policy allows that.
	DefaultAccount string

	// Form is the newest form of definitions that the agent carries out completely. Agents of earlier versions send none:
	// they ignore what Spec.Newer lists.
	Form uint32

	// History says that the agent keeps what it measures of processes and answers CommandHistory. Agents of earlier versions
	// send false: they would reject the command.
	History bool

	// Files says that the agent carries out ActionConfigure. Agents of earlier versions and of other systems than Linux send
	// false.
	Files bool

	// Metrics is where the agent serves its metrics, such as http://10.0.0.1:9436; "": nowhere. The agent says so, so it may
	// be any text: see MetricsAddr.
	Metrics string
}
