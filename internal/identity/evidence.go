package identity

import "time"

// Proc is the identity of one process: pid and start time within one boot. No two processes of a machine have the
// same.
type Proc struct {
	BootID string `json:"boot_id"`
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks after boot
}

// IsZero reports whether there is no process.
func (p Proc) IsZero() bool { return p.PID == 0 }

// Held is what is on record about the process of a definition. It stays on record after the process has ended.
type Held struct {
	Proc
	// Settled says that this is the main process: its start check has passed, or it was found while no start was in
	// progress. Until then it may be a script of the start command that looks like the process for a moment.
	Settled bool `json:"settled,omitempty"`
	// Replaced says that a start began after this process was put on record. What that start brings up was not left
	// behind by this process.
	Replaced bool `json:"replaced,omitempty"`
	How      How  `json:"how,omitempty"`
	// Unnamed is the name that was read from the command when this process was put on record, if nobody wrote one: the
	// process may have executed another program since, and still is what the definition means.
	Unnamed string `json:"unnamed,omitempty"`
	// Done says that this process ended by itself and well, and that its definition wants no restart after that.
	Done bool `json:"done,omitempty"`
}

// How says how a process was found. The values are stored, so they do not change.
type How string

// The ways to find a process.
const (
	HowRecord  How = "record"   // it is on record and alive
	HowStarted How = "started"  // a command of the definition has started it
	HowPIDFile How = "pid file" // only the pid file names it: it was adopted
)

// Candidate is one live process that may belong to the definition.
type Candidate struct {
	Proc
	StartedAt time.Time // by the clock that also stamps files

	// Name is the name that it runs as, if the definition says another one.
	Name string
	// Misfit says how name or owner differ from the definition, as in "runs as python3, definition says nginx". It
	// is empty if they fit.
	Misfit string
	// Barred says why it can never be the process of a definition: process 1, the agent, a thread of the kernel, the
	// shell of a running command. It is empty if it can be.
	Barred string
	// Misnamed says that nothing but the name speaks against it, and that nobody wrote that name: it was read from the
	// command. The process is the one that the start command in the foreground became, or that its shell waits for.
	Misnamed bool
	// Other is the other definition that has the process on record or in its group. It is empty if there is none.
	Other string
}

// Evidence is everything that the decision depends on.
type Evidence struct {
	// Starting says that a start or restart is in progress: its command runs, or its check is not over.
	Starting bool
	Began    time.Time // when it began; zero if that is not known

	// Held is what is on record. Alive is that process if it runs.
	Held  Held
	Alive *Candidate

	// Members are the live processes that commands of the definition have started: those of its group. Shells of
	// running commands are not among them.
	Members []Candidate

	// Shell is the shell of a start command in the foreground, if it has the name of the definition. It is barred.
	Shell *Candidate

	// Named is the live process that the pid file names. If there is none, NoName says why.
	Named  *Candidate
	NoName string
	// PIDFileAt is when the pid file was written.
	PIDFileAt time.Time

	// MainEnded says that the pid file names the process on record, which has ended, and was written since that process
	// began, or during the start in progress. So it was the main process, unless it was the launcher of a start.
	MainEnded bool
}

// Verdict is the answer.
type Verdict uint8

// The verdicts.
const (
	Gone      Verdict = iota // nothing of the definition runs, or only what its main process left behind
	Ours                     // it is alive, and we have started or adopted it
	Adopted                  // it is alive, and from now on it is ours: its pid file proves it
	Foreign                  // the pid file names a process that is not of this definition
	Ambiguous                // two processes may be the one: neither may be signalled or reported as running
)

// String is the word for the verdict.
func (v Verdict) String() string {
	return [...]string{"gone", "ours", "adopted", "foreign", "ambiguous"}[v]
}

// Finding is the answer with its reason.
type Finding struct {
	Verdict Verdict
	Main    Candidate // of Ours and Adopted
	How     How       // of Ours and Adopted

	// Orphans are live processes of the group whose main process has ended. Only Gone has them.
	Orphans []Proc

	// Near is the live process that comes nearest to the definition and is not the one: the shell of the start command
	// if it has the name, else the oldest process of the group. It explains Gone and Foreign.
	Near Candidate

	// Reason explains a verdict that names no process. Against says what speaks against the process that the pid file
	// names.
	Reason  string
	Against string
	// Rule is the rule that decided.
	Rule string
}
