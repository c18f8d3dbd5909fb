package identity

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fileSlack is how much later than its pid file a process may seem to begin. The start time of a process counts in
// ticks of 10 ms, and the two clocks are adjusted differently.
const fileSlack = time.Second

// Decide finds out which process belongs to a definition. The first rule that applies decides.
func Decide(e Evidence) Finding { return decide(e, rules, objections) }

func decide(e Evidence, rules []rule, objections []objection) Finding {
	c := call{Evidence: e}
	if e.Named != nil {
		c.member = slices.ContainsFunc(e.Members, func(m Candidate) bool { return m.Proc == e.Named.Proc })
		for _, o := range objections {
			if c.against = o.text(e, *e.Named); c.against != "" {
				break
			}
		}
	}

	for _, r := range rules {
		if f, applies := r.apply(c); applies {
			f.Rule = r.name
			return c.withNear(f)
		}
	}
	return c.withNear(Finding{Reason: joinReasons(c.groupReason(), e.NoName)})
}

// call is the evidence with what follows from it for several rules.
type call struct {
	Evidence
	member  bool   // the pid file names a process of the group
	against string // why the process that the pid file names is not of this definition
}

// rule is one rule of Decide. It returns false if it does not apply.
type rule struct {
	name  string
	apply func(call) (Finding, bool)
}

// rules are in order: the first one that applies decides.
var rules = []rule{
	// A daemon that replaces itself writes the pid of its successor. The successor is of our own group, so nothing
	// foreign can be meant.
	{"successor in the group", func(c call) (Finding, bool) {
		if !c.member || c.Named.Misfit != "" || c.Named.Barred != "" || c.tooYoung(*c.Named) {
			return Finding{}, false
		}
		return Finding{Verdict: Ours, Main: *c.Named, How: HowStarted}, true
	}},

	// What is on record and alive is the process, whatever its name is now.
	{"on record and alive", func(c call) (Finding, bool) {
		if c.Alive == nil {
			return Finding{}, false
		}
		return Finding{Verdict: Ours, Main: *c.Alive, How: HowRecord}, true
	}},

	// The group and the pid file name different processes, and each of them may be the one.
	{"two candidates", func(c call) (Finding, bool) {
		rival := c.rival()
		if rival.IsZero() || !c.adoptable() {
			return Finding{}, false
		}
		return Finding{Verdict: Ambiguous, Reason: fmt.Sprintf(
			"it cannot be said which process it is: pid %d, which its commands started, or pid %d, which its pid file names",
			rival.PID, c.Named.PID)}, true
	}},

	// While a start is in progress, and after one that was interrupted, name and owner decide among the processes
	// that the commands have started.
	{"started and fits", func(c call) (Finding, bool) {
		if c.known() {
			return Finding{}, false
		}
		m := oldest(c.Members, fits)
		return Finding{Verdict: Ours, Main: m, How: HowStarted}, !m.IsZero()
	}},

	// The start command in the foreground has executed another program, and nobody wrote a name: it is the process that
	// the agent has started, whatever its name is.
	{"started, and no name is written", func(c call) (Finding, bool) {
		if c.known() {
			return Finding{}, false
		}
		m := oldest(c.Members, func(m Candidate) bool { return m.Misnamed })
		return Finding{Verdict: Ours, Main: m, How: HowStarted}, !m.IsZero()
	}},

	// The pid file names a process that nothing else knows.
	{"named by the pid file", func(c call) (Finding, bool) {
		return adopted(c), c.adoptable()
	}},

	// No main process is on record, but a command of the definition has started something that lives: it is the process
	// until an operation ends it, also if its name does not fit.
	{"started, nothing on record", func(c call) (Finding, bool) {
		if c.Starting || c.Held.Settled || c.mainEnded() {
			return Finding{}, false
		}
		m := oldest(c.Members, func(Candidate) bool { return true })
		return Finding{Verdict: Ours, Main: m, How: HowStarted}, !m.IsZero()
	}},

	// The main process has ended and left others behind. None of them takes its place.
	{"main process ended, its group lives", func(c call) (Finding, bool) {
		if !c.Held.Settled && !c.mainEnded() || c.Starting && !c.mainEnded() || len(c.Members) == 0 {
			return Finding{}, false
		}
		f := Finding{Reason: "its main process has ended"}
		for _, m := range c.Members {
			f.Orphans = append(f.Orphans, m.Proc)
		}
		return f, true
	}},

	// The pid file names a process that is not of this definition.
	{"foreign", func(c call) (Finding, bool) {
		if c.Named == nil {
			return Finding{}, false
		}
		against := fmt.Sprintf("its pid file names pid %d, %s", c.Named.PID, c.against)
		return Finding{Verdict: Foreign, Reason: joinReasons(c.groupReason(), against), Against: against}, true
	}},
}

