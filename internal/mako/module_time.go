package mako

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"
)

// moment is the data of a date or datetime.
type moment struct {
	t    time.Time
	date bool
}

// typeObject is a type of a module: it can be called, and has functions.
func typeObject(name string, call fn, attrs map[string]fn) Value {
	all := functions(attrs)
	return &object{class: name, text: "<class 'datetime." + name + "'>", call: call, attr: func(n string) (Value, bool) {
		v, ok := all[n]
		return v, ok
	}}
}

func datetimeModule() map[string]Value {
	now := func(date bool) fn {
		return func(c *call) (Value, error) { return newMoment(moment{c.run.with.Now, date}), nil }
	}
	fromTimestamp := func(date bool) fn {
		return func(c *call) (Value, error) {
			f, err := asFloat(c.otherwise(0))
			if err != nil {
				return nil, err
			}
			t := time.UnixMicro(int64(f * 1e6)).In(c.run.with.Now.Location())
			return newMoment(moment{t, date}), nil
		}
	}
	return map[string]Value{
		"date": typeObject("date", func(c *call) (Value, error) { return makeMoment(c, true) },
			map[string]fn{"today": now(true), "fromtimestamp": fromTimestamp(true)}),
		"datetime": typeObject("datetime", func(c *call) (Value, error) { return makeMoment(c, false) },
			map[string]fn{"now": now(false), "today": now(false), "fromtimestamp": fromTimestamp(false),
				"utcnow": func(c *call) (Value, error) { return newMoment(moment{c.run.with.Now.UTC(), false}), nil }}),
		"timedelta": typeObject("timedelta", makeDelta, nil),
	}
}

// makeMoment is date(year, month, day) and datetime(year, month, day, hour, ...).
func makeMoment(c *call, date bool) (Value, error) {
	names := []string{"year", "month", "day", "hour", "minute", "second", "microsecond"}
	n := [7]int{}
	for i, name := range names {
		if i < 3 && c.arg(i, name) == nil {
			return nil, raise("TypeError", "function missing required argument '%s' (pos %d)", name, i+1)
		}
		v, err := c.number(i, name, 0)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, c.run.with.Now.Location())
	switch {
	case n[0] < 1 || n[0] > 9999:
		return nil, raise("ValueError", "year %d is out of range", n[0])
	case n[1] < 1 || n[1] > 12:
		return nil, raise("ValueError", "month must be in 1..12")
	case t.Day() != n[2]:
		return nil, raise("ValueError", "day is out of range for month")
	}
	return newMoment(moment{t, date}), nil
}

func newMoment(m moment) Value {
	o := &object{class: "datetime.datetime", text: isoText(m.t, " "), data: m}
	if m.date {
		o.class, o.text = "datetime.date", m.t.Format(time.DateOnly)
	}
	o.attr = func(name string) (Value, bool) {
		numbers := map[string]int{"year": m.t.Year(), "month": int(m.t.Month()), "day": m.t.Day()}
		if !m.date {
			numbers["hour"], numbers["minute"], numbers["second"] = m.t.Hour(), m.t.Minute(), m.t.Second()
			numbers["microsecond"] = m.t.Nanosecond() / 1000
		}
		if n, ok := numbers[name]; ok {
			return starlark.MakeInt(n), true
		}
		f := m.methods()[name]
		if f == nil {
			return nil, false
		}
		return builtin(name, f), true
	}
	return o
}

func isoText(t time.Time, separator string) string {
	text := t.Format("2006-01-02") + separator + t.Format("15:04:05")
	if us := t.Nanosecond() / 1000; us > 0 {
		text += fmt.Sprintf(".%06d", us)
	}
	return text
}

func (m moment) methods() map[string]fn {
	return map[string]fn{
		"strftime": func(c *call) (Value, error) {
			form, err := c.text(0, "format", "")
			if err != nil {
				return nil, err
			}
			text := strftime(m.t, form)
			return starlark.String(text), c.run.spend(len(text))
		},
		"isoformat": func(*call) (Value, error) {
			if m.date {
				return starlark.String(m.t.Format(time.DateOnly)), nil
			}
			return starlark.String(isoText(m.t, "T")), nil
		},
		"weekday":    func(*call) (Value, error) { return starlark.MakeInt((int(m.t.Weekday()) + 6) % 7), nil },
		"isoweekday": func(*call) (Value, error) { return starlark.MakeInt((int(m.t.Weekday())+6)%7 + 1), nil },
		"date":       func(*call) (Value, error) { return newMoment(moment{m.t, true}), nil },
		"timestamp": func(*call) (Value, error) {
			return starlark.Float(float64(m.t.UnixMicro()) / 1e6), nil
		},
	}
}

func makeDelta(c *call) (Value, error) {
	total := 0.0
	units := []struct {
		name    string
		seconds float64
	}{{"days", 86400}, {"seconds", 1}, {"microseconds", 1e-6}, {"milliseconds", 1e-3}, {"minutes", 60}, {"hours", 3600},
		{"weeks", 604800}}
	for i, u := range units {
		if v := c.arg(i, u.name); v != nil {
			f, err := asFloat(v)
			if err != nil {
				return nil, err
			}
			total += f * u.seconds
		}
	}
	if total > 1e9 || total < -1e9 {
		return nil, raise("OverflowError", "days=%d; must have magnitude <= 999999999", int64(min(max(total/86400, -1e15), 1e15)))
	}
	return newDelta(time.Duration(total * 1e9)), nil
}

