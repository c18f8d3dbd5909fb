package client_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
)

// TestTime: a time has one form in JSON, and the forms of earlier versions are read.
func TestTime(t *testing.T) {
	half := time.Date(2026, 1, 2, 15, 4, 5, 500_999_999, time.FixedZone("x", 3600))
	for want, at := range map[string]client.Time{
		`"2026-01-02T14:04:05.500Z"`: client.At(half), `"2023-11-14T22:13:20.000Z"`: client.UnixTime(1700000000),
		`"2023-11-14T22:13:20.001Z"`: client.MilliTime(1700000000001), `null`: client.UnixTime(0),
	} {
		b, err := json.Marshal(at)
		if err != nil || string(b) != want {
			t.Errorf("%v is %s, not %s: %v", at.Time, b, want, err)
		}
		var back client.Time
		if err := json.Unmarshal(b, &back); err != nil || !back.Equal(at.Time) {
			t.Errorf("%s is read as %v: %v", b, back.Time, err)
		}
	}
	for _, unknown := range []client.Time{{}, client.At(time.Time{}), client.MilliTime(0), client.UnixTime(-1),
		client.UnixTime(1 << 50), client.UnixTime(1 << 62), client.MilliTime(1 << 62)} {
		if b, err := json.Marshal(unknown); err != nil || string(b) != "null" || unknown.String() != "" {
			t.Errorf("an unknown time, or one of a wrong clock, is %s: %v", b, err)
		}
	}

	for text, want := range map[string]string{`"2026-01-02T15:04:05+01:00"`: "2026-01-02T14:04:05.000Z",
		`"2026-01-02T15:04:05.123456789Z"`: "2026-01-02T15:04:05.123Z", `""`: "", `null`: ""} {
		var at client.Time
		if err := json.Unmarshal([]byte(text), &at); err != nil || at.String() != want {
			t.Errorf("%s is read as %q: %v", text, at.String(), err)
		}
	}
	for _, bad := range []string{`1700000000`, `"yesterday"`, `{}`, `"2026-01-02"`} {
		if err := json.Unmarshal([]byte(bad), new(client.Time)); err == nil {
			t.Errorf("%s is read as a time", bad)
		}
	}
}
