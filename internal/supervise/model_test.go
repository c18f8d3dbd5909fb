package supervise_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// move is one thing that happens to a process or its supervisor.
type move struct {
	what   string
	action gozzard.Action
	start  string
	stop   string
	health string
	act    gozzard.LimitAct
	cpu    float32
	wait   time.Duration
}

func (m move) String() string {
	switch m.what {
	case "operate":
		return fmt.Sprintf("%s(start=%q stop=%q health=%q act=%q, then %s)", m.action, m.start, m.stop, m.health,
			m.act, m.wait)
	case "usage":
		return fmt.Sprintf("usage %g %%, then %s", m.cpu, m.wait)
	}
	return fmt.Sprintf("%s, then %s", m.what, m.wait)
}

func drawMove(t *rapid.T) move {
	return move{
		what: rapid.SampledFrom([]string{"operate", "operate", "operate", "operate", "exit", "agent", "by hand",
			"usage"}).Draw(t, "what"),
		action: rapid.SampledFrom([]gozzard.Action{
			gozzard.ActionStart, gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionStop, gozzard.ActionRestart,
			gozzard.ActionReload, gozzard.ActionKill,
			gozzard.ActionHost, gozzard.ActionUnhost, gozzard.ActionRegister, gozzard.ActionUpdate,
			gozzard.ActionUnregister,
		}).Draw(t, "action"),
		start: rapid.SampledFrom([]string{
			"ok", "ok", "ok", "sleep 3s", "after 2s", "fail 1 no", "nothing", "exit-after 1s", "exit-after 20s",
			"stubborn", "hang", "front",
		}).Draw(t, "start"),
		stop: rapid.SampledFrom([]string{"ok", "ok", "", "sleep 3s", "after 2s", "fail 1 no", "nothing",
			"hang"}).Draw(t, "stop"),
		health: rapid.SampledFrom([]string{"", "", "ok", "fail 1", "hang"}).Draw(t, "health"),
		act: rapid.SampledFrom([]gozzard.LimitAct{
			"", gozzard.ActAlert, gozzard.ActStop, gozzard.ActKill, gozzard.ActRestart,
		}).Draw(t, "act"),
		cpu: rapid.SampledFrom([]float32{0, 99}).Draw(t, "cpu"),
		wait: time.Duration(rapid.SampledFrom([]int{0, 0, 1, 100, 1500, 6000, 30000, 400000}).Draw(t,
			"wait")) * time.Millisecond,
	}
}

// model plays moves and checks what must hold after any of them.
type model struct {
	*rig
	pending []<-chan gozzard.Outcome
	actions []gozzard.Action
	byHand  bool // started outside Gozzard after the last operation
}

func (m *model) play(mv move) {
	switch mv.what {
	case "operate":
		spec := definition(func(s *gozzard.Spec) {
			s.Control.Start, s.Control.Stop = mv.start, mv.stop
			s.Control.Health, s.Policy.HealthRestart, s.Policy.HealthInterval = mv.health, true, 5
			s.Resource = gozzard.Resource{CPU: 50, Act: mv.act, Samples: 2}
			s.Policy.OpTimeout, s.Policy.StartCheckSecs, s.Policy.StopCheckSecs = 10, 2, 1
		})
		m.pending = append(m.pending, m.apply(mv.action, game, spec))
		m.actions = append(m.actions, mv.action)
		m.byHand = false
	case "usage":
		m.machine.SetUsage(game, supervise.Usage{CPU: mv.cpu})
	case "exit":
		m.machine.End(game, supervise.Exit{Known: true, Code: 1})
	case "agent":
		m.down()
		m.pending, m.actions = nil, nil // interrupted, as far as they were begun
		m.up()
	case "by hand":
		if len(m.machine.Live(game)) == 0 && m.quiet() { // a person looks before starting
			m.machine.Launch(game)
			m.byHand = true
		}
	}

	time.Sleep(mv.wait)
	synctest.Wait()
}

// quiet reports whether no operation or command is running, and none will be.
func (m *model) quiet() bool {
	for _, done := range m.pending {
		if len(done) == 0 {
			return false
		}
	}
	return !m.status().Hosted && m.machine.InFlight(game) == 0
}

// settle waits for all operations and returns the last outcome.
func (m *model) settle() (last gozzard.Outcome, action gozzard.Action) {
	for i, done := range m.pending {
		last, action = <-done, m.actions[i]
	}
	m.pending, m.actions = nil, nil
	synctest.Wait() // the status follows the verdict
	return last, action
}

// check plays a sequence and returns what did not hold.
func check(t *testing.T, moves []move) (fault string) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{rig: newRig(t, nil)}
		m.up()
		defer m.down()
		for i, mv := range moves {
			m.play(mv)
			if n := len(m.machine.Live(game)); n > 1 {
				fault = fmt.Sprintf("%d live copies after move %d", n, i)
				return
			}
		}
		last, action := m.settle()
		fault = m.checkEnd(last, action)
	})
	return fault
}

func (m *model) checkEnd(last gozzard.Outcome, action gozzard.Action) string {
	if peak := m.machine.Peak(game); peak > 1 {
		return fmt.Sprintf("%d live copies at some time", peak)
	}

	if last.Code == gozzard.CodeOK && !m.byHand && (action == gozzard.ActionStop || action == gozzard.ActionKill) {
		for range 20 {
			m.after(time.Minute)
			if len(m.machine.Live(game)) > 0 {
				return fmt.Sprintf("alive after %s: %+v", action, last)
			}
		}
	}

	if st, known := m.s.Status(game); known != (len(m.journal) == 1) || known && st.Hosted != m.record().Hosted {
		return fmt.Sprintf("journal %+v and status %#v differ", m.journal, st)
	}
	// After any moves: a supervised process with a good command is alive again after a kill, a stopped one stays
	// down, and the status is true.
	if out := <-m.apply(gozzard.ActionHost, game, definition(nil)); out.Code != gozzard.CodeOK {
		return fmt.Sprintf("host: %+v", out)
	}

	m.after(400 * time.Second)

	for range 3 {
		m.machine.End(game, supervise.Exit{})
		m.after(400 * time.Second)
		st, _ := m.s.Status(game)
		if live := m.machine.Live(game); len(live) != 1 || int(st.PID) != live[0].PID ||
			st.State != gozzard.StateRunning {
			return fmt.Sprintf("hosted and killed, but %d live, status %#v", len(live), st)
		}
	}

	if out := <-m.apply(gozzard.ActionStop, game, definition(nil)); out.Code != gozzard.CodeOK || out.Hosted {
		return fmt.Sprintf("stop: %+v", out)
	}

	m.after(time.Hour)

	if st, _ := m.s.Status(game); len(m.machine.Live(game)) != 0 || st.State != gozzard.StateStopped || st.PID != -1 {
		return fmt.Sprintf("not down after the last stop: %#v", st)
	}
	if m.machine.Peak(game) > 1 {
		return "two copies"
	}

	return ""
}

func TestWhateverComes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.Custom(drawMove), 1, 25).Draw(rt, "moves")
		if fault := check(t, moves); fault != "" {
			var b strings.Builder
			for i, mv := range moves {
				fmt.Fprintf(&b, "\n  %d %s", i, mv)
			}
			rt.Fatalf("%s%s", fault, b.String())
		}
	})
}
