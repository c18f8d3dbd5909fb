package delivery

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestSimulation runs the queue through random histories: agents that vanish, come back and answer late, messages that
// are lost, and a record that answers late, so that other events come between a write and its answer. After every step
// the tables must be in line with the states, and the states with the record. In the end every attempt has its verdict.
func TestSimulation(t *testing.T) {
	seen := [numStates][numEvents]bool{}
	for seed := range uint64(150) {
		s := newSimulation(t, seed, &seen)
		for i := range 400 {
			s.step()
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, i)
			}
		}

		s.calm()
		if t.Failed() {
			t.Fatalf("seed %d, in the end", seed)
		}
	}

	// The histories must have every external event in every state, except for those that need a hostile agent, a second
	// server or a rare order of answers.
	for _, state := range open {
		for _, e := range []EventKind{Dispatched, Returned, NotReturned, Acknowledged, Requeued, AgentSilent, CancelAsked,
			Superseded, GivenUp, NotGivenUp, Settled} {
			rare := e == Acknowledged && (state == Waiting || state == Queued || state == Stale || state == Recalled) ||
				e == Requeued && state == Waiting || e == Returned && state == Received ||
				e == NotReturned && (state == Recalled || state == Sent || state == Repeated || state == Received)
			if _, do := Next(state, e); !rare && !do.Has(Impossible) && !seen[state][e] {
				t.Errorf("no history had %v in %v", e, state)
			}
		}
	}
}

type simRow struct {
	state   gozzard.AttemptState
	session uint64
}

// simAgent is an agent: what it knows of operations, by id.
type simAgent struct {
	id         gozzard.AgentID
	session    uint64 // that the server has registered
	busy       bool   // its session is being opened, or what waits is being released
	knows      map[gozzard.OpID]gozzard.Phase
	newest     map[gozzard.Key]uint64
	firstSends map[gozzard.Key][]gozzard.TaskSeq // in this session
}

// late is a write that the record has not done yet, or has done and not yet confirmed.
type late struct {
	about  []*Attempt
	write  func() []bool
	answer func(changed []bool)
	done   bool
	result []bool
}

type simulation struct {
	t      *testing.T
	r      *rand.Rand
	seen   *[numStates][numEvents]bool
	q      *queue
	now    time.Time
	record map[gozzard.OpID]*simRow
	agents []*simAgent
	late   []*late
	seq    gozzard.TaskSeq
	calmly bool // the record does not fail
	// Attempts that were requeued after their session ended may be older than others that were sent. Their agents reject
	// them.
	returned  map[*Attempt]bool
	cancelled map[gozzard.OpID]bool // the record has that as the verdict
}

func newSimulation(t *testing.T, seed uint64, seen *[numStates][numEvents]bool) *simulation {
	s := &simulation{t: t, r: rand.New(rand.NewPCG(seed, 1)), seen: seen, now: time.Unix(1_700_000_000, 0),
		q:      newQueue(limits{resend: time.Second, keep: time.Hour, window: 8, random: func() float64 { return 0 }}),
		record: map[gozzard.OpID]*simRow{}, returned: map[*Attempt]bool{},
		cancelled: map[gozzard.OpID]bool{}}
	for i := range 2 {
		s.agents = append(s.agents, &simAgent{id: gozzard.AgentID(fmt.Sprint("agent-", i)),
			knows: map[gozzard.OpID]gozzard.Phase{}, newest: map[gozzard.Key]uint64{},
			firstSends: map[gozzard.Key][]gozzard.TaskSeq{}})
	}
	return s
}

// step does one random thing.
func (s *simulation) step() {
	g := s.agents[s.r.IntN(len(s.agents))]
	switch n := s.r.IntN(100); {
	case n < 15:
		s.accept(g)
	case n < 17:
		s.cancel()
	case n < 35:
		s.q.nextBatch(s.now)
	case n < 60:
		s.answerLate()
	case n < 75:
		s.now = s.now.Add(time.Duration(s.r.IntN(1500)) * time.Millisecond)
		s.q.lookAtDue(s.now)
	case n < 80:
		s.hello(g)
	case n < 83:
		s.silence(g)
	case n < 85:
		if a := s.q.agents[g.id]; a != nil && a.session.ID != 0 {
			a.online = true
		}
	case n < 86:
		s.now = s.now.Add(30 * time.Minute)
	default:
		s.report(g)
	}

	s.carryOut()
	s.check()
}

