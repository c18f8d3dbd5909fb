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
	i := newInstallation(t, 0)
	var cables []*ft.Proxy
	for range 2 {
		listen := freeAddr(t)
		cable := ft.NewProxy(t, listen)
		cables = append(cables, cable)
		i.add("--cluster-listen", listen, "--cluster-address", cable.Addr())
	}
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

	for _, cable := range cables {
		cable.Hold(true)
		cable.Cut()
	}
	each("does not show that it is cut off", func(m, other *member) bool {
		return m.server(other).Silent < 15 && strings.Contains(m.cli("servers"), said)
	})
	each("does not log that it is cut off", func(m, other *member) bool {
		return strings.Contains(m.Output(), `another server runs, but is not heard`) && strings.Contains(m.Output(), other.id())
	})

	for _, cable := range cables {
		cable.Hold(false)
		cable.Cut()
	}
	each("still has a lag", func(m, other *member) bool { return m.server(other).Lag < 5 })
}
