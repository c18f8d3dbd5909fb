package control_test

import (
	"math"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// vitals sends a heartbeat with vitals and returns what the server keeps of them.
func (r *rig) vitals(v *gozzard.Vitals) fleet.Vitals {
	r.t.Helper()
	r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHeartbeat, Session: 1, Beat: 1, Vitals: v})
	for _, h := range r.plane.Hosts(caller) {
		if h.Info.Agent == me {
			return h.Vitals
		}
	}
	r.t.Fatal("the host is not known")
	return fleet.Vitals{}
}

// near reports whether a skew is what is wanted, give or take the time that this test takes on a slow machine.
func near(got, want time.Duration) bool { return got <= want && got > want-30*time.Second }

func TestVitalsOfAHost(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	at := func(ahead time.Duration) int64 { return time.Now().Add(ahead).UnixMilli() }

	if v := r.vitals(nil); v.Known {
		t.Errorf("a host that measures nothing has %+v", v)
	}

	// Half of the round trip is added, because the heartbeat was on its way that long.
	v := r.vitals(&gozzard.Vitals{At: at(time.Hour), RoundTrip: 4_000_000, Load: 1500, MemFree: 1 << 30})
	if !v.Known || !near(v.Skew, time.Hour+2*time.Second) || v.Load != 1500 || v.MemFree != 1<<30 {
		t.Errorf("vitals are %+v", v)
	}

	// A heartbeat that was late does not move the clock; one that comes with a clock that was set does, after a while.
	behind := &gozzard.Vitals{At: at(-time.Hour), RoundTrip: gozzard.NotMeasured, Load: gozzard.NotMeasured,
		MemFree: gozzard.NotMeasured}
	for range 3 {
		if v := r.vitals(behind); !near(v.Skew, time.Hour+2*time.Second) || v.Load != gozzard.NotMeasured ||
			v.MemFree != gozzard.NotMeasured {
			t.Errorf("vitals are %+v", v)
		}
	}
	if v := r.vitals(behind); !near(v.Skew, -time.Hour) {
		t.Errorf("vitals are %+v", v)
	}
}

func TestVitalsOfAHostileAgent(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -2, math.MaxInt64} {
		r := newRig(t)
		r.hello(me, 1, journalA)
		v := r.vitals(&gozzard.Vitals{At: n, RoundTrip: n, Load: n, MemFree: n})
		if v.Skew.Abs() > 11*365*24*time.Hour || v.Load != gozzard.NotMeasured || v.MemFree != gozzard.NotMeasured {
			t.Errorf("%d: vitals are %+v", n, v)
		}
	}
}
