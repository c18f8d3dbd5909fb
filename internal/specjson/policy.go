package specjson

import (
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cron"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// maxInRow limits how often in a row something must be seen before it counts.
const maxInRow = 1000

// policy reads how a process is supervised. Missing and null fields get their defaults; 0 means 0.
func (r Rules) policy(v strictjson.Value) gozzard.Policy {
	p := gozzard.DefaultPolicy()

	if !v.OptObject() {
		return p
	}

	r.only(&v, "auto_type", "start_check_secs", "stop_check_secs", "start_retries", "start_interval", "crontab_rule",
		"op_timeout",
		"time_zone", "overlap", "orphans", "health_interval", "health_timeout", "health_threshold", "health_restart")
	r.plan(&v, &p)

	number := func(name string, field *int, most int64) {
		x := v.Get(name)
		*field = int(x.OptInt(int64(*field), 0, most))
	}

	number("start_check_secs", &p.StartCheckSecs, maxSeconds)
	number("stop_check_secs", &p.StopCheckSecs, maxSeconds)
	number("start_retries", &p.StartRetries, maxRetries)
	number("start_interval", &p.StartInterval, maxSeconds)
	number("op_timeout", &p.OpTimeout, maxSeconds)
	// Fields that BlueKing's documents do not have.
	number("health_interval", &p.HealthInterval, maxSeconds)
	number("health_timeout", &p.HealthTimeout, maxSeconds)
	number("health_threshold", &p.HealthThreshold, maxInRow)
	p.Orphans = oneOf(v.Get("orphans"), gozzard.OrphansKill, gozzard.OrphansWait)
	restart := v.Get("health_restart")
	p.HealthRestart = restart.OptBool(false)
	return p
}

// plan reads when the process runs. A rule that nothing uses is rejected, because its author believes that it is used. On
// BlueKing's doors it is accepted and not even checked: the samples of its documents, which real clients copy, have a
// rule beside the type of a resident process.
func (r Rules) plan(v *strictjson.Value, p *gozzard.Policy) {
	before := v.Faults().Len()
	kind, rule, zone := v.Get("auto_type"), v.Get("crontab_rule"), v.Get("time_zone")

	if !r.Strict { // the sample in the documents is misspelt
		rule = either(v, "crontab_rule", "crotab_rule")
	}

	p.Kind = gozzard.Kind(kind.OptInt(int64(p.Kind), 0, int64(gozzard.KindOneShot)))
	p.CrontabRule = line(rule, cron.MaxRuleBytes)
	if p.Periodic() && v.Faults().Len() == before {
		if _, err := cron.Parse(p.CrontabRule, ""); err != nil { // a rule is valid in every time zone or in none
			rule.Fault("%v", err)
		}
	}
	if r.Strict && p.Kind != gozzard.KindPeriodic && strings.TrimSpace(p.CrontabRule) != "" && v.Faults().Len() == before {
		rule.Fault("is used only with auto_type 0 (periodic), and auto_type is %d: set auto_type to 0, or remove the rule",
			p.Kind)
	}

	before = v.Faults().Len()
	p.TimeZone = line(zone, maxShort)
	if _, err := cron.ParseZone(p.TimeZone); err != nil && v.Faults().Len() == before {
		zone.Fault("%v", err)
	}

	p.Overlap = oneOf(v.Get("overlap"), gozzard.OverlapSkip, gozzard.OverlapKill)
}

// either reads a field that has two names. A request with both is rejected.
func either(v *strictjson.Value, a, b string) strictjson.Value {
	x, y := v.Get(a), v.Get(b)
	switch {
	case y.Hollow():
		return x
	case !x.Hollow():
		y.Fault("is another name of %s: send one of them", a)
	}
	return y
}

// oneOf reads an optional word out of a list.
func oneOf[T ~string](v strictjson.Value, known ...T) T {
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
