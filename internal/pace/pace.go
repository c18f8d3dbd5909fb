package pace

import "time"

const (
	maxDoublings = 16 // of the pause of one message, so that it cannot overflow
	maxShared    = 3  // of the pauses of all messages: a few hosts that are silent must not make all others wait
)

// Limits are the shortest and the longest pause before a repeat.
type Limits struct{ Least, Most time.Duration }

// Estimate follows the time that answers take, as TCP does: a smoothed mean, and how far answers are from it. The zero
// value knows nothing. It needs a lock around it.
type Estimate struct {
	mean, deviation time.Duration
	known           bool

	// After a repeat nobody knows which of the messages an answer is for, so it is not measured (Karn's rule). The doubled
	// pause stays until one is answered at the first try. Otherwise a pause that is too short would stay too short.
	doublings int
	doubled   time.Time // the last time
}

// Answered adds the time of an answer to something that was sent once.
func (e *Estimate) Answered(took time.Duration) {
	took = max(took, 0)
	e.doublings = 0
	if !e.known {
		e.mean, e.deviation, e.known = took, took/2, true
		return
	}
	e.deviation += ((e.mean - took).Abs() - e.deviation) / 4
	e.mean += (took - e.mean) / 8
}

// Overdue says that something sent once was not answered within its pause. Many that were sent together count as one.
func (e *Estimate) Overdue(sent, now time.Time) {
	if sent.Before(e.doubled) {
		return
	}
	e.doublings, e.doubled = min(e.doublings+1, maxShared), now
}

// Expected is the time within which nearly all answers come; 0 when nothing was measured yet.
func (e *Estimate) Expected() time.Duration { return e.mean + 4*e.deviation }

// Pause is the time before the next repeat of something that was sent tries times. random is in [0, 1) and spreads the
// pauses over a quarter more, so that the members of a fleet do not repeat at the same moment.
func (e *Estimate) Pause(tries int, l Limits, random float64) time.Duration {
	d := max(e.Expected(), l.Least)
	for range min(max(tries-1, e.doublings), maxDoublings) {
		if d >= l.Most {
			break
		}
		d *= 2
	}
	d = min(d, l.Most)
	return d + time.Duration(float64(d)/4*random)
}
