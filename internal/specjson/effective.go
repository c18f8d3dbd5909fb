package specjson

import (
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
)

// What a process has that says nothing else, where the definition keeps 0 or "" for it. TestEffectiveDefaults compares
// them with the reference.
const (
	defaultSignal   = "TERM"
	defaultInterval = 30
	defaultTimeout  = 10
	defaultFailures = 3
)

// Effective is Write with the defaults filled in, and the paths of what was filled in, such as restart.delay. What the
// host decides, for example the account of its policy, is not known here and left out.
func Effective(s *gozzard.Spec) (fields []Field, defaults []string) {
	f := filler{fields: Write(s)}
	p := s.Policy

	// Where and how it runs.
	f.fill("timeout", secondsText(p.OpTimeout))
	f.fill("folder", "/")
	f.fill("proc_name", gozzard.ProgramOf(s.Control.Start))
	f.fill("nice", 0)

	// How it ends and starts again.
	if s.Control.Stop == "" {
		f.fill("stop_signal", defaultSignal)
	}
	f.fill("stop_timeout", secondsText(p.StopCheckSecs))
	f.fill("start_check", secondsText(p.StartCheckSecs))
	switch {
	case p.Periodic():
		f.fill("overlap", string(gozzard.OverlapSkip))
	case p.Kind == gozzard.KindOneShot:
	default:
		f.fill("orphans", string(gozzard.OrphansKill))
		f.part("restart", func(f *filler) {
			f.fill("policy", restartAlways)
			f.fill("delay", secondsText(p.StartInterval))
			f.fill("quick", p.StartRetries)
		})
	}

	// How its health is checked.
	if c := s.Control; c.Health != "" || c.HealthTCP != "" || c.HealthHTTP != "" {
		f.part("health", func(f *filler) {
			f.fill("interval", secondsText(defaultInterval))
			f.fill("timeout", secondsText(defaultTimeout))
			f.fill("failures", defaultFailures)
			f.fill("restart", false)
		})
	}

	return f.fields, f.filled
}

// filler adds what is missing.
type filler struct {
	fields []Field
	path   string
	filled []string
}

func (f *filler) fill(key string, value any) {
	if value == "" || slices.ContainsFunc(f.fields, func(x Field) bool { return x.Key == key }) {
		return
	}
	f.fields = append(f.fields, Field{key, value})
	f.filled = append(f.filled, f.path+key)
}

// part fills an object.
func (f *filler) part(key string, fill func(*filler)) {
	i := slices.IndexFunc(f.fields, func(x Field) bool { return x.Key == key })
	inner := filler{path: f.path + key + "."}
	if i >= 0 {
		inner.fields, _ = f.fields[i].Value.([]Field) // Write writes parts as fields
	} else {
		f.fields = append(f.fields, Field{Key: key})
		i = len(f.fields) - 1
	}
	fill(&inner)
	f.fields[i].Value = inner.fields
	f.filled = append(f.filled, inner.filled...)
}

func secondsText(n int) string { return strconv.Itoa(n) + "s" }
