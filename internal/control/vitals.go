package control

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// Bounds of what an agent may report of its machine. They keep a hostile agent from showing nonsense, no more.
const (
	maxSkew      = 10 * 365 * 24 * time.Hour
	maxRoundTrip = 15 * time.Second // the lease of an agent: an answer that takes longer ends the session
	maxLoad      = 1e9              // in thousandths
	maxMemory    = 1 << 60
)

// vitalsOf reads the vitals of a heartbeat that arrives now. The heartbeat was on its way for half of a round trip.
func vitalsOf(v *gozzard.Vitals, now time.Time) fleet.Vitals {
	at := min(max(v.At, now.Add(-maxSkew).UnixMilli()), now.Add(maxSkew).UnixMilli())
	trip := time.Duration(min(max(v.RoundTrip, 0), maxRoundTrip.Microseconds())) * time.Microsecond

	return fleet.Vitals{
		Skew:    time.UnixMilli(at).Add(trip / 2).Sub(now),
		Load:    measured(v.Load, maxLoad),
		MemFree: measured(v.MemFree, maxMemory),
	}
}

// measured is a value within its bounds, or gozzard.NotMeasured.
func measured(n, most int64) int64 {
	if n < 0 || n > most {
		return gozzard.NotMeasured
	}
	return n
}
