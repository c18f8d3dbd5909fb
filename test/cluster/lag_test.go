//go:build linux

package cluster_test

import (
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestCutOffIsSeen: servers that reach the record, but not each other, are seen in the list of servers and in the log.
func TestCutOffIsSeen(t *testing.T) {
	t.Parallel() // it mostly waits
	i, cabled := newCabled(t, 2)
	cables := []*ft.Proxy{cabled[0].others, cabled[1].others}
	const said = "has not heard everything from it for"
	each := func(failure string, done func(m, other *member) bool) {
		t.Helper()
		for n, m := range i.servers {
			ft.Until(t, time.Minute, func() string { return m.listen + " " + failure + ": " + m.cli("servers") },
				func() bool { return done(m, i.servers[1-n]) })
		}
	}
	each("has a lag", func(m, other *member) bool {
		return m.server(other).Lag < 5 && !strings.Contains(m.cli("servers"), said)
	})

	cut(cables, true)
	each("does not show that it is cut off", func(m, other *member) bool {
		return m.server(other).Silent < 15 && strings.Contains(m.cli("servers"), said)
	})
	each("does not log that it is cut off", func(m, other *member) bool {
		return strings.Contains(m.Output(), `another server runs, but is not heard`) && strings.Contains(m.Output(), other.id())
	})

	cut(cables, false)
	each("still has a lag", func(m, other *member) bool { return m.server(other).Lag < 5 })
}
