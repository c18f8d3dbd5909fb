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
// When both day fields are restricted either is enough, as cron has it. A time that a clock change leaves out comes
// right after it, a time that comes twice counts once; rules for every hour simply go on by the minute.
type Schedule struct {
	minute, hour, dom, month, dow uint64 // a bit for each value
	anyDOM, anyDOW                bool   // the field began with *
	every                         time.Duration
	zone                          *time.Location
}

// MaxRuleBytes bounds crontab rules.
const MaxRuleBytes = 256

const (
	allHours = 1<<24 - 1
	// a 29 February on a given day of the week comes 40 years after the last when a year such as 2100 lies between
	searchMonths = 40*12 + 1
	shortestRun  = time.Second
)

// ParseZone reads the name of a time zone; "" is the host's, which has no other name: "Local" would be another zone
// on every host.
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

// Parse reads a rule and the name of the time zone that it is meant in, as ParseZone has them.
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

func parseRule(rule string) (*Schedule, error) {
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
		return &Schedule{every: d}, nil
	}

	if strings.HasPrefix(rule, "@") {
		return nil, fmt.Errorf("%s is not known", rule)
	}

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

// Next is the first time after t.
func (s *Schedule) Next(t time.Time) time.Time {
	if s.every > 0 {
		return t.Add(s.every)
	}

	t = t.In(s.zone)
	y, m, from := t.Date()
	for i := range searchMonths {
		// of the calendar only: clocks differ, weeks do not
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

func (s *Schedule) onDay(day, weekday int) bool {
	dom, dow := s.dom>>day&1 == 1, s.dow>>weekday&1 == 1
	if s.anyDOM || s.anyDOW {
		return dom && dow
	}
	return dom || dow
}

// nextOn is the first time of a day that is after t, zero when there is none.
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

// clockTime is when a clock shows that time, the first of two; when it never does, the moment at which it is set
// past it.
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

// nextMinute goes on by real minutes, so that a repeated hour has its runs too.
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
