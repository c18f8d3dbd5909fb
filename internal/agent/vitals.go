package agent

import "github.com/gozzard/gozzard"

// vitals measures the machine for a heartbeat. The clock is read last, so that the heartbeat carries a fresh time.
func (a *Agent) vitals() *gozzard.Vitals {
	v := &gozzard.Vitals{RoundTrip: gozzard.NotMeasured, Load: gozzard.NotMeasured, MemFree: gozzard.NotMeasured}
	if a.o.Usage != nil {
		v.Load, v.MemFree = a.o.Usage()
	}
	if d := a.contact.roundTrip(); d > 0 {
		v.RoundTrip = d.Microseconds()
	}
	v.At = a.o.Now().UnixMilli()
	return v
}