// calm continues until nothing is left to do: agents are online and answer, and the record does not fail for long.
func (s *simulation) calm() {
	for i := 0; len(s.q.attempts)+len(s.late) > 0; i++ {
		if i == 2000 {
			for _, a := range s.q.attempts {
				s.t.Errorf("%v of task %d has no verdict", a.state, a.ref.Task)
			}
			return
		}

		s.now = s.now.Add(500 * time.Millisecond)
		for _, g := range s.agents {
			if i%50 == 0 {
				s.hello(g)
			}
			s.report(g)
		}
		s.q.nextBatch(s.now)
		s.q.lookAtDue(s.now)
		for range len(s.late) * 4 {
			s.answerLate()
		}
		s.carryOut()
		s.check()
	}

	if len(s.q.tasks)+len(s.q.quotas)+len(s.q.unsent)+len(s.q.due) > 0 {
		s.t.Errorf("left over: %d tasks, %v, %d unsent, %d due", len(s.q.tasks), s.q.quotas, len(s.q.unsent),
			len(s.q.due))
	}
}

func (s *simulation) apply(a *Attempt, e Event) {
	s.seen[a.state][e.Kind] = true
	if e.Kind == Returned {
		s.returned[a] = true
	}
	s.q.apply(a, e, s.now)
}

// accept adds an attempt as the control plane does.
func (s *simulation) accept(g *simAgent) {
	s.seq++
	a := gozzard.Attempt{Op: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: s.seq}, Agent: g.id,
		Key:      gozzard.Key{Namespace: "ns", Name: fmt.Sprint("p", s.r.IntN(2))},
		Action:   []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionReload}[s.r.IntN(3)],
		Deadline: s.now.Add(5 * time.Second), Expires: s.now.Add(3 * time.Second), State: gozzard.AttemptPending}
	kind := AddedPending
	if k := s.q.agents[g.id]; k != nil && k.ready() {
		a.State, a.Session, kind = gozzard.AttemptDispatched, k.session.ID, AddedDispatched
	}

	app := fmt.Sprint("app-", s.seq%2)
	if err := s.q.quotas.reserve(app, 1, 0); err != nil {
		s.t.Error(err)
	}
	s.record[a.Op] = &simRow{a.State, a.Session}
	s.q.add(&a, app, kind, s.now)
}

// cancel is a caller that cancels an operation, or all of them.
func (s *simulation) cancel() {
	all := s.r.IntN(8) == 0
	for _, seq := range slices.Sorted(maps.Keys(s.q.tasks)) {
		for _, g := range s.agents {
			k := s.q.agents[g.id]
			if k == nil || !all && s.r.IntN(8) != 0 {
				continue
			}
			for _, a := range slices.Clone(k.attempts) {
				if a.ref.Task == seq {
					s.apply(a, Event{Kind: CancelAsked})
				}
			}
		}
	}
}

// recall makes the record have, at a later time, that attempts were cancelled.
func (s *simulation) recall(list []claim) {
	for _, c := range list {
		from := gozzard.AttemptPending
		if c.session != 0 {
			from = gozzard.AttemptDispatched
		}
		s.settleLate([]claim{c}, gozzard.AttemptNotExecuted, from, true, Event{Kind: Settled}, Event{Kind: NotSettled})
		l := s.late[len(s.late)-1]
		write := l.write
		l.write = func() []bool {
			changed := write()
			s.cancelled[c.attempt.op.ID] = s.cancelled[c.attempt.op.ID] || changed[0]
			return changed
		}
	}
}

// carryOut turns work into messages and late writes.
func (s *simulation) carryOut() {
	for w := s.q.drainWork(); ; w = s.q.drainWork() {
		for _, m := range w.mistakes {
			s.t.Errorf("%v in %v cannot be", m.event, m.state)
		}
		for _, m := range w.send {
			s.deliver(m)
		}
		for _, m := range w.cancel {
			if g := s.agent(m.agent); s.r.IntN(2) == 0 && m.session == g.session {
				g.knows[m.op.ID] = gozzard.OnCancel(g.knows[m.op.ID])
			}
		}

		s.settleLate(w.sendBack, gozzard.AttemptPending, 0, true,
			Event{Kind: Returned, Expires: s.now.Add(3 * time.Second)}, Event{Kind: NotReturned})
		s.settleLate(w.giveUp, gozzard.AttemptUnknown, 0, true, Event{Kind: GivenUp}, Event{Kind: NotGivenUp})
		s.settleLate(w.withdraw, expired.to, expired.from, false, Event{Kind: Settled}, Event{Kind: NotSettled})
		s.settleLate(w.supersede, superseded.to, superseded.from, false, Event{Kind: Settled}, Event{Kind: NotSettled})
		s.settleLate(w.interrupt, lost.to, lost.from, false, Event{Kind: Settled}, Event{Kind: NotSettled})
		s.recall(w.recall)
		for _, id := range w.release {
			s.release(s.agent(id))
		}
		if len(s.q.work.supersede)+len(s.q.work.mistakes) == 0 {
			return
		}
	}
}

