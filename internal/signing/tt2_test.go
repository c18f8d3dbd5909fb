package signing_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/test/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTT2: a real agent does 1,000 operations. Then all messages of the fabric are sent once more. All of them are
// correctly signed for this agent, and none of them may run again.
func TestTT2ReplaysRunNothing(t *testing.T) {
	p := newTape(t)
	const me, other = gozzard.AgentID("agent-1"), gozzard.AgentID("agent-2")
	dir, host := filepath.Join(t.TempDir(), "state"), sim.NewHost()
	var keys []gozzard.Key
	for i := range 100 {
		keys = append(keys, gozzard.Key{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)})
	}

	r := p.run(me, dir, host)
	until(t, "the first session", func() bool { return p.session(me) == 1 })

	for _, action := range []gozzard.Action{
		gozzard.ActionStart, gozzard.ActionReload, gozzard.ActionRestart, gozzard.ActionStop, gozzard.ActionUnregister,
		gozzard.ActionStart, gozzard.ActionReload, gozzard.ActionRestart, gozzard.ActionReload, gozzard.ActionReload,
	} {
		p.operate(me, keys, action)
	}

	done := executions(host, keys)

	// settled starts one more operation on every process, after everything of a replay, and checks that nothing else
	// was done.
	settled := func(when string) {
		t.Helper()
		p.operate(me, keys, gozzard.ActionReload)
		done += len(keys)
		if now := executions(host, keys); now != done {
			t.Errorf("%s: %d commands ran", when, now-done)
		}
		done = executions(host, keys)
	}

	settled("without a replay")
	sent := p.replay(me)
	settled("in the same session")

	was := p.session(me)
	r.stopLink()
	p.connect(me, r)
	until(t, "a later session", func() bool { return p.session(me) > was })
	p.replay(me)
	settled("in a later session")

	was = p.session(me)
	r.stopLink()
	r.stopAgent()
	r = p.run(me, dir, host)
	until(t, "the session of the next run", func() bool { return p.session(me) > was })
	p.replay(me)
	settled("after a restart")

	if s := r.link.Load().Stats(); s.Refused != 0 {
		t.Errorf("%d envelopes for this agent were not opened: the replay proves nothing", s.Refused)
	}

	there := sim.NewHost()
	o := p.run(other, filepath.Join(t.TempDir(), "other"), there)
	until(t, "the other agent", func() bool { return p.session(other) > 0 })
	p.setMute(true)
	n := p.replay(other)
	until(t, "the refusals", func() bool {
		return o.link.Load().Stats().Refused > 0 &&
			int(o.link.Load().Stats().Received) >= n
	})

	if ran := executions(there, keys); ran != 0 || len(there.Keys()) != 0 {
		t.Errorf("on another agent: %d commands ran, it knows %v", ran, there.Keys())
	}
	if n < sent || sent < 1000 {
		t.Errorf("only %d and %d messages were played", sent, n)
	}
}

// An agent that lost its state counts its sessions from 1 again. A Welcome from before must not open its new first
// session: the old operations would be valid in it.
func TestTT2ReplayAfterLostState(t *testing.T) {
	p := newTape(t)
	const me = gozzard.AgentID("agent-1")
	keys := []gozzard.Key{{Namespace: "shop", Name: "web"}}
	r := p.run(me, filepath.Join(t.TempDir(), "first"), sim.NewHost())
	until(t, "the first session", func() bool { return p.session(me) == 1 })
	p.operate(me, keys, gozzard.ActionStart)
	r.stopLink()
	r.stopAgent()

	p.setMute(true)
	p.forget(me)
	host := sim.NewHost()
	r = p.run(me, filepath.Join(t.TempDir(), "second"), host)
	until(t, "the HELLO of the second life", func() bool { return p.session(me) == 1 })
	n := p.replay(me) + p.replay(me)
	until(t, "the replay", func() bool { return int(r.link.Load().Stats().Received) >= n })
	r.stopLink()
	r.stopAgent()

	if ran := executions(host, keys); ran != 0 {
		t.Errorf("%d commands ran", ran)
	}
}
