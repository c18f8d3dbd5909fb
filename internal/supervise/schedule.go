package supervise

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// schedule is a crontab rule: five fields (minute, hour, day of month, month, day of week) with lists, ranges, steps and English names, one of the
// words @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually, or "@every 90s".
//
// When both day fields are restricted either is enough, as cron has it. A time that a clock change leaves out comes right after it, a time that
// comes twice counts once; rules for every hour simply go on by the minute.
type schedule struct {
	minute, hour, dom, month, dow uint64 // a bit for each value
	anyDOM, anyDOW                bool   // the field began with *
	every                         time.Duration
	zone                          *time.Location
}

const (
	allHours    = 1<<24 - 1
	searchDays  = 9 * 366 // there is a 29 February in any nine years but around 2100, where it comes eight years after the last
	shortestRun = time.Second
	maxRule     = 256
)

// parseSchedule reads a rule; zone "" is the host's.
func parseSchedule(rule, zone string) (*schedule, error) {
	loc := time.Local
	if zone != "" {
		var err error
		if loc, err = time.LoadLocation(zone); err != nil {
			return nil, fmt.Errorf("cannot use time zone %q: %w", clip(zone, maxVersionBytes), err)
		}
	}
	if len(rule) > maxRule {
		return nil, fmt.Errorf("crontab_rule has %d characters, %d are possible", len(rule), maxRule)
	}
	s, err := parseRule(strings.TrimSpace(rule))
	if err != nil {
		return nil, fmt.Errorf("cannot read crontab_rule %q: %w", rule, err)
	}
	s.zone = loc
	if s.every == 0 && s.next(time.Date(2000, 1, 1, 0, 0, 0, 0, loc)).IsZero() {
		return nil, fmt.Errorf("crontab_rule %q names no day that exists", rule)
	}
	return s, nil
}

func parseRule(rule string) (*schedule, error) {
	switch rule {
	case "@hourly":
		rule = "0 * * * *"
	case "@daily", "@midnight":
		rule = "0 0 * * *"
	case "@weekly":
		rule = "0 0 * * 0"
	case "@monthly":
		rule = "0 0 1 * *"
	case "@yearly", "@annually":
		rule = "0 0 1 1 *"
	}
	if text, ok := strings.CutPrefix(rule, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is no duration", strings.TrimSpace(text))
		case d < shortestRun:
			return nil, fmt.Errorf("%s is shorter than %s", d, shortestRun)
		}
		return &schedule{every: d}, nil
	}
	if strings.HasPrefix(rule, "@") {
		return nil, fmt.Errorf("%s is not known", rule)
	}
	words := strings.Fields(rule)
	if len(words) != 5 {
		return nil, fmt.Errorf("it has %d fields, not 5", len(words))
	}
	s := &schedule{anyDOM: strings.HasPrefix(words[2], "*"), anyDOW: strings.HasPrefix(words[4], "*")}
	for i, f := range []field{
		{"minute", 0, 59, nil, &s.minute},
		{"hour", 0, 23, nil, &s.hour},
		{"day of month", 1, 31, nil, &s.dom},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}, &s.month},
		{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, &s.dow},
	} {
		if err := f.parse(words[i]); err != nil {
			return nil, err
		}
	}
	s.dow |= s.dow >> 7 & 1 // 7 is Sunday too
	return s, nil
}

// field is one of the five.
type field struct {
	name     string
	min, max int
	names    []string // of min and what follows
	bits     *uint64
}

func (f field) parse(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := f.parsePart(part); err != nil {
			return fmt.Errorf("%s %q: %w", f.name, text, err)
		}
	}
	return nil
}

// parsePart reads *, n, n-m, and each of them with a step; n/step goes on to the end.
func (f field) parsePart(part string) error {
	span, stepText, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.max {
			return fmt.Errorf("%q is no step", stepText)
		}
	}
	from, to := f.min, f.max
	if span != "*" {
		first, last, ranged := strings.Cut(span, "-")
		var err error
		if from, err = f.value(first); err != nil {
			return err
		}
		switch {
		case ranged:
			if to, err = f.value(last); err != nil {
				return err
			}
		case !stepped:
			to = from
		}
		if from > to {
			return fmt.Errorf("%q goes backwards", span)
		}
	}
	for v := from; v <= to; v += step {
		*f.bits |= 1 << v
	}
	return nil
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.min || v > f.max || text[0] == '+' {
		return 0, fmt.Errorf("%q is not from %d to %d", text, f.min, f.max)
	}
	return v, nil
}

// next is the first time after t; zero when there is none.
func (s *schedule) next(t time.Time) time.Time {
	if s.every > 0 {
		return t.Add(s.every)
	}
	t = t.In(s.zone)
	y, m, d := t.Date()
	for i := range searchDays {
		noon := time.Date(y, m, d+i, 12, 0, 0, 0, s.zone) // exists on every day, whatever clocks do at night
		if !s.onDay(noon) {
			continue
		}
		if found := s.nextOn(noon, t); !found.IsZero() {
			return found
		}
	}
	return time.Time{}
}

func (s *schedule) onDay(day time.Time) bool {
	if s.month>>int(day.Month())&1 == 0 {
		return false
	}
	dom, dow := s.dom>>day.Day()&1 == 1, s.dow>>int(day.Weekday())&1 == 1
	if s.anyDOM || s.anyDOW {
		return dom && dow
	}
	return dom || dow
}

// nextOn is the first time of a day that is after t.
func (s *schedule) nextOn(noon, t time.Time) time.Time {
	if s.hour == allHours {
		return s.nextMinute(noon, t)
	}
	y, m, d := noon.Date()
	for h := range 24 {
		for mi := range 60 {
			if s.hour>>h&1 == 0 || s.minute>>mi&1 == 0 {
				continue
			}
			if at := clockTime(y, m, d, h, mi, s.zone); at.After(t) {
				return at
			}
		}
	}
	return time.Time{}
}

// clockTime is when a clock shows that time, the first of two; when it never does, the moment at which it is set past it.
func clockTime(y int, m time.Month, d, h, mi int, zone *time.Location) time.Time {
	at := time.Date(y, m, d, h, mi, 0, 0, zone)
	if at.Hour() == h && at.Minute() == mi {
		return at
	}
	shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	start, end := at.ZoneBounds()
	if shown.Before(time.Date(y, m, d, h, mi, 0, 0, time.UTC)) {
		return end
	}
	return start
}

// nextMinute goes on by real minutes, so that a repeated hour has its runs too.
func (s *schedule) nextMinute(noon, t time.Time) time.Time {
	y, m, d := noon.Date()
	at := clockTime(y, m, d, 0, 0, s.zone)
	if !at.After(t) {
		at = t.Add(time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	}
	for ; at.Day() == d; at = at.Add(time.Minute) {
		if s.minute>>at.Minute()&1 == 1 {
			return at
		}
	}
	return time.Time{}
}
