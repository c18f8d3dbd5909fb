package cron_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cron"
)

// nextRuns returns the times of a rule after t.
func nextRuns(rule, zone string, t time.Time, n int) ([]time.Time, error) {
	s, err := cron.Parse(rule, zone)
	if err != nil {
		return nil, err
	}
	var at []time.Time
	for range n {
		t = s.Next(t)
		at = append(at, t)
	}
	return at, nil
}

func TestSchedule(t *testing.T) {
	const layout = "2006-01-02 15:04"
	for _, c := range []struct {
		rule, zone, after string
		want              []string
	}{
		{"* * * * *", "UTC", "2026-01-01 00:00", []string{"2026-01-01 00:01", "2026-01-01 00:02"}},
		{"*/15 * * * *", "UTC", "2026-01-01 00:50", []string{"2026-01-01 01:00", "2026-01-01 01:15"}},
		{"30 4 1,15 * *", "UTC", "2026-01-15 04:30", []string{"2026-02-01 04:30", "2026-02-15 04:30"}},
		{"0 0 13 * fri", "UTC", "2026-02-01 00:00", []string{"2026-02-06 00:00", "2026-02-13 00:00",
			"2026-02-20 00:00", "2026-02-27 00:00", "2026-03-06 00:00", "2026-03-13 00:00"}},
		// a field that begins with * restricts the other
		{"0 0 */2 * fri", "UTC", "2026-02-01 00:00", []string{"2026-02-13 00:00", "2026-02-27 00:00"}},
		{"0 9-17/4 * * mon-fri", "UTC", "2026-11-13 13:30", []string{"2026-11-13 17:00", "2026-11-16 09:00"}},
		{"0 0 * * 7", "UTC", "2026-11-15 00:00", []string{"2026-11-22 00:00"}},
		{"0 0 * * 5-7", "UTC", "2026-11-15 00:00", []string{"2026-11-20 00:00", "2026-11-21 00:00",
			"2026-11-22 00:00"}},
		{"0 0 29 2 *", "UTC", "2026-01-01 00:00", []string{"2028-02-29 00:00", "2032-02-29 00:00"}},
		{"0 0 29 FEB *", "UTC", "2096-03-01 00:00", []string{"2104-02-29 00:00"}},
		// on a Sunday
		{"0 0 29 2 */7", "UTC", "2033-01-01 00:00", []string{"2060-02-29 00:00", "2088-02-29 00:00",
			"2128-02-29 00:00"}},
		{"0 0 */31 2 mon", "UTC", "2027-02-01 00:00", []string{"2038-02-01 00:00"}},
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
		// a day without midnight
		{"0 0 * * *", "America/Havana", "2026-03-07 12:00", []string{"2026-03-08 01:00", "2026-03-09 00:00"}},
		// a day that was left out
		{"0 8 30 12 *", "Pacific/Apia", "2011-12-29 12:00", []string{"2011-12-31 00:00", "2012-12-30 08:00"}},
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Skipf("this machine knows no time zones: %v", err)
		}
		after, err := time.ParseInLocation(layout, c.after, loc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := nextRuns(c.rule, c.zone, after, len(c.want))
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
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
		"* * * * 8", "-1 * * * *", "+1 * * * *",
		"5-1 * * * *", "*/0 * * * *", "*/x * * * *", "1-2-3 * * * *", "1, * * * *", "a * * * *", "* * * foo *",
		"0 0 30 2 *", "@reboot", "@every", "@every x",
		"@every 1ms", "@every -1h", "*/99 * * * *", strings.Repeat("1,", 200) + "1 * * * *",
	} {
		if _, err := nextRuns(rule, "UTC", time.Now(), 1); err == nil {
			t.Errorf("%q is taken for a rule", rule)
		}
	}

	for _, zone := range []string{"Nowhere/Land", "Local", "../etc/passwd", "\x00", strings.Repeat("x", 1<<20)} {
		if _, err := nextRuns("* * * * *", zone, time.Now(), 1); err == nil || len(err.Error()) > 200 {
			t.Errorf("zone %.20q: %.300v", zone, err)
		}
	}
}

func TestWrongSchedulesSayWhy(t *testing.T) {
	for rule, want := range map[string]string{
		"61 * * * *": `"61 * * * *" is not a crontab rule: minute "61": "61" is not from 0 to 59`,
		"* * *":      `"* * *" is not a crontab rule: it has 3 fields, not 5`,
		"0 0 30 2 *": `"0 0 30 2 *" is not a crontab rule: it names no day that exists`,
		"@reboot":    `"@reboot" is not a crontab rule: @reboot is not known`,
	} {
		if _, err := cron.Parse(rule, ""); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestPeriodic(t *testing.T) {
	for _, c := range []struct {
		policy gozzard.Policy
		want   bool
	}{
		{gozzard.Policy{Kind: gozzard.KindPeriodic, CrontabRule: "* * * * *"}, true},
		{gozzard.Policy{Kind: gozzard.KindPeriodic, CrontabRule: " "}, false},
		{gozzard.Policy{Kind: gozzard.KindResident, CrontabRule: "* * * * *"}, false},
	} {
		if c.policy.Periodic() != c.want {
			t.Errorf("%+v", c.policy)
		}
	}
}

func TestSchedulesGoForward(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	value := func(low, high int) string {
		n := strconv.Itoa(low + random.IntN(high-low+1))
		forms := []string{"*", "*/2", n, n + "-" + strconv.Itoa(high), n + "/3"}
		return forms[random.IntN(len(forms))]
	}

	zones := []string{"UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Shanghai"}
	for range 300 {
		rule := strings.Join([]string{value(0, 59), value(0, 23), value(1, 28), value(1, 12), value(0, 6)}, " ")
		zone := zones[random.IntN(len(zones))]
		if _, err := time.LoadLocation(zone); err != nil {
			t.Skipf("this machine knows no time zones: %v", err)
		}
		at := time.Unix(random.Int64N(4e9), 0)
		runs, err := nextRuns(rule, zone, at, 20)
		if err != nil {
			t.Fatalf("%q: %v", rule, err)
		}
		for _, r := range runs {
			if !r.After(at) || r.Second() != 0 {
				t.Fatalf("%q in %s: %s after %s", rule, zone, r, at)
			}
			at = r
		}
	}
}
