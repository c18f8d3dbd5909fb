package control

import (
	"testing"
	"time"
)

// TestCopies: runs of one agent that end before the next one starts are no copies, whatever is late; runs that take turns
// are.
func TestCopies(t *testing.T) {
	t.Parallel()
	const copied, fine = true, false
	for name, c := range map[string]struct {
		runs  []uint64
		pause time.Duration
		want  bool
	}{
		"one run at several servers":        {[]uint64{1, 1, 1, 1, 1, 1}, time.Second, fine},
		"an agent that crashes":             {[]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9}, time.Second, fine},
		"a HELLO that a server held back":   {[]uint64{1, 2, 1, 2, 2, 2}, time.Second, fine},
		"held back, and a restart later":    {[]uint64{1, 2, 1, 2, 3, 3}, time.Second, fine},
		"restarts of servers":               {[]uint64{1, 0, 2, 0, 0, 2}, time.Second, fine},
		"held back now and then, for weeks": {[]uint64{1, 2, 1, 2, 1, 2, 1, 2}, time.Hour, fine},
		"two copies":                        {[]uint64{1, 2, 1, 2, 1}, 10 * time.Second, copied},
		"three copies":                      {[]uint64{1, 2, 3, 1, 2, 3}, 10 * time.Second, copied},
		"two copies, one of which crashes":  {[]uint64{1, 2, 1, 3, 1, 4, 1}, 10 * time.Second, copied},
	} {
		var check copies
		now, got := time.Unix(1_700_000_000, 0), false
		for _, run := range c.runs {
			got = check.said("a", run, now) || got
			now = now.Add(c.pause)
		}
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
