package delivery_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a record and a fabric in memory, and an engine over them.
type world struct {
	*delivery.Engine
	t     *testing.T
	start time.Time

	mu    sync.Mutex
	rows  map[gozzard.OpID]*gozzard.Attempt
	sent  []command
	fails bool // the record
	away  bool // the record: it does not answer
	seq   gozzard.TaskSeq
	app   string         // of launch; "" is app
	space string         // of the processes of launch; "" is ns
	rowsN int            // rows that Settle got
	order []gozzard.OpID // of the rows that Settle changed
	slow  chan struct{}  // Settle waits for it, unless it is nil
	quick string         // the app whose rows do not wait for slow, if they come alone
	fsync time.Duration  // that each write takes

	elsewhere map[gozzard.AgentID]uint64 // sessions that other servers registered
}

type command struct {
	to gozzard.AgentID
	at time.Duration // since the start
	*gozzard.Command
}

// inWorld runs a test in virtual time, with a running engine.
func inWorld(t *testing.T, window int, test func(w *world)) { inWorldWith(t, window, false, test) }

// inWorldWith is inWorld with other servers on the same record, if it is shared.
func inWorldWith(t *testing.T, window int, shared bool, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, start: time.Now(), rows: map[gozzard.OpID]*gozzard.Attempt{},
			elsewhere: map[gozzard.AgentID]uint64{}}
		w.Engine = delivery.New(delivery.Options{Store: w, Dispatcher: fabric{w}, Log: slog.New(slog.DiscardHandler),
			Now: time.Now, Lease: 14 * time.Second, Slack: 8 * time.Second, Resend: time.Second, Keep: time.Hour,
			Window: window, Silent: func(gozzard.AgentID, time.Time) {}, Foreign: func(gozzard.AgentID) {}, Shared: shared,
			Apps: func(context.Context, []gozzard.Attempt) (map[gozzard.TaskSeq]string, error) { return nil, nil }})

		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { w.Run(ctx) })
		test(w)
		cancel()
		wg.Wait()
	})
}

// OpenOf implements delivery.Store.
func (w *world) OpenOf(_ context.Context, agents []gozzard.AgentID) (list []gozzard.Attempt, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.rows {
		if slices.Contains(agents, a.Agent) && !a.State.Final() {
			list = append(list, *a)
		}
	}
	return list, nil
}

// Sessions implements delivery.Store.
func (w *world) Sessions(_ context.Context, agents []gozzard.AgentID) (map[gozzard.AgentID]uint64, error) {
	list := map[gozzard.AgentID]uint64{}
	for _, id := range agents {
		s, _, _ := w.Session(id)
		w.mu.Lock()
		list[id] = max(s.ID, w.elsewhere[id])
		w.mu.Unlock()
	}
	return list, nil
}

// Dispatch implements delivery.Store.
func (w *world) Dispatch(_ context.Context, rows []delivery.Dispatch) ([]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := make([]bool, len(rows))
	for i, r := range rows {
		for _, a := range w.rows {
			if a.Ref == r.Ref && a.State == gozzard.AttemptPending && !w.fails {
				a.State, a.Session, a.Deadline, changed[i] = gozzard.AttemptDispatched, r.Session, r.Deadline, true
			}
		}
	}
	return changed, nil
}

// Settle implements delivery.Store.
func (w *world) Settle(_ context.Context, rows []delivery.Settlement) ([]bool, error) {
	w.mu.Lock()
	slow := w.slow
	if w.quick != "" && !slices.ContainsFunc(rows, func(r delivery.Settlement) bool { return r.App != w.quick }) {
		slow = nil
	}
	w.mu.Unlock()
	if slow != nil {
		<-slow
	}
	time.Sleep(w.fsync)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.rowsN += len(rows)
	if w.fails {
		return nil, fmt.Errorf("no room")
	}
	if w.away {
		return nil, gozzard.Errorf(gozzard.ErrUnavailable, "no answer")
	}

	changed := make([]bool, len(rows))
	for i, r := range rows {
		a := w.rows[r.Op]
		if a != nil && slices.Contains(r.To.Sources(), a.State) && (r.From == 0 || r.From == a.State) &&
			(r.FromSession == 0 || r.FromSession == a.Session) {
			a.State, a.Outcome, changed[i] = r.To, r.Outcome, true
			w.order = append(w.order, r.Op)
		}
	}
	return changed, nil
}

