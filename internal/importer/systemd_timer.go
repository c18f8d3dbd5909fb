package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// schedule gives the times of a service that a timer starts.
func (s *service) schedule() {
	if s.timer == nil {
		if s.kind == "oneshot" {
			s.d.note(Check, entry{key: "Type", value: s.kind}, "the process runs once and ends, and no timer starts it here",
				"import its timer, too, or give schedule, or start it by hand")
			if e, ok := s.unit.last("Service", "Restart"); !ok || e.value == "no" {
				s.d.set("restart.policy", "never")
			}
		}
		return
	}

	// What no rule can say.
	for _, key := range []string{"OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec"} {
		if e, ok := s.timer.last("Timer", key); ok {
			s.d.note(LeftOut, e, "a schedule has times of the clock, not times after an event", "give schedule by hand")
		}
	}
	rules := s.timer.list("Timer", "OnCalendar")
	switch {
	case len(rules) == 0:
		s.d.note(LeftOut, entry{file: s.timer.file, key: "OnCalendar"}, "the timer has no times", "give schedule by hand")
		return
	case len(rules) > 1:
		s.d.note(LeftOut, rules[1], "a definition has one schedule", "give schedule by hand")
		return
	}

	// The rule.
	rule, zone, err := cronRule(rules[0].value)
	if err != nil {
		s.d.note(LeftOut, rules[0], err.Error(), "give schedule by hand")
		return
	}
	for key := range s.d.values {
		if strings.HasPrefix(key, "restart.") {
			delete(s.d.values, key)
		}
	}
	s.d.set("schedule", rule)
	if zone != "" {
		s.d.set("time_zone", zone)
	}
	for _, key := range []string{"RandomizedDelaySec", "FixedRandomDelay"} {
		if e, ok := s.timer.last("Timer", key); ok {
			s.d.note(Check, e, "all hosts start it at the same moment", "give the hosts different schedules")
		}
	}
	if e, ok := s.timer.last("Timer", "Persistent"); ok && s.timer.is("Timer", "Persistent") {
		s.d.note(Check, e, "a run that is missed while the machine is down is not made up for", "")
	}
}

// calendarWords are the short forms of times.
var calendarWords = map[string]string{"minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "midnight": "0 0 * * *",
	"weekly": "0 0 * * 1", "monthly": "0 0 1 * *", "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *", "quarterly": "0 0 1 1,4,7,10 *",
	"semiannually": "0 0 1 1,7 *"}

var (
	isCalendarDate = regexp.MustCompile(`^(?:(\*|[0-9]{4})-)?([0-9*/,.]+)-([0-9*/,.]+)$`)
	isCalendarTime = regexp.MustCompile(`^([0-9*/,.]+):([0-9*/,.]+)(?::([0-9*/,.]+))?$`)
	isWeekdays     = regexp.MustCompile(`^(?i)(mon|tue|wed|thu|fri|sat|sun)[a-z]*((,|\.\.)(mon|tue|wed|thu|fri|sat|sun)[a-z]*)*,?$`)
	isZone         = regexp.MustCompile(`^(UTC|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+)$`)
)

// cronRule turns a calendar time of systemd into a crontab rule.
func cronRule(text string) (rule, zone string, err error) {
	fields := strings.Fields(text)
	if n := len(fields); n > 1 && isZone.MatchString(fields[n-1]) {
		zone, fields = fields[n-1], fields[:n-1]
	}
	if len(fields) == 1 && calendarWords[strings.ToLower(fields[0])] != "" {
		return calendarWords[strings.ToLower(fields[0])], zone, nil
	}
	minute, hour, day, month, weekday := "0", "0", "*", "*", "*"
	for _, f := range fields {
		switch {
		case isWeekdays.MatchString(f):
			weekday = cronWeekdays(f)
		case isCalendarDate.MatchString(f):
			m := isCalendarDate.FindStringSubmatch(f)
			if m[1] != "" && m[1] != "*" {
				return "", "", fmt.Errorf("a schedule has no year")
			}
			month, day = m[2], m[3]
		case isCalendarTime.MatchString(f):
			m := isCalendarTime.FindStringSubmatch(f)
			if m[3] != "" && strings.Trim(m[3], "0") != "" {
				return "", "", fmt.Errorf("a schedule has minutes, and no seconds")
			}
			hour, minute = m[1], m[2]
		default:
			return "", "", fmt.Errorf("the time %q has no counterpart", clip(f))
		}
	}
	parts := []string{minute, hour, day, month, weekday}
	for i := range parts[:4] {
		if parts[i], err = cronField(parts[i], []int{59, 23, 31, 12}[i], []int{0, 0, 1, 1}[i]); err != nil {
			return "", "", err
		}
	}
	return strings.Join(parts, " "), zone, nil
}

// cronField turns one part of a date or time into a field of a rule.
func cronField(text string, most, least int) (string, error) {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		base, step, stepped := strings.Cut(part, "/")
		from, to, ranged := strings.Cut(base, "..")
		numbers := []*string{&from}
		if ranged {
			numbers = append(numbers, &to)
		}
		if stepped {
			numbers = append(numbers, &step)
		}
		for _, n := range numbers {
			if *n == "*" && n == &from && !ranged {
				continue
			}
			x, err := strconv.Atoi(*n)
			if err != nil || x < 0 || x > most {
				return "", fmt.Errorf("the time %q has no counterpart", clip(text))
			}
			*n = strconv.Itoa(x)
		}
		switch {
		case ranged:
			base = from + "-" + to
		case stepped && from != "*" && from != strconv.Itoa(least):
			base = from + "-" + strconv.Itoa(most)
		case stepped:
			base = "*"
		default:
			base = from
		}
		if stepped {
			base += "/" + step
		}
		list = append(list, base)
	}
	return strings.Join(list, ","), nil
}

// cronWeekdays turns days such as Mon..Fri into numbers.
func cronWeekdays(text string) string {
	number := func(day string) string {
		return strconv.Itoa(strings.Index("sun mon tue wed thu fri sat", strings.ToLower(day[:3])) / 4)
	}
	var list []string
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
		from, to, ranged := strings.Cut(part, "..")
		field := number(from)
		if ranged {
			last := number(to)
			if last == "0" {
				last = "7"
			}
			field += "-" + last
		}
		list = append(list, field)
	}
	return strings.Join(list, ",")
}
