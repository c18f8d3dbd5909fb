package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// TimeFormat is the one form of a time in answers: RFC 3339, in UTC, with three digits of milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Time is a moment. In JSON it has the form TimeFormat; a moment that is not known, the zero value, is null.
type Time struct{ time.Time }

// At makes a Time of a moment, cut to milliseconds as it is in JSON.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// UnixTime makes a Time of Unix seconds. 0 and negative numbers mean that the moment is not known.
func UnixTime(seconds int64) Time {
	if seconds <= 0 {
		return Time{}
	}
	return At(time.Unix(seconds, 0))
}

// MilliTime makes a Time of Unix milliseconds. 0 and negative numbers mean that the moment is not known.
func MilliTime(ms int64) Time {
	if ms <= 0 {
		return Time{}
	}
	return At(time.UnixMilli(ms))
}

// String is the time as in JSON, "" for a moment that is not known. RFC 3339 has years of four digits: another year comes
// from a wrong clock and is not known, too.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return ""
	}
	return t.UTC().Format(TimeFormat)
}

// MarshalText writes the time in the form TimeFormat.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads RFC 3339 with any number of digits; "" is the zero value, as earlier versions wrote it.
func (t *Time) UnmarshalText(text []byte) error {
	*t = Time{}
	if len(text) == 0 {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("%.40q is not a time such as %s", text, TimeFormat)
	}
	*t = Time{at.UTC()}
	return nil
}

// MarshalJSON writes the time in the form TimeFormat, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	text := t.String()
	if text == "" {
		return []byte("null"), nil
	}
	return []byte(`"` + text + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON wrote, and texts as UnmarshalText does.
func (t *Time) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*t = Time{}
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("%.40q is not a time such as %q", b, TimeFormat)
	}
	return t.UnmarshalText([]byte(text))
}