// fabric records what is sent.
type fabric struct{ w *world }

// Send implements delivery.Dispatcher.
func (f fabric) Send(to gozzard.AgentID, _ int, cmd *gozzard.Command) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.sent = append(f.w.sent, command{to, time.Since(f.w.start), cmd})
	return nil
}

// commands are the commands of one kind, in their order.
func (w *world) commands(kind gozzard.CommandKind) (list []command) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.sent {
		if c.Kind == kind {
			list = append(list, c)
		}
	}
	return list
}

func (w *world) connect(agent gozzard.AgentID, session uint64, open ...gozzard.OpReport) {
	w.t.Helper()
	defer w.LockAgent(agent)()
	w.OpenSession(agent, delivery.Session{ID: session}, time.Now())
	if err := w.Reconcile(w.t.Context(), delivery.Hello{Agent: agent, Session: session, JournalSince: 1,
		Open: open}); err != nil {
		w.t.Error(err)
	}
}

// launch adds a task with one attempt for each agent, dispatched where the agent is ready.
func (w *world) launch(wait time.Duration, agents ...gozzard.AgentID) (list []gozzard.Attempt) {
	w.seq++
	for i, id := range agents {
		a := gozzard.Attempt{Op: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: w.seq, Index: int32(i)}, Agent: id,
			Key: gozzard.Key{Namespace: cmp.Or(w.space, "ns"), Name: "p"}, Action: gozzard.ActionReload, State: gozzard.AttemptPending,
			Deadline: time.Now().Add(10 * time.Second), Expires: time.Now().Add(wait)}
		if s, _, ready := w.Session(id); ready {
			a.State, a.Session = gozzard.AttemptDispatched, s.ID
		}
		w.mu.Lock()
		row := a
		w.rows[a.Op] = &row
		w.mu.Unlock()
		list = append(list, a)
	}
	app := cmp.Or(w.app, "app")
	if err := w.Reserve(app, len(list)); err != nil {
		w.t.Error(err)
	}
	w.Launch(app, list)
	return list
}

func (w *world) state(op gozzard.OpID) gozzard.AttemptState {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[op].State
}

func (w *world) report(agent gozzard.AgentID, session uint64, op gozzard.OpID, phase gozzard.Phase) {
	w.Heard(agent, session, time.Now())
	w.Receive(agent, 0, &gozzard.Report{Session: session, Results: []gozzard.OpReport{{ID: op, Phase: phase,
		Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}}})
}

// heartbeats renew the lease for some time.
func (w *world) heartbeats(agent gozzard.AgentID, session uint64, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		w.Heard(agent, session, time.Now())
	}
}

// An operation is repeated less and less often until the agent has it. At its deadline it becomes unknown and is
// cancelled until the agent answers. The verdict is acknowledged.
func TestFromLaunchToVerdict(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		w.connect("a", 1)
		op := w.launch(0, "a")[0].Op
		w.heartbeats("a", 1, 8*time.Second)
		var at []time.Duration
		for _, c := range w.commands(gozzard.CommandOperate) {
			at = append(at, c.at.Round(time.Second))
		}
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("sent after %v, want %v", at, want)
		}

		w.report("a", 1, op, gozzard.PhaseBegun)
		w.heartbeats("a", 1, 3*time.Second)
		if n := len(w.commands(gozzard.CommandOperate)); n != 4 {
			t.Errorf("sent %d times, though the agent has it", n)
		}
		if s := w.state(op); s != gozzard.AttemptUnknown {
			t.Errorf("after the deadline it is %v", s)
		}
		if list := w.commands(gozzard.CommandCancel); len(list) == 0 || list[0].Cancel[0] != op {
			t.Errorf("cancelled with %v", list)
		}

		w.report("a", 1, op, gozzard.PhaseDone)
		w.Await(w.t.Context(), 1)
		if s := w.state(op); s != gozzard.AttemptOK {
			t.Errorf("in the end it is %v", s)
		}
		if list := w.commands(gozzard.CommandAck); len(list) != 1 || list[0].Acked[0] != op {
			t.Errorf("acknowledged with %v", list)
		}
	})
}

