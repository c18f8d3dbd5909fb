package tracing

import (
	"time"

	"github.com/gozzard/gozzard"
)

// attempt is an attempt that is followed, with the times that are known of it. All are by the clock of this server.
type attempt struct {
	op      gozzard.OpID
	index   int32
	agent   gozzard.AgentID
	key     gozzard.Key
	action  gozzard.Action
	settled bool

	sent     time.Time // first, in the present session
	tries    int
	arrived  time.Time // at the agent
	reported time.Time // the verdict, first
	held     time.Duration
	waited   time.Duration
	ran      time.Duration
}

// report takes the times from a report of the agent. They are durations by the clock of the agent, so the clocks of the
// machines need not agree. What an agent makes up changes no more than where its own work is drawn between the two messages.
func (a *attempt) report(r *gozzard.OpReport, now time.Time) {
	// When it arrived: the first report has the best estimate. The two messages count as equally fast.
	if a.arrived.IsZero() && r.Held > 0 {
		if a.sent.IsZero() { // sent by another server, or an earlier run of this one
			a.arrived = now.Add(-min(r.Held, maxAge))
		} else {
			way := now.Sub(a.sent) - min(r.Held, now.Sub(a.sent))
			a.arrived = a.sent.Add(way / 2)
		}
	}

	if _, final := gozzard.Finalise(r.Phase, r.Outcome.Code); final && a.reported.IsZero() {
		a.reported, a.held, a.waited, a.ran = now, r.Held, r.Waited, r.Ran
	}
}

// execution is when the agent executed it. measured is false if the agent said only how long it had it.
func (a *attempt) execution() (begin, end time.Time, measured bool) {
	if a.arrived.IsZero() || a.reported.IsZero() || a.held <= 0 {
		return begin, end, false
	}
	latestEnd := latest(a.arrived, a.reported)
	within := func(t time.Time, d time.Duration) time.Time {
		if d = max(d, 0); d > latestEnd.Sub(t) {
			return latestEnd
		}
		return t.Add(d)
	}
	if a.ran <= 0 {
		return a.arrived, within(a.arrived, a.held), false
	}
	begin = within(a.arrived, a.waited)
	return begin, within(begin, a.ran), true
}
