package supervise

import (
	"time"

	"github.com/gozzard/gozzard"
)

// query answers at once with the present state of the machine, even while the process's actor is busy. The outcome
// always has a Detail.
func (s *Supervisor) query(op Op) {
	if op.Begin != nil {
		if err := op.Begin(); err != nil {
			s.log.Debug("query was not begun", "op", op.ID, "err", err)
			return
		}
	}

	out := failed(gozzard.CodeCommandFailed, internalError)
	s.guard("query", func() { out = s.inspect(op) })
	op.Done(out, nil, false)
}

// inspect finds the process of a query and reads its details.
func (s *Supervisor) inspect(op Op) gozzard.Outcome {
	// Start from what the actor knows.
	var v view
	a := s.actor(op.Key)
	if a != nil {
		v = a.snapshot()
	}
	if !v.managed {
		v = view{}
	}

	// Use the definition of the query if there is no other.
	out := ok()
	spec := v.spec
	if spec == nil && len(op.Spec) > 0 {
		given, err := gozzard.DecodeSpec(op.Spec)
		if err != nil {
			out.Message = "cannot read the definition of " + op.Key.String() + ": " + err.Error()
		}
		spec = given
	}

	// Look for the process.
	var proc Proc
	var started time.Time
	if spec != nil {
		f, err := s.host.Find(Query{Key: op.Key, Spec: spec, Held: v.held, Starting: v.starting,
			Taken: s.takenBut(op.Key)})
		if err != nil {
			out.Message = "cannot look for " + op.Key.String() + ": " + err.Error()
		}
		proc, started = f.Proc, f.StartedAt
		if v.managed && err == nil && proc != v.proc { // the actor has not seen it yet
			a.post(event{kind: eventLook})
		}
	}

	d := s.detail(proc, started, v)
	out.Hosted, out.Detail = d.Hosted, &d
	return out
}

// detail reads what a query reports about a process. A process that ends meanwhile is reported as not running.
func (s *Supervisor) detail(proc Proc, started time.Time, v view) gozzard.Detail {
	now := s.now()
	_, offset := now.Zone()
	d := gozzard.Detail{PID: -1}

	// Read what the machine knows.
	if !proc.IsZero() {
		if seen, err := s.host.Inspect(proc); err == nil {
			d = seen
			d.PID = proc.PID
		} else {
			s.log.Debug("cannot inspect the process", "pid", proc.PID, "err", err)
		}
	}

	// Add usage and times.
	if d.PID > 0 {
		u := v.usage
		if !v.sampled || v.proc != proc {
			u = s.host.Sample([]Proc{proc})[0]
		}
		d.CPU, d.Mem, d.MemKB = float64(u.CPU), float64(u.Mem), u.MemKB
		if d.StartedAt == 0 && !started.IsZero() {
			d.StartedAt = started.Unix()
		}
		if d.Elapsed == 0 && d.StartedAt > 0 {
			d.Elapsed = max(0, now.Unix()-d.StartedAt)
		}
	}

	// Add what only the actor knows.
	d.Hosted, d.Version = v.status.Hosted, v.status.Version
	if d.PID > 0 && v.proc == proc {
		d.Health = v.health
	}
	d.RegisteredAt, d.LastStart = v.status.RegisteredAt, max(v.status.StartedAt, d.StartedAt)
	d.ReportedAt, d.ZoneOffset = now.Unix(), offset
	return d
}
