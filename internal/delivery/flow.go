package delivery

import (
	"time"

	"github.com/gozzard/gozzard/internal/pace"
)

// The window of operations that are sent and not answered.
const (
	windowFirst = 256
	windowLeast = 64

	queueTarget = 150 * time.Millisecond // more than the shortest time on the way: the window is too large
	shortestFor = 5 * time.Minute        // how long the shortest time on the way counts
	patience    = 200 * time.Millisecond // an answer is not late before this time
	repeatMost  = 15                     // the longest pause before a repeat, in shortest ones
)

// flow sizes the one window of the server by the time that operations are on their way: from sending until the answer is
// recorded, without the time that the agent held them. When that time grows, operations queue somewhere between here
// and the record, and more of them would only wait longer: the window shrinks. Otherwise it grows while it is used up.
type flow struct {
	most  int     // the largest window
	size  float64 // of the window
	quick bool    // it was never too large: it doubles with each time on the way

	air      pace.Estimate
	delay    time.Duration // on the way, smoothed
	shortest [2]time.Duration
	since    time.Time // of shortest[0]; [1] is of the period before
	cut      time.Time // when the window last shrank
}

func newFlow(most int) flow {
	return flow{most: most, size: float64(min(windowFirst, most)), quick: true}
}

// window is how many operations may be sent and not answered.
func (f *flow) window() int { return max(int(f.size), 1) }

// answered adds the time that an operation was on its way. full says that the window was used up.
func (f *flow) answered(took time.Duration, full bool, now time.Time) {
	took = max(took, 0)
	f.air.Answered(took)
	f.noteShortest(took, now)
	if f.delay == 0 {
		f.delay = took
	}
	f.delay += (took - f.delay) / 8

	least := float64(min(windowLeast, f.most))
	switch {
	case f.delay > f.base()+queueTarget:
		if now.Sub(f.cut) >= f.delay { // once for all that were on their way together
			f.size, f.cut, f.quick = max(f.size*0.8, least), now, false
		}
	case !full:
	case f.quick:
		f.size = min(f.size+1, float64(f.most))
	default: // by a 32nd and 1 with each time on the way
		f.size = min(f.size+1.0/32+1/f.size, float64(f.most))
	}
}

// noteShortest keeps the shortest time of this period and the one before.
func (f *flow) noteShortest(took time.Duration, now time.Time) {
	if now.Sub(f.since) > shortestFor {
		f.shortest, f.since = [2]time.Duration{took, f.shortest[0]}, now
	}
	f.shortest[0] = min(f.shortest[0], took)
}

// base is the shortest time on the way that was seen lately.
func (f *flow) base() time.Duration {
	if f.shortest[1] == 0 {
		return f.shortest[0]
	}
	return min(f.shortest[0], f.shortest[1])
}

// late is the time after which an operation without an answer does not make others wait any longer. It is at most the
// shortest pause before a repeat.
func (f *flow) late(resend time.Duration) time.Duration {
	expected := f.air.Expected()
	if expected == 0 {
		return resend
	}
	return min(max(2*expected, patience), resend)
}

// pause is the time before something that was sent is repeated; repeats is how often it was already.
func (f *flow) pause(repeats int, resend time.Duration, random float64) time.Duration {
	return f.air.Pause(repeats+1, pace.Limits{Least: resend, Most: repeatMost * resend}, random)
}