// The window limits how many operations are sent and not answered. An operation of a silent host leaves the window
// when it is first repeated.
func TestWindow(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		agents := []gozzard.AgentID{"a", "b", "c", "d", "e"}
		for _, id := range agents {
			w.connect(id, 1)
		}
		list := w.launch(0, agents...)
		if n := len(w.commands(gozzard.CommandOperate)); n != 2 {
			t.Fatalf("%d sent at once", n)
		}

		w.report("a", 1, list[0].Op, gozzard.PhaseDone)
		if n := len(w.commands(gozzard.CommandOperate)); n != 3 {
			t.Fatalf("%d sent after one answer", n)
		}

		time.Sleep(1100 * time.Millisecond) // b and c are repeated
		first := map[gozzard.AgentID]bool{}
		for _, c := range w.commands(gozzard.CommandOperate) {
			first[c.to] = true
		}
		if len(first) != 5 {
			t.Errorf("silent hosts delay others: %v", first)
		}
	})
}

// A waiting operation is sent when its host comes back, or withdrawn when the host does not.
func TestWaiting(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		back := w.launch(time.Minute, "a")[0].Op
		gone := w.launch(5*time.Second, "b")[0].Op
		time.Sleep(6 * time.Second)
		if s := w.state(gone); s != gozzard.AttemptNotExecuted {
			t.Errorf("a host that did not come back: %v", s)
		}

		w.connect("a", 7)
		if list := w.commands(gozzard.CommandOperate); len(list) != 1 || list[0].Session != 7 ||
			list[0].Ops[0].ID != back {
			t.Errorf("sent %v", list)
		}
	})
}

// While the record fails nothing is lost: the engine tries again.
func TestFailingRecord(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		op := w.launch(time.Second, "a")[0].Op
		w.mu.Lock()
		w.fails = true
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
		if s := w.state(op); s != gozzard.AttemptPending {
			t.Errorf("the record fails, and it is %v", s)
		}

		w.mu.Lock()
		w.fails = false
		w.mu.Unlock()
		time.Sleep(2 * time.Second)
		if s := w.state(op); s != gozzard.AttemptNotExecuted {
			t.Errorf("the record works again, and it is %v", s)
		}
	})
}

// A verdict that an agent repeats is acknowledged again, and the record is not asked: neither while it writes the
// verdict nor afterwards. Another agent cannot have it acknowledged.
func TestRepeatedVerdictsCostNoRecord(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		w.connect("a", 1)
		w.connect("b", 1)
		op := w.launch(0, "a")[0].Op
		w.slow = make(chan struct{})
		for range 5 {
			w.report("a", 1, op, gozzard.PhaseDone)
		}
		if n := len(w.commands(gozzard.CommandAck)); n != 0 {
			t.Errorf("acknowledged %d times before it is recorded", n)
		}
		close(w.slow)
		w.Await(w.t.Context(), 1)
		for range 5 {
			w.report("a", 1, op, gozzard.PhaseDone)
			w.report("b", 1, op, gozzard.PhaseDone)
		}

		acks := w.commands(gozzard.CommandAck)
		if len(acks) != 6 || slices.ContainsFunc(acks, func(c command) bool { return c.to != "a" || c.Acked[0] != op }) {
			t.Errorf("acknowledged with %v", acks)
		}
		if w.rowsN != 1 {
			t.Errorf("the record got %d rows", w.rowsN)
		}
	})
}

// A verdict that the record did not take counts when it is repeated.
func TestVerdictAfterAFailure(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		w.connect("a", 1)
		op := w.launch(0, "a")[0].Op
		w.fails = true
		w.report("a", 1, op, gozzard.PhaseDone)
		if n := len(w.commands(gozzard.CommandAck)); n != 0 {
			t.Errorf("acknowledged %d times", n)
		}

		w.mu.Lock()
		w.fails = false
		w.mu.Unlock()
		w.report("a", 1, op, gozzard.PhaseDone)
		w.Await(w.t.Context(), 1)
		if s := w.state(op); s != gozzard.AttemptOK {
			t.Errorf("it is %v", s)
		}
	})
}

