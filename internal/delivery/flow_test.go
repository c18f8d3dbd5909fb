package delivery

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// line is a fabric and a record that carry so many operations a second, after a fixed time on the way.
type line struct {
	f    flow
	now  time.Time
	rate int
	way  time.Duration
}

// run keeps the window used up for some time. It returns the operations that were answered, and the longest time on the
// way in the second half.
func (l *line) run(d time.Duration, r *rand.Rand) (answered int, longest time.Duration) {
	half, end := l.now.Add(d/2), l.now.Add(d)
	var sent []time.Time // answered in this order
	for credit := 0.0; l.now.Before(end); l.now = l.now.Add(time.Millisecond) {
		for len(sent) < l.f.window() {
			sent = append(sent, l.now)
		}
		credit = min(credit+float64(l.rate)/1000, 100)
		for credit >= 1 && len(sent) > 0 && l.now.Sub(sent[0]) >= l.way {
			credit--
			took := l.now.Sub(sent[0]) + time.Duration(r.IntN(int(2*time.Millisecond)))
			sent = sent[1:]
			answered++
			l.f.answered(took, true, l.now)
			if l.now.After(half) {
				longest = max(longest, took)
			}
		}
	}
	return answered, longest
}

// The window grows to what the line carries and no further, and follows when the line gets slower.
func TestFlowFindsWhatTheLineCarries(t *testing.T) {
	for _, rate := range []int{500, 5000, 50_000} {
		r := rand.New(rand.NewPCG(1, 2))
		l := &line{f: newFlow(16 << 10), now: time.Unix(1_700_000_000, 0), rate: rate, way: 10 * time.Millisecond}
		answered, longest := l.run(20*time.Second, r)
		if answered < rate*20*8/10 {
			t.Errorf("%d a second: %d answered in 20 s", rate, answered)
		}
		if longest > time.Second {
			t.Errorf("%d a second: on the way for %v, window %d", rate, longest, l.f.window())
		}

		l.rate /= 4
		if answered, longest = l.run(20*time.Second, r); answered < l.rate*20*8/10 || longest > time.Second {
			t.Errorf("%d a second after more: %d answered in 20 s, on the way for %v, window %d", l.rate, answered, longest,
				l.f.window())
		}
	}
}

// The window stays within its limits whatever agents say, and does not grow while it is not used.
func TestFlowLimits(t *testing.T) {
	f, now := newFlow(1000), time.Unix(1_700_000_000, 0)
	for range 100_000 {
		f.answered(time.Millisecond, false, now)
	}
	if w := f.window(); w != windowFirst {
		t.Errorf("unused, the window is %d", w)
	}
	for range 100_000 {
		f.answered(-time.Hour, true, now)
	}
	if w := f.window(); w != 1000 {
		t.Errorf("the window is %d, at most 1000 are allowed", w)
	}
	for i := range 100_000 {
		f.answered(time.Hour, true, now.Add(time.Duration(i)*time.Hour))
	}
	if w := f.window(); w < windowLeast {
		t.Errorf("the window is %d", w)
	}
}

// Most silent hosts leave the window when the others would have answered, and never later than their first repeat.
func TestLate(t *testing.T) {
	f := newFlow(100)
	if d := f.late(time.Second); d != time.Second {
		t.Errorf("nothing measured: late after %v", d)
	}
	for range 100 {
		f.answered(20*time.Millisecond, true, time.Now())
	}
	if d := f.late(time.Second); d != patience {
		t.Errorf("answers take 20 ms: late after %v", d)
	}
	for range 100 {
		f.answered(time.Minute, true, time.Now())
	}
	if d := f.late(time.Second); d != time.Second {
		t.Errorf("answers take a minute: late after %v", d)
	}
}

// What was recorded lately is known, and the oldest is forgotten first.
func TestRecentIsBounded(t *testing.T) {
	var r recent
	var ops []gozzard.OpID
	for range recentMost + 100 {
		op := gozzard.NewOpID()
		ops = append(ops, op)
		r.add(op, "a")
		r.add(op, "b") // the first one counts
	}
	if len(r.owners) != recentMost || len(r.ring) != recentMost {
		t.Errorf("%d known, %d in the ring", len(r.owners), len(r.ring))
	}
	for i, op := range slices.Concat(ops[:100], ops[len(ops)-100:]) {
		if owner, known := r.owner(op); known != (i >= 100) || known && owner != "a" {
			t.Errorf("operation %d: %q, %v", i, owner, known)
		}
	}
}
