package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// Host is the machine as supervision needs it. The real one is package host, the simulated one package sim. All
// methods are safe for concurrent use and none blocks longer than its context or time-out says.
type Host interface {
	// Run runs one shell command of a process to its end: as the definition's user, in its setup path, in a cgroup
	// of its own below the process's, so that what it leaves behind is found again. The error is for commands that
	// could not be run at all (no such user, no such folder, refused); a command that ran and failed is a Result.
	// When ctx ends, Run returns at once with its error and leaves the command alone: the agent going away never
	// touches a process.
	Run(ctx context.Context, r Run) (Result, error)

	// Find looks for the live process of a definition: in its cgroup first, then through its pid file, verified by
	// name and owner. When there is none, Reason says in words what was looked at, for the message of a failed
	// check.
	Find(key gozzard.Key, spec *gozzard.Spec) (Found, error)

	// Watch calls exited once when the process is gone, from another goroutine. The returned func ends the watch;
	// after it returned, exited is not called any more.
	Watch(p Proc, exited func(Exit)) (stop func(), err error)

	// Alive reports whether that very process (not a later one with its pid) still runs; zombies do not.
	Alive(p Proc) bool

	// Collect waits a moment until a process that has ended is out of the process table, taking it in if it is ours
	// to: whoever looks by pid must not take a dead one for alive after a stop was reported.
	Collect(ctx context.Context, p Proc)

	// Signal sends TERM or KILL to that very process.
	Signal(p Proc, sig Signal) error

	// Clear kills everything left in the process's cgroup and removes it. Processes that were found by pid file
	// only are not touched.
	Clear(key gozzard.Key) error

	// Sample measures the trees of the given processes in one pass over the machine. The answer is aligned with
	// procs; gone ones are zero.
	Sample(procs []Proc) []Usage

	// Limit sets what the kernel holds the process's cgroup to (CPU and Mem percent of the machine when Enforce,
	// else nothing) and says in a word how: "cgroup2", "cgroup1" or "" when the kernel cannot here. It never makes
	// a start fail.
	Limit(key gozzard.Key, r gozzard.Resource) (mode string, err error)

	// OOMKills counts what the kernel has ended for its memory among all that belongs to the process, as far as it
	// tells; the count may begin anew.
	OOMKills(key gozzard.Key) int

	// ReadLog reads what the process and its commands printed, from the rotated files.
	ReadLog(q gozzard.LogQuery) gozzard.LogChunk

	// Inspect reads what a query reports beyond usage.
	Inspect(p Proc) (gozzard.Detail, error)
}

// Run is one command to run.
type Run struct {
	Key     gozzard.Key
	Spec    *gozzard.Spec
	Op      gozzard.OpID   // zero for pull-ups and probes
	Action  gozzard.Action // what the command is run for; ActionQuery for probes such as version
	Command string
	Timeout time.Duration
	// Keeps says that what the command starts belongs to the process and stays (start, restart, reload); otherwise
	// its leftovers are cleared when it ends (stop, kill, version). What a stop or kill has put into the background
	// may end first, within the time-out.
	Keeps bool
	// Front says that the command may be the process itself: when it still runs after this long and the process of
	// the definition is found alive in its cgroup, Run returns with Result.Front and leaves it running. 0: a
	// command must end.
	Front time.Duration
	// Hurry, once it is closed, says that somebody waits for the end of Run: a command in front is handed over as
	// soon as its process is found, before the time that Front gives. A command that must end, or whose process is
	// not there yet, goes on as if nothing had been said.
	Hurry <-chan struct{}
}

// Result is how a command ended.
type Result struct {
	ExitCode int // -1 when killed
	Signal   string
	TimedOut bool
	Front    bool
	Output   string // the last lines of stdout and stderr together, valid UTF-8, bounded
}

// Proc is the identity of one running process: pid and start time within one boot.
type Proc struct {
	BootID string `json:"boot_id"`
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks after boot
}

// IsZero reports whether there is no process.
func (p Proc) IsZero() bool { return p.PID == 0 }

// Found is the answer of Find.
type Found struct {
	Proc      Proc
	StartedAt time.Time
	ByCgroup  bool
	Reason    string // when Proc is zero
	// when Proc is zero: nothing that the process's commands started lives, so that none of it can still become the
	// process
	Empty bool
	// when Proc is zero: when the pid file was written that names a process, which then is not it or has ended
	PIDFileAt time.Time
}

// Exit is how a watched process ended, as far as it can be known.
type Exit struct {
	Known  bool // false for processes that are not our children
	Code   int
	Signal string
	Core   bool
	OOM    bool // the kernel ended it for its memory
}

// Signal is one of the two signals supervision sends.
type Signal uint8

// The signals.
const (
	SignalTerm Signal = iota + 1
	SignalKill
)

// Usage is the resource use of a process tree. CPU and Mem are percent of the whole machine.
type Usage struct {
	CPU   float32
	Mem   float32
	MemKB int64
	FD    int32
	Procs int32
	Disk  int64 // bytes of regular files it holds open for writing, each file once
	Net   int64 // TCP bytes in and out since the sockets it holds were opened
}
