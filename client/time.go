package client

import (
	"fmt"
	"time"
)

// timeForm is the form of every time in the JSON of the API.
const timeForm = "2006-01-02T15:04:05.000Z"

// Time is a moment. In JSON it is a string in UTC with milliseconds, such as "2026-01-02T15:04:05.000Z". The zero value
// is a time that is not known; in JSON it is null.
type Time struct {
	time.Time
}

// UnixTime is the time at a number of seconds since 1970; 0 is a time that is not known.
func UnixTime(seconds int64) Time { return MilliTime(seconds * 1000) }

// MilliTime is the time at a number of milliseconds since 1970; 0 is a time that is not known.
func MilliTime(millis int64) Time {
	if millis == 0 {
		return Time{}
	}
	return Time{time.UnixMilli(millis).UTC()}
}

// MarshalJSON writes the time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	u := t.UTC()
	if y := u.Year(); y < 0 || y > 9999 { // RFC 3339 has no other years, and such a time comes from a wrong clock
		return []byte("null"), nil
	}
	return []byte(`"` + u.Format(timeForm) + `"`), nil
}

// UnmarshalJSON reads a time in any form of RFC 3339.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("cannot read the time %s: it must be a string such as %q", b, timeForm)
	}
	parsed, err := time.Parse(time.RFC3339, string(b[1:len(b)-1]))
	if err != nil {
		return fmt.Errorf("cannot read the time %s: %w", b, err)
	}
	*t = Time{parsed.UTC()}
	return nil
}
