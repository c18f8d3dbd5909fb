package cron

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule is a crontab rule: five fields (minute, hour, day of month, month, day of week) with lists, ranges,
// steps and English names, one of the words @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually,
// or "@every 90s".
//
// If both day fields are restricted, a day that matches one of them is enough, as in cron. A time that a clock change
// skips is due right after the change, and a time that occurs twice is due once. Rules for every hour are due by
// elapsed minutes, without regard to clock changes.
type Schedule struct {
	minute, hour, dom, month, dow uint64 // a bit for each value
	anyDOM, anyDOW                bool   // the field began with *
	every                         time.Duration
	zone                          *time.Location
}

// MaxRuleBytes is the largest length of a crontab rule.
const MaxRuleBytes = 256

const (
	allHours = 1<<24 - 1
	// A 29 February on a given day of the week can be 40 years after the last one, if a year such as 2100 is between.
	searchMonths = 40*12 + 1
	shortestRun  = time.Second
)

// ParseZone returns the time zone of a name; "" is the zone of the host. It rejects "Local", which would be another
// zone on every host.
func ParseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || loc == time.Local {
		return nil, fmt.Errorf("%+.64q is not a time zone such as Asia/Shanghai", name)
	}
	return loc, nil
}

// Parse parses a rule. zone is the name of its time zone, as for ParseZone.
func Parse(rule, zone string) (*Schedule, error) {
	loc, err := ParseZone(zone)
	if err != nil {
		return nil, err
	}
	if len(rule) > MaxRuleBytes {
		return nil, fmt.Errorf("the crontab rule has %d bytes, at most %d are allowed", len(rule), MaxRuleBytes)
	}

	s, err := parseRule(strings.TrimSpace(rule))
	if err == nil {
		s.zone = loc
		if s.every == 0 && s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, loc)).IsZero() {
			err = errors.New("it names no day that exists")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%+q is not a crontab rule: %w", rule, err)
	}

	return s, nil
}

// parseRule parses a rule without its time zone.
func parseRule(rule string) (*Schedule, error) {
	// Replace the words that stand for five fields.
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

	// Parse a period.
	if text, ok := strings.CutPrefix(rule, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is no duration", strings.TrimSpace(text))
		case d < shortestRun:
			return nil, fmt.Errorf("%s is shorter than %s", d, shortestRun)
		}
		return &Schedule{every: d}, nil
	}

	if strings.HasPrefix(rule, "@") {
		return nil, fmt.Errorf("%s is not known", rule)
	}

	// Parse the five fields.
	words := strings.Fields(rule)
	if len(words) != 5 {
		return nil, fmt.Errorf("it has %d fields, not 5", len(words))
	}

	s := &Schedule{anyDOM: strings.HasPrefix(words[2], "*"), anyDOW: strings.HasPrefix(words[4], "*")}
	for i, f := range []field{
		{"minute", 0, 59, nil, &s.minute},
		{"hour", 0, 23, nil, &s.hour},
		{"day of month", 1, 31, nil, &s.dom},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
			&s.month},
		{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, &s.dow},
	} {
		if err := f.parse(words[i]); err != nil {
			return nil, err
		}
	}

	s.dow |= s.dow >> 7 & 1 // 7 is Sunday too
	return s, nil
}

// field is one of the five fields.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
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

// parsePart parses *, n or n-m, each with or without a step. n/step means from n to the end of the field.
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

// Next is the first time after t at which the rule is due; zero if there is none.
func (s *Schedule) Next(t time.Time) time.Time {
	if s.every > 0 {
		return t.Add(s.every)
	}

	t = t.In(s.zone)
	y, m, from := t.Date()
	for i := range searchMonths {
		// Only the calendar counts here, so the time zone does not matter.
		first := time.Date(y, m+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		if s.month>>int(first.Month())&1 == 1 {
			for d, last := from, first.AddDate(0, 1, -1).Day(); d <= last; d++ {
				if !s.onDay(d, (int(first.Weekday())+d-1)%7) {
					continue
				}
				if at := s.nextOn(first.Year(), first.Month(), d, t); !at.IsZero() {
					return at
				}
			}
		}
		from = 1
	}

	return time.Time{}
}

// onDay reports whether the rule is due on a day.
func (s *Schedule) onDay(day, weekday int) bool {
	dom, dow := s.dom>>day&1 == 1, s.dow>>weekday&1 == 1
	if s.anyDOM || s.anyDOW {
		return dom && dow
	}
	return dom || dow
}

// nextOn is the first time of a day that is after t, zero if there is none.
func (s *Schedule) nextOn(y int, m time.Month, d int, t time.Time) time.Time {
	if s.hour == allHours {
		return s.nextMinute(y, m, d, t)
	}

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

// clockTime is when the clock shows a time: the first moment if there are two. If a clock change skips the time, it is
// the moment of the change.
func clockTime(y int, m time.Month, d, h, mi int, zone *time.Location) time.Time {
	at := time.Date(y, m, d, h, mi, 0, 0, zone)
	if at.Day() == d && at.Hour() == h && at.Minute() == mi {
		return at
	}
	shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	start, end := at.ZoneBounds()
	if shown.Before(time.Date(y, m, d, h, mi, 0, 0, time.UTC)) {
		return end
	}
	return start
}

// nextMinute is nextOn for rules of every hour. It counts elapsed minutes, so that the rule is due in a repeated hour
// too.
func (s *Schedule) nextMinute(y int, m time.Month, d int, t time.Time) time.Time {
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
