package agentd

import "testing"

func TestWorthReturning(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name string
		use  memoryUse
		want bool
	}{
		{"much is unused", memoryUse{live: 20 * mb, unused: 30 * mb, allocated: 101 * mb}, true},
		{"it works", memoryUse{live: 20 * mb, unused: 30 * mb, allocated: 110 * mb}, false},
		{"it measures thousands of processes", memoryUse{live: 60 * mb, unused: 80 * mb, allocated: 109 * mb}, true},
		{"little is unused", memoryUse{live: 20 * mb, unused: 12 * mb, allocated: 100 * mb}, false},
		{"it is small", memoryUse{live: mb, unused: 4 * mb, allocated: 100 * mb}, false},
	} {
		if got := c.use.worthReturning(memoryUse{allocated: 100 * mb}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if m := readMemory(); m.allocated == 0 {
		t.Errorf("the runtime does not say how much memory is used: %+v", m)
	}
}
