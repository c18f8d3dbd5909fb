package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

// Host is the machine as supervision needs it. Package host implements it for real machines, package sim simulates
// it. All methods are safe for concurrent use. None blocks longer than its context or time-out says.
type Host interface {
	// Run runs one shell command of a process to its end. The command runs as the definition's user, in its setup
	// path, and in a separate cgroup below the process's cgroup, so that what the command leaves behind can be
	// found. The error is for a command that could not be run at all: no such user, no such folder, rejected. A
	// command that ran and failed is a Result. When ctx ends, Run returns its error at once and the command keeps
	// running: an agent that stops never touches a process.
	Run(ctx context.Context, r Run) (Result, error)

	// Find collects the evidence about the process of a definition and decides by the rules of package identity.
	Find(q Query) (Found, error)

	// Watch calls exited once, from another goroutine, when the process is gone. The returned function ends the
	// watch. After it has returned, exited is not called.
	Watch(p Proc, exited func(Exit)) (stop func(), err error)

	// Alive reports whether exactly this process still runs, not a later one with the same pid. A zombie does not
	// run.
	Alive(p Proc) bool

	// Collect waits a moment until a process that has ended is no longer in the process table. If the process is a
	// child of the agent, Collect reaps it. Without it, a caller that checks the pid after a stop could believe that
	// the process is alive.
	Collect(ctx context.Context, p Proc)

	// Signal sends a signal to exactly this process.
	Signal(p Proc, sig Signal) error

	// Members lists the live processes that belong to the process of a definition: everything that its commands have
	// started, and the descendants of the process itself if it runs outside of its group.
	Members(q Query) ([]Proc, error)

	// Clear kills everything that the commands of a definition have started, and exactly the given processes, and waits
	// until they are gone.
	Clear(q Query, also []Proc) error

	// Sample measures the trees of the given processes in one pass over the machine. The answer has one element for
	// each process, in the same order. The element of a process that is gone is zero.
	Sample(procs []Proc) []Usage

	// Limit sets the limits that the kernel enforces on the process's cgroup: CPU and Mem, in percent of the
	// machine, if Enforce is set, else none. It returns the mechanism: "cgroup2", "cgroup1", or "" if the kernel of
	// this machine cannot do it. An error does not prevent a start.
	Limit(key gozzard.Key, r gozzard.Resource) (mode string, err error)

	// OOMKills counts how often the kernel killed something of the process because memory ran out, if that can be
	// known. The count may restart at zero.
	OOMKills(key gozzard.Key) int

	// Probe makes a health check of a definition that is no command. It returns what is wrong, or nil.
	Probe(ctx context.Context, c *gozzard.Control) error

	// ReadLog reads what the process and its commands printed, from the rotated files.
	ReadLog(q gozzard.LogQuery) gozzard.LogChunk

	// Managed says whether a process is managed. What the host keeps of one that is not, such as its log, is removed some
	// time later. It does not block.
	Managed(key gozzard.Key, managed bool)

	// EndCommands ends the commands that an earlier run of the agent left running, with everything that they started.
	// It does not touch the process of a definition that has come up already, nor processes for which spare returns
	// true; spare may be nil. It returns the commands of which something was ended or could not be ended.
	EndCommands(spare func(gozzard.Key, Proc) bool) []Leftover

	// Inspect reads what a query reports in addition to the usage.
	Inspect(p Proc) (gozzard.Detail, error)
}

// Run is one command to run.
type Run struct {
	Key     gozzard.Key
	Spec    *gozzard.Spec
	Op      gozzard.OpID   // zero for pull-ups and probes
	Action  gozzard.Action // what the command is run for; ActionQuery for probes such as version
	Command string
	Main    int // the pid of the process, if it runs
	Timeout time.Duration
	// Keeps says that everything the command starts belongs to the process and stays (start, restart, reload).
	// Otherwise it is killed when the command ends (stop, kill, version). What a stop or kill command has put into
	// the background may finish first, within the time-out.
	Keeps bool
	// Front says that the command may be the process itself, in the foreground. If the command still runs after this
	// time, and the process of the definition is found alive in its cgroup, Run returns with Result.Front and the
	// command keeps running. With 0 the command must end.
	Front time.Duration
	// Hurry is closed when an operation waits for the end of Run. Run then returns with Result.Front as soon as the
	// process is found, even before the time of Front is over. It has no effect on a command that must end, or while
	// the process is not found.
	Hurry <-chan struct{}
	// Progress is called when the command must wait for its turn, and when it was started. It does not block. A host need not
	// call it, and it may be nil.
	Progress func(Progress)

	// Texts are the program texts of a script. Their paths in Command mean them.
	Texts []gozzard.ScriptText
	// Whole is how many bytes of the output Result.Output has at most: its start and its end. With 0 it has the last lines.
	Whole int
}

