package cron_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/cron"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzRule: an accepted rule has a next time after the last one, found quickly, even if it is rare.
func FuzzRule(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range [][2]string{{"*/5 * * * *", ""}, {"0 3 29 2 *", "Asia/Shanghai"},
		{"1-59/2,0 0-23 1,15 jan-dec mon-fri", "UTC"}, {"0 0 30 2 *", ""}, {"@daily", "Europe/London"},
		{"@every 1h", ""}} {
		z.Add(s[0], s[1], int64(1700000000))
	}

	z.Fuzz(func(t *testing.T, rule, zone string, at int64) {
		s, err := cron.Parse(rule, zone)
		if err != nil {
			return
		}
		from := time.Unix(at&(1<<33-1), 0)
		if next := s.Next(from); !next.IsZero() && !next.After(from) {
			t.Fatalf("%q in %q: %v behind %v", rule, zone, next, from)
		}
	})
}