// A verdict that the record did not answer is recorded when the record is back: the agent need not repeat it.
func TestVerdictWaitsForTheRecord(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		w.connect("a", 1)
		op := w.launch(0, "a")[0].Op
		w.away = true
		w.report("a", 1, op, gozzard.PhaseDone)
		time.Sleep(3 * time.Second)
		if n := len(w.commands(gozzard.CommandAck)); n != 0 {
			t.Errorf("acknowledged %d times", n)
		}

		w.mu.Lock()
		w.away = false
		w.mu.Unlock()
		time.Sleep(time.Second)
		if s := w.state(op); s != gozzard.AttemptOK {
			t.Errorf("it is %v", s)
		}
		if acks := w.commands(gozzard.CommandAck); len(acks) != 1 || acks[0].Acked[0] != op {
			t.Errorf("acknowledged with %v", acks)
		}
	})
}

// Hosts that answer neither operations nor CANCEL get ever fewer messages.
func TestRepeatsToSilentHostsFade(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		var agents []gozzard.AgentID
		for i := range 100 {
			agents = append(agents, gozzard.AgentID(fmt.Sprintf("host%d", i)))
			w.connect(agents[i], 1)
		}
		w.launch(0, agents...)
		for range 120 {
			time.Sleep(time.Second)
			for _, id := range agents {
				w.Heard(id, 1, time.Now())
			}
		}

		hosts, second, most := map[gozzard.AgentID]bool{}, 0, map[time.Duration]int{}
		for _, c := range w.commands(gozzard.CommandCancel) {
			most[c.at]++
			hosts[c.to] = true
			if c.at > time.Minute {
				second++
			}
		}
		if len(hosts) != 100 || second > 600 {
			t.Errorf("CANCEL to %d hosts, %d in the second minute", len(hosts), second)
		}
		for at, n := range most {
			if n > 10 { // the window
				t.Errorf("%d CANCELs at once after %v", n, at)
			}
		}
	})
}

// A small task of another app does not wait for a large one, although both share one window.
func TestSmallTaskPassesLargeOne(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		var agents []gozzard.AgentID
		for i := range 500 {
			agents = append(agents, gozzard.AgentID(fmt.Sprintf("host%d", i)))
			w.connect(agents[i], 1)
		}
		w.launch(0, agents...)
		w.app = "other"
		small := w.launch(0, "host499")[0].Op

		sent := 0
		for i := 0; i < 100; i++ {
			list := w.commands(gozzard.CommandOperate)
			for _, c := range list[sent:] {
				for _, op := range c.Ops {
					if op.ID == small {
						t.Logf("sent after %d others", sent)
						return
					}
					w.report(c.to, 1, op.ID, gozzard.PhaseDone)
				}
			}
			if sent = len(list); sent > 100 {
				break
			}
		}
		t.Errorf("not sent after %d others", sent)
	})
}

// A deadline of an older session does not end a newer dispatch.
func TestDeadlineOfAnOlderSession(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		w.connect("a", 1)
		op := w.launch(0, "a")[0].Op
		w.commands(gozzard.CommandOperate)
		w.connect("a", 2) // it never began: it is sent again
		if list := w.commands(gozzard.CommandOperate); len(list) != 2 || list[1].Session != 2 {
			t.Fatalf("sent %v", list)
		}

		w.heartbeats("a", 2, 5*time.Second)
		if s := w.state(op); s != gozzard.AttemptDispatched {
			t.Errorf("it is %v", s)
		}
		w.report("a", 2, op, gozzard.PhaseDone)
		if s := w.state(op); s != gozzard.AttemptOK {
			t.Errorf("it is %v", s)
		}
	})
}

// A report without a session opens no session, even if attempts wait for its agent.
func TestReportWithoutASession(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		w.launch(time.Minute, "a")
		if c := w.Heard("a", 0, time.Now()); c != delivery.ContactNew {
			t.Errorf("the contact is %v", c)
		}
		if _, online, _ := w.Session("a"); online {
			t.Error("the agent is online without a session")
		}
	})
}