func newDelta(d time.Duration) Value {
	days := int(d / (24 * time.Hour))
	rest := d - time.Duration(days)*24*time.Hour
	if rest < 0 {
		days--
		rest += 24 * time.Hour
	}
	text := fmt.Sprintf("%d:%02d:%02d", int(rest.Hours()), int(rest.Minutes())%60, int(rest.Seconds())%60)
	if us := rest.Microseconds() % 1e6; us > 0 {
		text += fmt.Sprintf(".%06d", us)
	}
	if days != 0 {
		unit := " days, "
		if days == 1 || days == -1 {
			unit = " day, "
		}
		text = strconv.Itoa(days) + unit + text
	}
	return &object{class: "datetime.timedelta", text: text, data: d, attr: func(name string) (Value, bool) {
		switch name {
		case "days":
			return starlark.MakeInt(days), true
		case "seconds":
			return starlark.MakeInt(int(rest.Seconds())), true
		case "total_seconds":
			return builtin(name, func(*call) (Value, error) { return starlark.Float(d.Seconds()), nil }), true
		}
		return nil, false
	}}
}

// momentOperation is + and - of dates and timedeltas; nil if the operands are others.
func momentOperation(op string, a, b Value) Value {
	x, ok := a.(*object)
	if !ok {
		return nil
	}
	y, ok := b.(*object)
	if !ok || op != "+" && op != "-" {
		return nil
	}
	m, isMoment := x.data.(moment)
	d, isDelta := y.data.(time.Duration)
	if op == "-" {
		d = -d
	}
	if isMoment && isDelta {
		return newMoment(moment{m.t.Add(d), m.date})
	}
	if n, ok := y.data.(moment); ok && isMoment && op == "-" && n.date == m.date {
		return newDelta(m.t.Sub(n.t))
	}
	if first, ok := x.data.(time.Duration); ok && isDelta {
		return newDelta(first + d)
	}
	return nil
}

// formatDate is format() of a date: the format is one of strftime.
func formatDate(o *object, form string) (string, bool) {
	m, ok := o.data.(moment)
	if !ok {
		return "", false
	}
	return strftime(m.t, form), true
}

// The directives of strftime that are a layout of Go.
var layouts = map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'a': "Mon",
	'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'p': "PM", 'I': "03", 'F': "2006-01-02", 'T': "15:04:05",
	'D': "01/02/06", 'x': "01/02/06", 'X': "15:04:05", 'R': "15:04", 'e': "_2", 'c': "Mon Jan _2 15:04:05 2006"}

func strftime(t time.Time, form string) string {
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		if form[i] != '%' || i+1 == len(form) {
			b.WriteByte(form[i])
			continue
		}
		i++
		switch c := form[i]; c {
		case '%':
			b.WriteByte('%')
		case 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'w':
			b.WriteString(strconv.Itoa(int(t.Weekday())))
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			if layout := layouts[c]; layout != "" {
				b.WriteString(t.Format(layout))
			} else {
				b.WriteString(form[i-1 : i+1])
			}
		}
	}
	return b.String()
}

func timeModule() map[string]Value {
	return functions(map[string]fn{
		"time": func(c *call) (Value, error) {
			return starlark.Float(float64(c.run.with.Now.UnixMicro()) / 1e6), nil
		},
		"strftime": func(c *call) (Value, error) {
			if err := c.count(1, 2); err != nil {
				return nil, err
			}
			form, err := c.text(0, "", "")
			if err != nil {
				return nil, err
			}
			at := c.run.with.Now
			if o, ok := c.otherwise(1).(*object); ok {
				if m, ok := o.data.(moment); ok {
					at = m.t
				}
			}
			text := strftime(at, form)
			return starlark.String(text), c.run.spend(len(text))
		},
		"localtime": timeParts, "gmtime": timeParts,
	})
}

// timeParts is localtime and gmtime.
func timeParts(c *call) (Value, error) {
	t := c.run.with.Now
	if len(c.args) > 0 {
		f, err := asFloat(c.args[0])
		if err != nil {
			return nil, err
		}
		t = time.UnixMicro(int64(f * 1e6)).In(t.Location())
	}
	if c.name == "gmtime" {
		t = t.UTC()
	}
	parts := map[string]int{"tm_year": t.Year(), "tm_mon": int(t.Month()), "tm_mday": t.Day(), "tm_hour": t.Hour(),
		"tm_min": t.Minute(), "tm_sec": t.Second(), "tm_wday": (int(t.Weekday()) + 6) % 7, "tm_yday": t.YearDay()}
	return &object{class: "time.struct_time", text: "time.struct_time", data: moment{t, false},
		attr: func(name string) (Value, bool) {
			n, ok := parts[name]
			return starlark.MakeInt(n), ok
		}}, nil
}