// Progress is how far a command is that was given to Run.
type Progress uint8

// The steps of a command.
const (
	ProgressQueued  Progress = iota + 1 // other commands are started first
	ProgressShell                       // its shell runs
	ProgressProgram                     // the program runs that the command executes, without a shell
)

// Leftover is a command that an earlier run of the agent left running.
type Leftover struct {
	Key    gozzard.Key
	Op     gozzard.OpID // zero for pull-ups and probes
	Action gozzard.Action
	Ended  int   // how many of its processes were ended
	Err    error // what could not be ended, and why
}

// Result is how a command ended.
type Result struct {
	ExitCode int // -1 if a signal killed it
	Signal   string
	TimedOut bool
	Front    bool   // it has not ended: it is the process itself
	Main     Proc   // with Front: the process, as it was found right before the end of Run; zero if the host does not say
	Output   string // the last lines of stdout and stderr together, or Run.Whole bytes of it; valid UTF-8, bounded
	LeftOut  int64  // with Run.Whole: how many bytes are missing in the middle
}

// Proc is the identity of one running process.
type Proc = identity.Proc

// Held is what is on record about the process of a definition.
type Held = identity.Held

// Query says whose process is looked for.
type Query struct {
	Key  gozzard.Key
	Spec *gozzard.Spec
	Held Held // what is on record; it may have ended

	Starting bool      // a start or restart is in progress
	Began    time.Time // when it began

	// Taken returns the other definition that has a process on record or in its group. It is empty if there is none.
	// inGroup says whether the process is in the group of a key; it may be nil. Taken may be nil.
	Taken func(p Proc, inGroup func(gozzard.Key) bool) string
}

// Found is the answer of Find. Proc is set only if the verdict is Ours or Adopted; Reason, Empty and PIDFileAt are set
// only if it is not.
type Found struct {
	Verdict   identity.Verdict
	Proc      Proc // zero if the process is not running
	StartedAt time.Time
	ByCgroup  bool // it is a process of the group
	How       identity.How
	Misfit    string // how the process differs from the definition

	Orphans []Proc             // what a main process that has ended left behind
	Reason  string             // why there is no process
	Against string             // why the process that the pid file names is another one
	Near    identity.Candidate // the live process that comes nearest, if there is no process
	// Empty says that nothing that the process's commands started is alive, so none of it can become the process.
	Empty bool
	// PIDFileAt is when the pid file was written. The process that it names has ended, or is a different one.
	PIDFileAt time.Time
}

// Exit is how a watched process ended, as far as it can be known.
type Exit struct {
	Known  bool // false for processes that are not our children
	Code   int
	Signal string
	Core   bool
	OOM    bool // the kernel killed it because memory ran out
}

// Signal is one of the signals that supervision sends.
type Signal uint8

// The signals. A definition chooses the one of a stop.
const (
	SignalTerm Signal = iota + 1
	SignalKill
	SignalInt
	SignalQuit
	SignalHup
	SignalUsr1
	SignalUsr2
	SignalWinch
)

// stopSignal is the signal that asks the process to end.
func stopSignal(p gozzard.Policy) Signal {
	s, known := map[string]Signal{"INT": SignalInt, "QUIT": SignalQuit, "HUP": SignalHup, "USR1": SignalUsr1,
		"USR2": SignalUsr2, "WINCH": SignalWinch, "KILL": SignalKill}[p.StopSignal]
	if !known {
		return SignalTerm
	}
	return s
}

// Usage is the resource use of a process tree. CPU and Mem are percent of the whole machine.
type Usage struct {
	CPU   float32
	Cores float32 // CPU in processor cores
	Mem   float32
	MemKB int64
	FD    int32
	Procs int32
	Disk  int64 // bytes of the regular files that it has open for writing, each file once
	Net   int64 // TCP bytes in and out since its open sockets were opened

	// UserTime and SystemTime are the processor time since the process started. Of the children that it has not
	// collected, only what was measured counts. Neither falls while an agent runs.
	UserTime, SystemTime time.Duration
}
