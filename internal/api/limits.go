package api

import (
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/esb"
)

// maxInRow bounds how often in a row something must be seen before it counts.
const maxInRow = 1000

// readActs reads what happens over a limit, after how many samples, and whether the kernel holds it.
func readActs(v *esb.Value, r *gozzard.Resource) {
	r.Act = oneOf(v.Get("act"), gozzard.ActAlert, gozzard.ActStop, gozzard.ActKill, gozzard.ActRestart)
	samples, enforce := v.Get("samples"), v.Get("enforce")
	r.Samples = int(samples.OptInt(0, 0, maxInRow))
	r.Enforce = enforce.OptBool(false)
}

// readHealth reads how health_cmd is used, and how periodic runs are planned.
func readHealth(v *esb.Value, p *gozzard.Policy) {
	number := func(name string, field *int, most int64) {
		x := v.Get(name)
		*field = int(x.OptInt(0, 0, most))
	}
	number("health_interval", &p.HealthInterval, maxSeconds)
	number("health_timeout", &p.HealthTimeout, maxSeconds)
	number("health_threshold", &p.HealthThreshold, maxInRow)
	restart := v.Get("health_restart")
	p.HealthRestart = restart.OptBool(false)
	p.Overlap = oneOf(v.Get("overlap"), gozzard.OverlapSkip, gozzard.OverlapKill)
	zone := v.Get("time_zone")
	p.TimeZone = text(&zone, 255)
	if _, err := time.LoadLocation(p.TimeZone); err != nil || p.TimeZone == "Local" {
		zone.Fault("%+q is not a time zone such as Asia/Shanghai", p.TimeZone)
	}
}

// oneOf reads an optional word of a few.
func oneOf[T ~string](v esb.Value, known ...T) T {
	s := T(v.OptStr())
	if s != "" && !slices.Contains(known, s) {
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = string(k)
		}
		v.Fault("must be one of %s, is %+.40q", strings.Join(names, ", "), string(s))
		return ""
	}
	return s
}
