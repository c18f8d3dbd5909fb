package fleet

import (
	"math"

	"github.com/gozzard/gozzard"
)

const (
	maxSignalBytes = 32
	maxHealthBytes = 512
)

// history is what only some processes have: an end, or restarts. Number 0 means that a row has none.
type history struct {
	exitAt   int64
	exitCode int32
	signal   uint32 // in Index.messages
	plan     uint32 // in Index.plans; 0: none
	restarts uint16
	flags    endFlags
}

// plan is what few processes have: a next start, a last run, or bad health. Number 0 means that a row has none.
type plan struct {
	nextAt    int64
	startedAt int64
	endedAt   int64
	code      int32
	signal    uint32 // in Index.messages
	health    uint32 // in Index.messages
	flags     endFlags
}

// endFlags are the yes-or-no values of an end.
type endFlags uint8

const (
	endKnown endFlags = 1 << iota
	endCore
	endOOM
)

func packEnd(e *gozzard.Ending) (f endFlags) {
	if e.Known {
		f |= endKnown
	}
	if e.Core {
		f |= endCore
	}
	if e.OOM {
		f |= endOOM
	}
	return f
}

func (f endFlags) ending(at int64, code int32, signal string) gozzard.Ending {
	return gozzard.Ending{At: at, Code: code, Signal: signal,
		Known: f&endKnown != 0, Core: f&endCore != 0, OOM: f&endOOM != 0}
}

// storeHistory writes what only some processes have. A process without it needs no memory for it.
func (x *Index) storeHistory(r *row, s *gozzard.Status) {
	planned := s.NextAt != 0 || s.LastRun != (gozzard.LastRun{}) || s.HealthMessage != ""
	if !planned && s.Exit.IsZero() && s.Restarts == 0 {
		x.dropHistory(r)
		return
	}

	if r.history == 0 {
		r.history = x.histories.alloc()
	}
	h := x.histories.at(r.history)
	h.exitAt, h.exitCode, h.flags = s.Exit.At, s.Exit.Code, packEnd(&s.Exit)
	h.restarts = uint16(min(s.Restarts, math.MaxUint16))
	x.messages.swap(&h.signal, clip(s.Exit.Signal, maxSignalBytes))

	if !planned {
		x.dropPlan(h)
		return
	}
	if h.plan == 0 {
		h.plan = x.plans.alloc()
	}
	p, end := x.plans.at(h.plan), &s.LastRun.End
	p.nextAt, p.startedAt, p.endedAt, p.code, p.flags = s.NextAt, s.LastRun.StartedAt, end.At, end.Code, packEnd(end)
	x.messages.swap(&p.signal, clip(end.Signal, maxSignalBytes))
	x.messages.swap(&p.health, clip(s.HealthMessage, maxHealthBytes))
}

// loadHistory reads what storeHistory has written.
func (x *Index) loadHistory(r *row, s *gozzard.Status) {
	if r.history == 0 {
		return
	}
	h := x.histories.at(r.history)
	s.Exit, s.Restarts = h.flags.ending(h.exitAt, h.exitCode, x.messages.text(h.signal)), uint32(h.restarts)
	if h.plan == 0 {
		return
	}
	p := x.plans.at(h.plan)
	s.NextAt, s.HealthMessage = p.nextAt, x.messages.text(p.health)
	s.LastRun = gozzard.LastRun{StartedAt: p.startedAt, End: p.flags.ending(p.endedAt, p.code, x.messages.text(p.signal))}
}

// dropHistory frees what storeHistory has allocated.
func (x *Index) dropHistory(r *row) {
	if r.history == 0 {
		return
	}
	h := x.histories.at(r.history)
	x.dropPlan(h)
	x.messages.drop(h.signal)
	x.histories.release(r.history)
	r.history = 0
}

func (x *Index) dropPlan(h *history) {
	if h.plan == 0 {
		return
	}
	p := x.plans.at(h.plan)
	x.messages.drop(p.signal)
	x.messages.drop(p.health)
	x.plans.release(h.plan)
	h.plan = 0
}
