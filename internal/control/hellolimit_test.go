package control_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
)

// TestTD5HelloLimit: sessions are opened at a limited rate. An agent over the limit gets its session when it asks again,
// and an agent that asks without end does not slow down the others.
func TestTD5HelloLimit(t *testing.T) {
	r := &rig{t: t, lease: time.Minute, helloRate: 20, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.start()
	t.Cleanup(func() { r.stop() })

	ask := func(agent gozzard.AgentID) {
		r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 1, Journal: journalA,
			Hello: &gozzard.Hello{Host: gozzard.HostInfo{Agent: agent}}})
	}

	counted := func(rule string) bool { _, ok := r.refused.Load(rule); return ok }
	const agents = 60
	welcomed := func() (n int) {
		for i := range agents {
			if len(r.commands(gozzard.AgentID(fmt.Sprintf("fleet-%d", i)), gozzard.CommandWelcome)) > 0 {
				n++
			}
		}
		return n
	}

	for i := range agents { // at once
		ask(gozzard.AgentID(fmt.Sprintf("fleet-%d", i)))
	}

	if !counted("hello_rate") {
		t.Error("all of them got in at once")
	}

	for range 1000 {
		ask("restless")
	}

	if !counted("hello_agent_rate") {
		t.Error("one agent may ask as often as it likes")
	}

	r.until("some agents never come in", func() bool {
		for i := range agents {
			if id := gozzard.AgentID(fmt.Sprintf("fleet-%d", i)); len(r.commands(id, gozzard.CommandWelcome)) == 0 {
				ask(id)
			}
		}
		ask("restless")
		time.Sleep(100 * time.Millisecond) // as agents do between repeats
		return welcomed() == agents
	})
}

// TestB4ProcessesOfAHost: the number of processes of a host is limited. A host that reports more gets the others
// rejected and counted.
func TestB4ProcessesOfAHost(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	rows := make([]gozzard.Status, 0, 400)
	for i := range fleet.MaxRowsPerHost + 500 {
		rows = append(rows, gozzard.Status{Key: gozzard.Key{Namespace: "ns", Name: fmt.Sprintf("p%d", i)},
			State: gozzard.StateRunning})
		if len(rows) == 400 || i == fleet.MaxRowsPerHost+499 {
			r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1, Statuses: rows})
			rows = rows[:0]
		}
	}

	if n, _ := r.plane.Find(caller, fleet.Filter{}, 0, 1); n != fleet.MaxRowsPerHost {
		t.Errorf("%d processes are known", n)
	}
	if _, ok := r.refused.Load("too_many_processes"); !ok {
		t.Error("not counted")
	}
}

// TestTD5Joining: hosts that come back all at once get their sessions as others have joined, and not before. What they
// repeat meanwhile does not count.
func TestTD5Joining(t *testing.T) {
	const most, agents = 5, 40
	r := &rig{t: t, lease: time.Minute, joining: control.NewJoiningOf(most), path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.start()
	t.Cleanup(func() { r.stop() })
	name := func(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("back-%d", i)) }
	ask := func(i int) {
		r.plane.Receive(name(i), 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 1, Journal: journalA,
			Hello: &gozzard.Hello{Host: gozzard.HostInfo{Agent: name(i)}}})
	}
	welcomed := func() (list []int) {
		for i := range agents {
			if len(r.commands(name(i), gozzard.CommandWelcome)) > 0 {
				list = append(list, i)
			}
		}
		return list
	}

	// All at once: some get in.
	for range 3 {
		for i := range agents {
			ask(i)
		}
	}
	r.until("nobody gets in", func() bool { return len(welcomed()) == most })
	for i := range agents {
		ask(i)
	}
	time.Sleep(200 * time.Millisecond)
	if got := welcomed(); len(got) != most || !r.joining.Full() {
		t.Errorf("%d agents are welcome, want %d", len(got), most)
	}
	if _, ok := r.refused.Load("hello_joining"); !ok {
		t.Error("no HELLO was dropped")
	}

	// As they report, the others get in.
	reported := map[int]bool{}
	r.until("some agents never come in", func() bool {
		got := welcomed()
		for _, i := range got {
			if !reported[i] {
				reported[i] = true
				r.plane.Receive(name(i), 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1, Journal: journalA, Round: 1, Parts: 1})
			}
		}
		for i := range agents {
			if !slices.Contains(got, i) {
				ask(i)
			}
		}
		return len(got) == agents
	})
}
