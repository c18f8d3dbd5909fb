//go:build linux

package cluster_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

var previous = flag.String("cluster.previous", "", "program of the release before, from which servers are upgraded; \"\": the one that is tested")

// C8: servers are upgraded one after the other under load: drained, stopped, replaced, started and undrained. The last one is killed
// before, and starts again on the record of newer ones. Agents have the older program until the end.
func TestC8RollingUpgrade(t *testing.T) {
	t.Parallel()                               // it mostly waits
	i := newInstallation(t, 0, "--rate-app=0") // the load and the checks beside it are one app
	i.program = cmp.Or(*previous, ft.Binary(t))
	for range 3 {
		i.add()
	}
	f := newLoaded(t, i)

	end := f.begin()
	for n, m := range f.servers {
		by, before := f.servers[(n+2)%3], m.version() // by: the one that was upgraded before
		runs := n < 2 || f.killedOlder(m)
		drained := runs && f.drains(by, m, n == 0 && *previous != "")
		if runs {
			m.Kill(syscall.SIGTERM)
		}
		m.install(ft.Binary(t))
		m.Again()
		m.answers()
		if drained {
			by.cli("servers", "undrain", m.id())
		}
		fmt.Printf("fault C8: server %d upgraded from %s to %s; drained before: %t\n", n+1, before, m.version(), drained)
		for _, each := range f.servers {
			f.operable(each)
		}
	}
	end()
	f.judge(line{id: "C8", fault: "servers upgraded one after the other, one of them killed", times: 1}, ledger.Floor{OK: 40, Percent: 50})
}

// killedOlder kills a server that is older than the schema of the record, and reports whether it starts again. If not, it says that
// the schema is too new for it.
func (f *loaded) killedOlder(m *member) bool {
	f.t.Helper()
	m.Kill(syscall.SIGKILL)
	m.Again()
	ended := false
	ft.Until(f.t, time.Minute, m.Output, func() bool {
		select {
		case <-m.Done():
			ended = true
			return true
		default:
		}
		ans, err := m.Try("get_agent_status", ft.J{"hosts": []ft.J{host(faultHost(1))}})
		return err == nil && ans.Code == 0
	})

	if ended && (*previous == "" || !strings.Contains(m.Output(), "use a newer version of gozzard; nothing was changed")) {
		f.t.Fatalf("a server does not start again: %s", m.Output())
	}
	fmt.Printf("fault C8: the server that is not upgraded was killed; it starts again on the record of newer ones: %t\n", !ended)
	return !ended
}

// drains empties a server, and waits until it is empty. It reports false if optional is set and the server that is asked does not
// know that verb.
func (f *loaded) drains(by, m *member, optional bool) bool {
	f.t.Helper()
	if out, err := by.try("servers", "drain", m.id()); err != nil {
		if !optional {
			f.t.Fatalf("drain: %v: %s", err, out)
		}
		return false
	}
	ft.Until(f.t, 2*time.Minute, func() string { return by.cli("servers") }, func() bool {
		return by.server(m).Agents == 0 && len(f.agentsOf(m)) == 0
	})
	return true
}

// version is the version of a server, as it says itself.
func (m *member) version() string { return m.server(m).Version }

// install puts a program in the place of a server's, as a package does.
func (m *member) install(program string) {
	m.i.t.Helper()
	b, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(m.file+".new", b, 0o755)
	}
	if err == nil {
		err = os.Rename(m.file+".new", m.file)
	}
	if err != nil {
		m.i.t.Fatal(err)
	}
}