func adopted(c call) Finding {
	if c.Named == nil {
		return Finding{}
	}
	return Finding{Verdict: Adopted, Main: *c.Named, How: HowPIDFile}
}

// objection is a reason why the process that a pid file names is not of this definition. The text follows "pid n,". It
// is empty if there is no objection.
type objection struct {
	name string
	text func(Evidence, Candidate) string
}

var objections = []objection{
	{"never a managed process", func(_ Evidence, c Candidate) string { return c.Barred }},

	{"of another definition", func(_ Evidence, c Candidate) string {
		if c.Other == "" {
			return ""
		}
		return "which belongs to another definition or agent" // not which: another team may own it
	}},

	{"name or owner differ", func(_ Evidence, c Candidate) string {
		if c.Misfit == "" {
			return ""
		}
		return "which " + c.Misfit
	}},

	{"younger than the pid file", func(e Evidence, c Candidate) string {
		if !e.tooYoung(c) {
			return ""
		}
		return "which began after the file was written: the pid was used again"
	}},

	{"older than the process on record", func(e Evidence, c Candidate) string {
		if e.Starting && !e.Began.IsZero() && c.StartedAt.Before(e.Began.Add(-fileSlack)) {
			return "which is older than this start"
		}
		if e.Held.IsZero() || e.Held.BootID != c.BootID || c.Start >= e.Held.Start {
			return ""
		}
		return fmt.Sprintf("which is older than pid %d, the process on record", e.Held.PID)
	}},
}

// tooYoung reports whether a process began after the pid file was written, so that the file cannot mean it.
func (e *Evidence) tooYoung(c Candidate) bool { return c.StartedAt.After(e.PIDFileAt.Add(fileSlack)) }

// mainEnded reports whether the pid file says that the process on record was the main process and has ended. It says
// nothing about what a later start has brought up, or what commands have started beside a process that was adopted.
func (c *call) mainEnded() bool { return c.MainEnded && !c.Held.Replaced && c.Held.How != HowPIDFile }

// known reports whether it is known already which process a start has brought up.
func (c *call) known() bool {
	known := c.Held.Settled || c.mainEnded()
	return !c.Starting && known || c.Held.Settled && c.mainEnded()
}

// adoptable reports whether the pid file names a process outside of the group and nothing speaks against it.
func (c *call) adoptable() bool { return c.Named != nil && !c.member && c.against == "" }

// rival is the process of the group that may be the main process although the pid file names another one. It is zero
// if there is none.
func (c *call) rival() Candidate { return oldest(c.Members, fits) }

// groupReason says why no process of the group is the one.
func (c *call) groupReason() string {
	if len(c.Members) == 0 {
		return "nothing that its commands started is running"
	}
	return fmt.Sprintf("of %d processes that its commands started, none is the process: pid %d %s", len(c.Members),
		c.Members[0].PID, c.Members[0].Misfit)
}

// withNear adds the process that comes nearest, if there is none.
func (c *call) withNear(f Finding) Finding {
	switch {
	case f.Verdict != Gone && f.Verdict != Foreign:
	case c.Shell != nil:
		f.Near = *c.Shell
	default:
		f.Near = oldest(c.Members, func(Candidate) bool { return true })
	}
	return f
}

func fits(c Candidate) bool { return c.Misfit == "" && c.Barred == "" }

// oldest is the oldest candidate that a condition accepts. It is zero if there is none.
func oldest(all []Candidate, accept func(Candidate) bool) (best Candidate) {
	for _, c := range all {
		if c.Barred != "" || !accept(c) {
			continue
		}
		if best.IsZero() || c.Start < best.Start || c.Start == best.Start && c.PID < best.PID {
			best = c
		}
	}
	return best
}

func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}
