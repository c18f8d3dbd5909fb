package supervise

import (
	"github.com/gozzard/gozzard"
)

// Past is what is on record about earlier runs of a process. The agent stores it, so that an agent that starts again
// shows the same.
type Past struct {
	Exit     gozzard.Ending  `json:"exit,omitzero"`      // of the newest process that ended, or of its start command
	Of       Proc            `json:"of,omitzero"`        // the process that Exit is about
	Run      gozzard.LastRun `json:"run,omitzero"`       // of a periodic or one-shot process
	Restarts uint32          `json:"restarts,omitempty"` // without a request since the last start or stop by an operation
	Failed   bool            `json:"failed,omitempty"`   // the newest start by an operation or a plan has failed
	Downs    int             `json:"downs,omitempty"`    // exits and failed starts in a row
	Boot     string          `json:"boot,omitempty"`     // in which Downs were counted
}

// Remember adds what is on record about earlier runs. It must be called before Restore.
func (s *Supervisor) Remember(pasts map[gozzard.Key]Past) {
	for key, p := range pasts {
		s.pasts[key] = p
	}
}

func (a *actor) setPast(p Past) {
	if p == a.past {
		return
	}
	a.past = p
	a.s.pastChanged(a.key, p)
}

// tracksRuns reports whether the last run of the process is shown.
func (a *actor) tracksRuns() bool {
	return a.spec != nil && a.spec.Policy.Shown() != gozzard.ShownResident
}

// ending is the end of a process as it is shown.
func (a *actor) ending(e Exit) gozzard.Ending {
	end := gozzard.Ending{At: a.s.now().UnixMilli(), Known: e.Known, Signal: e.Signal, Core: e.Core, OOM: e.OOM}
	if e.Known && e.Signal == "" {
		end.Code = int32(e.Code)
	}
	return end
}

// noteRun records that a run begins.
func (a *actor) noteRun() {
	if p := a.past; a.tracksRuns() {
		p.Run = gozzard.LastRun{StartedAt: a.s.now().UnixMilli()}
		a.setPast(p)
	}
}

// noteFoundRun records a run that no start of the agent has begun.
func (a *actor) noteFoundRun() {
	p := a.past
	if !a.tracksRuns() || a.starting || p.Run.StartedAt != 0 && p.Run.End.IsZero() {
		return
	}
	p.Run = gozzard.LastRun{StartedAt: a.since.UnixMilli()}
	a.setPast(p)
}

// noteEnd records how a process ended, or with a zero process how the start command ended that was the whole run. While
// a start is in progress it waits for its end: what has ended may be a script of the start command.
func (a *actor) noteEnd(proc Proc, e Exit) {
	if proc.IsZero() {
		proc = a.held.Proc // nothing else of the process can have ended unseen
	}
	end := pastEnd{proc, a.ending(e)}
	if a.starting {
		a.lateEnd = &end
		return
	}
	a.recordEnd(end)
}

// pastEnd is the end of a process.
type pastEnd struct {
	of  Proc
	end gozzard.Ending
}

func (a *actor) recordEnd(e pastEnd) {
	p := a.past
	p.Exit, p.Of = e.end, e.of
	if a.tracksRuns() {
		p.Run.End = e.end
	}
	a.setPast(p)
}

// noteLaunch records the end of a start. What ended meanwhile was the process if nothing of it runs. A run of which
// nothing was seen has ended with its start.
func (a *actor) noteLaunch(code gozzard.Code) {
	if a.lateEnd != nil && !a.running() {
		a.recordEnd(*a.lateEnd)
	}
	a.lateEnd = nil

	p := a.past
	p.Failed = p.Failed && code != gozzard.CodeOK
	if !a.running() && code != "" && p.Run.StartedAt != 0 && p.Run.End.IsZero() {
		p.Run.End = a.ending(Exit{})
	}
	a.setPast(p)
}

// noteFailed records whether the newest start has failed.
func (a *actor) noteFailed(failed bool) {
	p := a.past
	p.Failed = failed
	a.setPast(p)
}

// noteRestart counts a restart without a request.
func (a *actor) noteRestart() {
	p := a.past
	p.Restarts++
	a.setPast(p)
}

// noteDowns records how often in a row the process went down: an agent that starts again continues the pauses between
// starts, and does not begin a crash loop anew.
func (a *actor) noteDowns() {
	p := a.past
	p.Downs, p.Boot = 0, ""
	if a.downs > 0 && a.s.boot != "" && a.spec != nil {
		p.Downs, p.Boot = a.downs, a.s.boot
	}
	a.setPast(p)
}

// downsOnRecord is the count that an agent that starts again continues. A boot begins a new one.
func (a *actor) downsOnRecord() int {
	if a.s.boot == "" || a.past.Boot != a.s.boot {
		return 0
	}
	return a.past.Downs
}

// noteMissed records that the process on record ended while the agent did not run, so that its exit is not known. What an
// agent of an earlier version recorded says nothing about that.
func (a *actor) noteMissed() {
	known := a.past != (Past{})
	switch {
	case a.running() || a.unclear != "" || !known:
	case !a.held.IsZero() && a.past.Of != a.held.Proc:
		a.noteEnd(a.held.Proc, Exit{})
	case a.past.Run.StartedAt != 0 && a.past.Run.End.IsZero():
		p := a.past
		p.Run.End = a.ending(Exit{})
		a.setPast(p)
	}
}