func (s *simulation) agent(id gozzard.AgentID) *simAgent {
	return s.agents[slices.IndexFunc(s.agents, func(g *simAgent) bool { return g.id == id })]
}

// deliver sends an operation to its agent, or loses it. The operation must be dispatched in that session.
func (s *simulation) deliver(m message) {
	g := s.agent(m.agent)
	a := s.q.attempts[m.op.ID]
	if a.state == Sent && m.session == g.session && !s.returned[a] {
		sends := g.firstSends[m.op.Key]
		if len(sends) > 0 && sends[len(sends)-1] >= a.ref.Task {
			s.t.Errorf("task %d is sent after %v", a.ref.Task, sends)
		}
		g.firstSends[m.op.Key] = append(sends, a.ref.Task)
	}
	if s.cancelled[m.op.ID] {
		s.t.Errorf("task %d is sent after it was cancelled", a.ref.Task)
	}
	if row := s.record[m.op.ID]; row.state == gozzard.AttemptPending || row.session != m.session &&
		row.state == gozzard.AttemptDispatched {
		s.t.Errorf("sent in session %d, the record has %+v", m.session, *row)
	}

	if s.r.IntN(3) == 0 {
		return
	}
	view := gozzard.AgentView{Session: g.session, Leased: true, Phase: g.knows[m.op.ID], NewestGen: g.newest[m.op.Key]}
	switch gozzard.Admit(view, m.session, m.op.Gen, false) {
	case gozzard.AdmitQueue:
		g.knows[m.op.ID], g.newest[m.op.Key] = gozzard.PhaseQueued, m.op.Gen
	case gozzard.AdmitRefuseOld:
		g.knows[m.op.ID] = gozzard.PhaseNever
	}
}

// settleLate makes the record change rows at a later time, and answer even later.
func (s *simulation) settleLate(list []claim, to, from gozzard.AttemptState, inSession bool, yes, no Event) {
	for _, c := range list {
		session := uint64(0)
		if inSession {
			session = c.session
		}
		s.late = append(s.late, &late{
			about: []*Attempt{c.attempt},
			write: func() []bool { return []bool{s.settle(c.attempt.op.ID, to, from, session)} },
			answer: func(changed []bool) {
				e := no
				if changed[0] {
					e = yes
				}
				s.apply(c.attempt, e)
			},
		})
	}
}

// settle is the compare-and-set of the record.
func (s *simulation) settle(id gozzard.OpID, to, from gozzard.AttemptState, session uint64) bool {
	row := s.record[id]
	if !slices.Contains(to.Sources(), row.state) || from != 0 && row.state != from ||
		session != 0 && row.session != session || !s.calmly && s.r.IntN(20) == 0 { // or the record fails
		return false
	}
	row.state = to
	return true
}

// answerLate does one write, or returns one answer.
func (s *simulation) answerLate() {
	if len(s.late) == 0 {
		return
	}

	i := s.r.IntN(len(s.late))
	l := s.late[i]
	if !l.done {
		l.done, l.result = true, l.write()
		return
	}
	s.late = slices.Delete(s.late, i, i+1)
	l.answer(l.result)
}

// release dispatches what waits, as the engine does.
func (s *simulation) release(g *simAgent) {
	k := s.q.agents[g.id]
	if g.busy || k == nil || !k.online {
		return
	}

	list, old := splitSuperseded(k.waitingInOrder())
	for _, a := range old {
		s.apply(a, Event{Kind: Superseded})
	}

	if len(old) > 0 { // the engine waits until the record has that, and goes on then
		return
	}
	if len(list) == 0 {
		k.settled = true
		return
	}

	g.busy = true
	session, deadline := k.session.ID, s.now.Add(5*time.Second)
	s.late = append(s.late, &late{
		about: list,
		write: func() []bool {
			changed := make([]bool, len(list))
			if g.session != session || s.r.IntN(20) == 0 { // the record fails for all of them
				return changed
			}
			for i, a := range list {
				if row := s.record[a.op.ID]; row.state == gozzard.AttemptPending {
					*row, changed[i] = simRow{gozzard.AttemptDispatched, session}, true
				}
			}
			return changed
		},
		answer: func(changed []bool) {
			g.busy = false
			for i, a := range list {
				e := Event{Kind: NotDispatched}
				if changed[i] {
					e = Event{Kind: Dispatched, Session: session, Deadline: deadline}
				}
				s.apply(a, e)
			}
			k.settled = k.settled || !slices.Contains(changed, false)
		},
	})
}

