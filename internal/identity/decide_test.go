package identity

import (
	"strings"
	"testing"
	"time"
)

var boot = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at makes a candidate that began so many seconds after the boot.
func at(pid, secs int) Candidate {
	return Candidate{Proc: Proc{BootID: "b", PID: pid, Start: uint64(100 * secs)},
		StartedAt: boot.Add(time.Duration(secs) * time.Second)}
}

func (c Candidate) misfit() Candidate {
	c.Misfit = "runs as python3, definition says nginx"
	return c
}

func (c Candidate) misnamed() Candidate {
	c.Misnamed = true
	return c
}

func held(c Candidate, settled bool) Held { return Held{Proc: c.Proc, Settled: settled} }

func file(secs int) time.Time { return boot.Add(time.Duration(secs) * time.Second) }

// TestDecide has a row for every rule and every objection, and for what must not be confused with them.
func TestDecide(t *testing.T) {
	a, b, worker := at(10, 100), at(20, 200), at(11, 101)
	taken, barred := b, b
	taken.Other, barred.Barred = "ns/b", "which is a thread of the kernel"

	for _, c := range []struct {
		name string
		e    Evidence
		want Verdict
		pid  int
		rule string
		text string // is part of the reason
	}{
		{"nothing", Evidence{NoName: "no pid file is defined"}, Gone, 0, "", "no pid file"},
		{"on record and alive", Evidence{Held: held(a, true), Alive: &a}, Ours, 10, "on record and alive", ""},
		{"alive under another name", Evidence{Held: held(a, true), Alive: ptr(a.misfit())}, Ours, 10,
			"on record and alive", ""},
		{"alive, pid file overwritten with a stranger", Evidence{Held: held(a, true), Alive: &a, Named: &b,
			PIDFileAt: file(300)}, Ours, 10, "on record and alive", ""},
		{"handover in the group", Evidence{Held: held(a, true), Alive: &a, Members: []Candidate{a, b}, Named: &b,
			PIDFileAt: file(201)}, Ours, 20, "successor in the group", ""},
		{"handover back to an older master", Evidence{Held: held(b, true), Members: []Candidate{a}, Named: &a,
			PIDFileAt: file(300)}, Ours, 10, "successor in the group", ""},
		{"pid reused inside the group", Evidence{Held: held(a, true), Alive: &a, Members: []Candidate{a, b}, Named: &b,
			PIDFileAt: file(150)}, Ours, 10, "on record and alive", ""},

		{"starting: fits", Evidence{Starting: true, Members: []Candidate{worker, a}}, Ours, 10, "started and fits", ""},
		{"starting: does not fit", Evidence{Starting: true, Members: []Candidate{a.misfit()}}, Gone, 0, "",
			"definition says nginx"},
		{"starting: does not fit, no name is written", Evidence{Starting: true, Members: []Candidate{worker.misfit(),
			a.misfit().misnamed()}}, Ours, 10, "started, and no name is written", ""},
		{"starting: no name is written, but one fits", Evidence{Starting: true, Members: []Candidate{a.misfit().misnamed(),
			b}}, Ours, 20, "started and fits", ""},
		{"starting: no name is written, the main process has ended", Evidence{Starting: true, Held: held(a, true),
			MainEnded: true, Members: []Candidate{b.misfit().misnamed()}}, Gone, 0, "main process ended, its group lives", ""},
		{"starting: the process before has ended", Evidence{Starting: true, Held: held(a, true),
			Members: []Candidate{b}}, Ours, 20, "started and fits", ""},
		{"starting: the main process has ended, its worker fits", Evidence{Starting: true, Held: held(a, true),
			MainEnded: true, Members: []Candidate{worker}}, Gone, 0, "main process ended, its group lives", ""},
		{"starting: the launcher has ended, what it started fits", Evidence{Starting: true, Held: held(a, false),
			MainEnded: true, Members: []Candidate{worker}}, Ours, 11, "started and fits", ""},
		{"start was interrupted, the main process has ended", Evidence{Held: held(a, false), MainEnded: true,
			Members: []Candidate{worker}}, Gone, 0, "main process ended, its group lives", ""},
		{"start was interrupted", Evidence{Held: held(a, false), Members: []Candidate{b}}, Ours, 20,
			"started and fits", ""},
		{"second start was interrupted, the pid file is old", Evidence{Held: Held{Proc: a.Proc, Replaced: true},
			MainEnded: true, Members: []Candidate{b}}, Ours, 20, "started and fits", ""},
		{"start was interrupted, what was adopted during it has ended", Evidence{Held: Held{Proc: a.Proc, How: HowPIDFile},
			MainEnded: true, Members: []Candidate{b}}, Ours, 20, "started and fits", ""},
		{"start was interrupted, does not fit", Evidence{Held: held(a, false), Members: []Candidate{b.misfit()}}, Ours, 20,
			"started, nothing on record", ""},
		{"nothing on record, does not fit", Evidence{Members: []Candidate{a.misfit()}}, Ours, 10,
			"started, nothing on record", ""},

		{"master dead, worker fits", Evidence{Held: held(a, true), Members: []Candidate{worker}}, Gone, 0,
			"main process ended, its group lives", "main process has ended"},
		{"master dead, pid file names it", Evidence{Held: held(a, true), Members: []Candidate{worker},
			NoName: "names pid 10, which does not run"}, Gone, 0, "main process ended, its group lives", ""},
		{"master dead, started by hand beside its workers", Evidence{Held: held(a, true), Members: []Candidate{worker},
			Named: &b, PIDFileAt: file(201)}, Ambiguous, 0, "two candidates", "pid 11"},
		{"start interrupted, started by hand beside it", Evidence{Members: []Candidate{a}, Named: &b,
			PIDFileAt: file(201)}, Ambiguous, 0, "two candidates", "pid 20"},

		{"adopted", Evidence{Named: &b, PIDFileAt: file(200)}, Adopted, 20, "named by the pid file", ""},
		{"restarted by hand", Evidence{Held: held(a, true), Named: &b, PIDFileAt: file(201)}, Adopted, 20,
			"named by the pid file", ""},
		{"adopted after a reboot", Evidence{Held: Held{Proc: Proc{BootID: "before", PID: 10, Start: 99999}}, Named: &b,
			PIDFileAt: file(201)}, Adopted, 20, "named by the pid file", ""},
		{"of another definition", Evidence{Named: &taken, PIDFileAt: file(300)}, Foreign, 0, "foreign",
			"which belongs to another definition or agent"},
		{"another name", Evidence{Named: ptr(b.misfit()), PIDFileAt: file(300)}, Foreign, 0, "foreign",
			"which runs as python3"},
		{"never managed", Evidence{Named: &barred, PIDFileAt: file(300)}, Foreign, 0, "foreign", "thread of the kernel"},
		{"pid reused", Evidence{Named: &b, PIDFileAt: file(100)}, Foreign, 0, "foreign", "began after the file"},
		{"starting: older than the start", Evidence{Starting: true, Began: file(250), Named: &b, PIDFileAt: file(300)},
			Foreign, 0, "foreign", "older than this start"},
		{"starting: brought up by another program", Evidence{Starting: true, Began: file(150), Named: &b,
			PIDFileAt: file(300)}, Adopted, 20, "named by the pid file", ""},
		{"starting: started, and the pid file names an older process", Evidence{Starting: true, Began: file(190),
			Members: []Candidate{b}, Named: &a, PIDFileAt: file(300)}, Ours, 20, "started and fits", ""},
		{"older than what is on record", Evidence{Held: held(b, true), Named: &a, PIDFileAt: file(300)}, Foreign, 0,
			"foreign", "older than pid 20"},
	} {
		f := Decide(c.e)
		if f.Verdict != c.want || f.Main.PID != c.pid || f.Rule != c.rule || !strings.Contains(f.Reason, c.text) {
			t.Errorf("%s: %s pid %d by %q: %s\nwant %s pid %d by %q: %s", c.name, f.Verdict, f.Main.PID, f.Rule,
				f.Reason, c.want, c.pid, c.rule, c.text)
		}
		if (f.Verdict == Ours || f.Verdict == Adopted) != (f.Main.PID != 0) || len(f.Orphans) > 0 && f.Verdict != Gone {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func ptr(c Candidate) *Candidate { return &c }

// TestNear checks which process a finding without a process names.
func TestNear(t *testing.T) {
	older := Candidate{Proc: Proc{BootID: "now", PID: 30, Start: 100}, Name: "python3", Misfit: "runs as python3"}
	younger := Candidate{Proc: Proc{BootID: "now", PID: 20, Start: 200}, Name: "cat", Misfit: "runs as cat"}
	shell := Candidate{Proc: Proc{BootID: "now", PID: 10, Start: 50}, Barred: "which is the shell of a running command"}
	fit := Candidate{Proc: Proc{BootID: "now", PID: 40, Start: 300}}
	for name, c := range map[string]struct {
		e    Evidence
		near Candidate
	}{
		"nothing":            {Evidence{Starting: true}, Candidate{}},
		"oldest":             {Evidence{Starting: true, Members: []Candidate{younger, older}}, older},
		"shell has the name": {Evidence{Starting: true, Members: []Candidate{older}, Shell: &shell}, shell},
		"found":              {Evidence{Starting: true, Members: []Candidate{older, fit}, Shell: &shell}, Candidate{}},
	} {
		if f := Decide(c.e); f.Near != c.near {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
