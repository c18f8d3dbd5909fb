package client_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
)

func TestTime(t *testing.T) {
	at := client.Time{Time: time.Date(2026, 1, 2, 16, 4, 5, 6_700_000, time.FixedZone("", 3600))}
	for _, tc := range []struct {
		time client.Time
		json string
	}{
		{at, `"2026-01-02T15:04:05.006Z"`},
		{client.Time{}, `null`},
		{client.UnixTime(0), `null`},
		{client.UnixTime(1767366245), `"2026-01-02T15:04:05.000Z"`},
		{client.MilliTime(1767366245006), `"2026-01-02T15:04:05.006Z"`},
		{client.UnixTime(1 << 50), `null`}, // a wrong clock
	} {
		got, err := json.Marshal(tc.time)
		if err != nil || string(got) != tc.json {
			t.Errorf("%v is %s in JSON (%v), want %s", tc.time, got, err, tc.json)
		}
	}
}

func TestReadTime(t *testing.T) {
	var at client.Time
	if err := json.Unmarshal([]byte(`"2026-01-02T16:04:05.006+01:00"`), &at); err != nil ||
		!at.Equal(client.MilliTime(1767366245006).Time) {
		t.Errorf("read %v, %v", at, err)
	}
	if err := json.Unmarshal([]byte(`null`), &at); err != nil || !at.IsZero() {
		t.Errorf("null is %v, %v, want no time", at, err)
	}
	for _, bad := range []string{`7`, `"yesterday"`, `""`, `{}`} {
		if err := json.Unmarshal([]byte(bad), &at); err == nil {
			t.Errorf("%s was read as %v, want an error", bad, at)
		}
	}
}