// hello opens a session and reconciles. Half of the agents come back from a crash.
func (s *simulation) hello(g *simAgent) {
	if g.busy {
		return
	}

	crash := s.r.IntN(2) == 0
	for id, phase := range g.knows {
		switch {
		case crash && phase == gozzard.PhaseQueued: // only in memory
			delete(g.knows, id)
			clear(g.newest) // older operations are gone with it, or final
		case crash:
			g.knows[id] = gozzard.OnRecovery(phase)
		}
	}
	g.session++
	clear(g.firstSends)
	k := s.q.agent(g.id)
	k.session, k.online, k.settled, k.heard = Session{ID: g.session}, true, false, s.now

	g.busy = true
	s.late = append(s.late, &late{write: func() []bool { return nil }, answer: func([]bool) {
		g.busy = false
		s.reconcile(g, k)
		s.release(g)
	}})
}

// reconcile decides about what older sessions left open.
func (s *simulation) reconcile(g *simAgent, k *agent) {
	s.calmly = true // the engine repeats it until the record does not fail
	defer func() { s.calmly = false }()
	for _, a := range slices.Clone(k.attempts) {
		row, phase := s.record[a.op.ID], g.knows[a.op.ID]
		if phase != gozzard.PhaseAbsent {
			s.apply(a, Event{Kind: Acknowledged})
		}
		to, ok := gozzard.Reconcile(row.state, row.session, !a.deadline.After(s.now),
			gozzard.Contact{Session: g.session, Phase: phase, SameJournal: true}, gozzard.CodeOK)
		if ok && s.settle(a.op.ID, to, 0, row.session) {
			if to == gozzard.AttemptPending {
				s.apply(a, Event{Kind: Requeued})
			} else {
				s.apply(a, Event{Kind: Settled})
			}
		}
	}
}

// silence ends the lease of an agent.
func (s *simulation) silence(g *simAgent) {
	k := s.q.agents[g.id]
	if k == nil || !k.online {
		return
	}
	k.online = false
	for _, a := range k.attempts {
		s.apply(a, Event{Kind: AgentSilent})
	}
}

// report makes an agent finish an operation and report what it knows.
func (s *simulation) report(g *simAgent) {
	k := s.q.agents[g.id]
	if k == nil || k.session.ID != g.session || g.session == 0 {
		return
	}

	k.online = true
	for _, a := range slices.Clone(k.attempts) {
		phase := g.knows[a.op.ID]
		if phase == gozzard.PhaseAbsent || s.r.IntN(2) == 0 {
			continue
		}
		s.apply(a, Event{Kind: Acknowledged})
		if phase < gozzard.PhaseDone && s.r.IntN(3) == 0 {
			g.knows[a.op.ID] = phase + 1 // queued, begun, done
		}
		if to, ok := gozzard.Finalise(g.knows[a.op.ID], gozzard.CodeOK); ok && s.settle(a.op.ID, to, 0, 0) {
			s.apply(a, Event{Kind: Settled})
		}
	}
}

// check compares the tables with the states, and the states with the record.
func (s *simulation) check() {
	s.t.Helper()
	waiting, window, quotas, queued := map[*agent]int{}, 0, map[string]int{}, 0
	asked := map[*Attempt]bool{}
	changed := map[*Attempt]bool{}
	for _, l := range s.late {
		for i, a := range l.about {
			asked[a] = true
			changed[a] = changed[a] || l.done && l.result[i]
		}
	}

	for id, a := range s.q.attempts {
		if a.state == Waiting {
			waiting[a.agent]++
		}
		if a.state.inWindow() {
			window++
		}
		if a.state.inQuota() {
			quotas[a.task.app]++
		}
		if a.state == Queued {
			queued++
			if o := s.q.unsent.oldest(a); o.ref.Task > a.ref.Task || o.process() != a.process() {
				s.t.Errorf("task %d would be sent before %d", o.ref.Task, a.ref.Task)
			}
			if !slices.Contains(a.task.queue, a) {
				s.t.Error("queued, and in no queue")
			}
		}
		if a.due.IsZero() && !asked[a] {
			s.t.Errorf("an attempt in %v is forgotten", a.state)
		}
		if row := s.record[id]; a.state.Record() != row.state && !changed[a] {
			s.t.Errorf("%v in memory, %v in the record", a.state, row.state)
		}
	}

	for _, a := range s.q.agents {
		if a.waiting != waiting[a] {
			s.t.Errorf("%d waiting, counted as %d", waiting[a], a.waiting)
		}
	}
	if s.q.inWindow != window {
		s.t.Errorf("%d in the window, counted as %d", window, s.q.inWindow)
	}
	for app, n := range s.q.quotas {
		if n != quotas[app] {
			s.t.Errorf("%s has %d attempts, counted as %d", app, quotas[app], n)
		}
	}
	for _, a := range s.q.unsent {
		for ; a != nil; a = a.older {
			queued--
		}
	}
	if queued != 0 {
		s.t.Errorf("%d more queued than in the order of their processes", queued)
	}
}
