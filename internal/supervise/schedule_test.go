package supervise_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard/internal/supervise"
)

func TestSchedule(t *testing.T) {
	const layout = "2006-01-02 15:04"
	for _, c := range []struct {
		rule, zone, after string
		want              []string
	}{
		{"* * * * *", "UTC", "2026-01-01 00:00", []string{"2026-01-01 00:01", "2026-01-01 00:02"}},
		{"*/15 * * * *", "UTC", "2026-01-01 00:50", []string{"2026-01-01 01:00", "2026-01-01 01:15"}},
		{"30 4 1,15 * *", "UTC", "2026-01-15 04:30", []string{"2026-02-01 04:30", "2026-02-15 04:30"}},
		{"0 0 13 * fri", "UTC", "2026-02-01 00:00", []string{"2026-02-06 00:00", "2026-02-13 00:00", "2026-02-20 00:00", "2026-02-27 00:00", "2026-03-06 00:00", "2026-03-13 00:00"}},
		{"0 0 */2 * fri", "UTC", "2026-02-01 00:00", []string{"2026-02-13 00:00", "2026-02-27 00:00"}}, // a field that begins with * narrows
		{"0 9-17/4 * * mon-fri", "UTC", "2026-11-13 13:30", []string{"2026-11-13 17:00", "2026-11-16 09:00"}},
		{"0 0 * * 7", "UTC", "2026-11-15 00:00", []string{"2026-11-22 00:00"}},
		{"0 0 * * 5-7", "UTC", "2026-11-15 00:00", []string{"2026-11-20 00:00", "2026-11-21 00:00", "2026-11-22 00:00"}},
		{"0 0 29 2 *", "UTC", "2026-01-01 00:00", []string{"2028-02-29 00:00", "2032-02-29 00:00"}},
		{"0 0 29 FEB *", "UTC", "2096-03-01 00:00", []string{"2104-02-29 00:00"}},
		{"50/5 23 31 12 *", "UTC", "2026-12-31 23:54", []string{"2026-12-31 23:55", "2027-12-31 23:50"}},
		{"@hourly", "UTC", "2026-01-01 00:30", []string{"2026-01-01 01:00"}},
		{"@daily", "UTC", "2026-01-01 00:30", []string{"2026-01-02 00:00"}},
		{"@midnight", "UTC", "2026-01-01 00:30", []string{"2026-01-02 00:00"}},
		{"@weekly", "UTC", "2026-01-01 00:30", []string{"2026-01-04 00:00"}},
		{"@monthly", "UTC", "2026-01-01 00:30", []string{"2026-02-01 00:00"}},
		{"@yearly", "UTC", "2026-01-01 00:30", []string{"2027-01-01 00:00"}},
		{"@every 90m", "UTC", "2026-01-01 00:30", []string{"2026-01-01 02:00", "2026-01-01 03:30"}},
		{"0 8 * * *", "Asia/Shanghai", "2026-01-01 09:00", []string{"2026-01-02 08:00"}},
		// Clocks go from 2 to 3 on 29 March and from 3 to 2 on 25 October.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", []string{"2026-03-29 03:00", "2026-03-30 02:30"}},
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00", []string{"2026-03-29 03:00", "2026-03-30 02:00"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", []string{"2026-10-25 02:30", "2026-10-26 02:30"}},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25 01:45", []string{
			"2026-10-25 02:00", "2026-10-25 02:30", "2026-10-25 02:00", "2026-10-25 02:30", "2026-10-25 03:00",
		}},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29 01:15", []string{"2026-03-29 01:30", "2026-03-29 03:00"}},
		{"0 0 * * *", "America/Havana", "2026-03-07 12:00", []string{"2026-03-08 01:00", "2026-03-09 00:00"}}, // a day without midnight
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Skipf("this machine knows no time zones: %v", err)
		}
		after, err := time.ParseInLocation(layout, c.after, loc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := supervise.NextRuns(c.rule, c.zone, after, len(c.want))
		if err != nil {
			t.Errorf("%q: %v", c.rule, err)
			continue
		}
		for i := range got {
			if g := got[i].In(loc).Format(layout); g != c.want[i] {
				t.Errorf("%q in %s, run %d: %s, want %s", c.rule, c.zone, i, g, c.want[i])
			}
		}
	}
}

func TestWrongSchedules(t *testing.T) {
	for _, rule := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8", "-1 * * * *", "+1 * * * *",
		"5-1 * * * *", "*/0 * * * *", "*/x * * * *", "1-2-3 * * * *", "1, * * * *", "a * * * *", "* * * foo *", "0 0 30 2 *", "@reboot", "@every", "@every x",
		"@every 1ms", "@every -1h", "*/99 * * * *", strings.Repeat("1,", 200) + "1 * * * *",
	} {
		if _, err := supervise.NextRuns(rule, "UTC", time.Now(), 1); err == nil {
			t.Errorf("%q is taken for a rule", rule)
		}
	}
	if _, err := supervise.NextRuns("* * * * *", "Nowhere/Land", time.Now(), 1); err == nil {
		t.Error("an unknown zone is taken")
	}
}

func TestSchedulesGoForward(t *testing.T) {
	value := func(lo, hi int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			n := rapid.IntRange(lo, hi).Draw(t, "n")
			return rapid.SampledFrom([]string{"*", "*/2", itoa(n), itoa(n) + "-" + itoa(hi), itoa(n) + "/3"}).Draw(t, "form")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		rule := strings.Join([]string{
			value(0, 59).Draw(t, "minute"), value(0, 23).Draw(t, "hour"), value(1, 28).Draw(t, "dom"), value(1, 12).Draw(t, "month"), value(0, 6).Draw(t, "dow"),
		}, " ")
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Shanghai"}).Draw(t, "zone")
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0)
		runs, err := supervise.NextRuns(rule, zone, at, 20)
		if err != nil && strings.Contains(err.Error(), "time zone") {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", rule, err)
		}
		for _, r := range runs {
			if !r.After(at) || r.Second() != 0 {
				t.Fatalf("%q in %s: %s after %s", rule, zone, r, at)
			}
			at = r
		}
	})
}
