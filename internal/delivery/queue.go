package delivery

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/turns"
)

const (
	// sendTurn bounds the attempts of one task that are sent in one turn, so that a large task does not delay a small one.
	sendTurn = 64

	// alwaysMay is how many operations an app may have in the air when others use up the window. So the small tasks of an app
	// do not wait until those of others come back. All apps together get no more than windowLeast that way.
	alwaysMay = 8
)

// limits are the settings.
type limits struct {
	resend time.Duration  // the shortest pause between repeats of what an agent has not answered
	keep   time.Duration  // how long results are kept
	window int            // attempts of all tasks in the window at a time, at most
	random func() float64 // in [0, 1), spreads repeats
}

// queue has all open attempts, by everything they are looked up by. It does no I/O, starts nothing and needs a lock
// around it. Where an attempt is in these tables follows from its state: see moved.
type queue struct {
	limits
	agents   map[gozzard.AgentID]*agent
	tasks    map[gozzard.TaskSeq]*task
	attempts map[gozzard.OpID]*Attempt
	quotas   quotas
	unsent   unsentOrder
	due      dueHeap
	ready    turns.Queue[*task] // tasks with something to send: apps take turns, and so do the tasks of one app
	backlog  backlog
	flow     flow
	inWindow int            // attempts in a state that counts in the window
	verdicts int            // attempts with a verdict on its way into the record
	air      map[string]int // both, by app
	recent   recent
	work     work // what transitions asked for since drainWork
}

func newQueue(l limits) *queue {
	return &queue{limits: l, agents: map[gozzard.AgentID]*agent{}, tasks: map[gozzard.TaskSeq]*task{},
		attempts: map[gozzard.OpID]*Attempt{}, quotas: quotas{}, unsent: unsentOrder{}, backlog: newBacklog(),
		flow: newFlow(l.window), air: map[string]int{}}
}

// work is what transitions ask for, as values: it is carried out without the lock.
type work struct {
	send      []message
	cancel    []message
	sendBack  []claim
	giveUp    []claim
	withdraw  []claim
	supersede []claim
	interrupt []claim
	recall    []claim
	release   []gozzard.AgentID
	mistakes  []mistake
}

// message is one operation to be sent, or to be cancelled.
type message struct {
	agent   gozzard.AgentID
	cloud   int
	session uint64
	base    uint64 // of the session
	op      *gozzard.Op
}

// claim is a change of an attempt in the record. It has the session because the attempt may be in another one
// by the time the record answers.
type claim struct {
	attempt *Attempt
	session uint64
	reason  string // of giveUp
}

// mistake is an event in a state that it excludes.
type mistake struct {
	attempt *Attempt
	state   State
	event   EventKind
}

// drainWork gives what is to be done and forgets it.
func (q *queue) drainWork() work {
	w := q.work
	q.work = work{}
	return w
}

// agent finds an agent and adds it when it is new.
func (q *queue) agent(id gozzard.AgentID) *agent {
	g := q.agents[id]
	if g == nil {
		g = &agent{id: id}
		q.agents[id] = g
	}
	return g
}

// add takes an open attempt of an app into the tables.
func (q *queue) add(a *gozzard.Attempt, app string, kind EventKind, now time.Time) {
	t := q.tasks[a.Ref.Task]
	if t == nil {
		t = &task{seq: a.Ref.Task, app: app, done: make(chan struct{})}
		q.tasks[a.Ref.Task] = t
	}
	q.apply(newAttempt(a, q.agent(a.Agent), t), Event{Kind: kind}, now)
}

// addFound is add for an attempt that an earlier run of the server left open.
func (q *queue) addFound(a *gozzard.Attempt, app string, kind EventKind, now time.Time) {
	q.add(a, app, kind, now)
	q.attempts[a.Op].found = true
}

// apply is how every event reaches an attempt: it changes the state, brings the tables in line with it, and adds what
// else is to be done to the work.
func (q *queue) apply(a *Attempt, e Event, now time.Time) {
	before := a.state
	do := a.transition(e)
	if before != a.state {
		q.moved(a, before)
	}

	if do.Has(schedules) {
		q.due.set(a, q.lookAt(a, do, now))
	}
	if do &^= schedules; do != 0 {
		q.work.add(a, e.Kind, do)
	}
}

// moved brings the tables in line with a new state. Each table holds the attempts of certain states, and nothing else
// puts an attempt into a table or takes it out.
func (q *queue) moved(a *Attempt, before State) {
	// All tables have open attempts.
	if before == Created {
		q.attempts[a.op.ID] = a
		a.agent.add(a)
		a.task.open++
	}

	// The waiting ones of an agent.
	if before == Waiting {
		a.agent.waiting--
	}
	if a.state == Waiting {
		a.agent.waiting++
	}

	// The queue of the task, and the order of unsent operations on the process.
	if before == Queued {
		q.unsent.remove(a)
		q.backlog.add(a.task.app, -1)
		if a.state == Sent {
			q.backlog.sent++
		}
	}
	if a.state == Queued {
		q.unsent.add(a)
		q.backlog.add(a.task.app, 1)
		a.task.queue = append(a.task.queue, a)
		q.offer(a.task)
	}

	// The window.
	if before.inWindow() && !a.state.inWindow() {
		q.inWindow--
		q.countAir(a.task.app, -1)
	}
	if !before.inWindow() && a.state.inWindow() {
		q.inWindow++
		q.countAir(a.task.app, 1)
	}

	// The quota of the app.
	if before.inQuota() && !a.state.inQuota() {
		q.quotas.release(a.task.app, 1)
	}

	if !a.state.isOpen() {
		q.remove(a)
	}
}

// remove takes an attempt out of the tables: it is final, or another server has it.
func (q *queue) remove(a *Attempt) {
	delete(q.attempts, a.op.ID)
	q.due.remove(a)
	q.setReported(a, false)
	if a.state == Final {
		q.recent.add(a.op.ID, a.agent.id)
	}

	a.agent.remove(a)
	if len(a.agent.attempts) == 0 && a.agent.session.ID == 0 {
		delete(q.agents, a.agent.id)
	}

	a.task.open--
	if a.task.open == 0 {
		delete(q.tasks, a.task.seq)
		close(a.task.done)
	}
}

// setReported notes whether a verdict of an attempt is on its way into the record.
func (q *queue) setReported(a *Attempt, is bool) {
	switch {
	case is && !a.reported:
		q.verdicts++
		q.countAir(a.task.app, 1)
	case !is && a.reported:
		q.verdicts--
		q.countAir(a.task.app, -1)
	}
	a.reported = is
}

// measure takes the time that an operation was on its way, once, if it was sent once. Of others nobody knows which of
// the messages was answered. An agent of an earlier version does not say how long it held the operation.
func (q *queue) measure(a *Attempt, held time.Duration, now time.Time) {
	if !a.sentAt.IsZero() && a.tries == 0 && held > 0 {
		q.flow.answered(now.Sub(a.sentAt)-held, q.inAir() >= q.flow.window()/2, now)
	}
	a.sentAt = time.Time{}
}

// inAir counts the operations between the sender and the record.
func (q *queue) inAir() int { return q.inWindow + q.verdicts }

// countAir counts the operations of an app between the sender and the record.
func (q *queue) countAir(app string, n int) {
	if q.air[app] += n; q.air[app] <= 0 {
		delete(q.air, app)
	}
}

// lane is where a verdict of an app waits for the record, which counts among its operations in the air.
func (q *queue) lane(app string) laneKind {
	if own := q.air[app]; own <= alwaysMay && 4*own < q.inAir() {
		return laneFew
	}
	return laneMany
}

// maySend reports whether the window has room for an operation of an app.
func (q *queue) maySend(app string) bool {
	room, own := q.flow.window()-q.inAir(), q.air[app]
	return room > 0 || room > -windowLeast && own < alwaysMay && 4*own < q.inAir()
}

// offer puts a task into the queue of those with something to send, if it has something.
func (q *queue) offer(t *task) {
	if !t.queued && len(t.queue) > 0 {
		t.queued = true
		q.ready.Add(t.app, t)
	}
}

// sendable reports whether nextBatch has something to do.
func (q *queue) sendable() bool {
	_, ok := q.ready.Find(q.maySend)
	return ok
}

// nextBatch gives one turn to the next task: it adds what is to be sent, and what cannot be sent because its session
// ended. It reports whether there was anything.
func (q *queue) nextBatch(now time.Time) bool {
	for len(q.work.send)+len(q.work.sendBack) == 0 {
		t, ok := q.ready.Pick(q.maySend)
		if !ok {
			return false
		}

		t.queued = false
		n := 0
		for n < len(t.queue) && n < sendTurn && q.maySend(t.app) {
			q.turn(t.queue[n], now)
			t.queue[n] = nil
			n++
		}

		t.queue = t.queue[n:]
		q.offer(t)
	}

	return true
}

// turn sends an attempt, after the older ones on the same process.
func (q *queue) turn(a *Attempt, now time.Time) {
	for next := q.unsent.oldest(a); next != nil; {
		this := next
		next = this.newer
		kind := TurnToSend
		if !gozzard.MaySend(this.agent.session.ID, this.session) {
			kind = SessionEnded
		}
		q.apply(this, Event{Kind: kind, Sent: now}, now)
		if this == a {
			return
		}
	}
}

// lookAtDue applies what the timer decides about each attempt whose time has come. It cancels no more attempts in a tick
// than may be sent at a time, and spreads the others over the next ticks.
func (q *queue) lookAtDue(now time.Time) {
	cancels := 0
	for a := q.due.next(now); a != nil; a = q.due.next(now) {
		kind := a.dueEvent(now, q.keep)
		switch kind {
		case CancelDue:
			if a.agent.online {
				cancels++
			}
			if ticks := (cancels - 1) / q.flow.window(); cancels > 0 && ticks > 0 {
				q.due.set(a, now.Add(time.Duration(ticks)*tick))
				continue
			}
		case RepeatDue:
			if a.tries == 0 {
				q.flow.air.Overdue(a.sentAt, now)
			}
		}
		q.apply(a, Event{Kind: kind}, now)
	}
}

// add adds the effects of one transition.
func (w *work) add(a *Attempt, event EventKind, do Effects) {
	c := claim{attempt: a, session: a.session}
	switch {
	// messages
	case do.Has(Send):
		w.send = append(w.send, message{a.agent.id, a.agent.session.Cloud, a.session, a.agent.session.Base, &a.op})
	case do.Has(Cancel):
		// What an older session left open is for Reconcile to decide: the agent may have lost the journal that had it.
		if a.agent.online && gozzard.MaySend(a.agent.session.ID, a.session) {
			w.cancel = append(w.cancel, message{a.agent.id, a.agent.session.Cloud, a.session, a.agent.session.Base, &a.op})
		}

	// changes of the record
	case do.Has(SendBack):
		w.sendBack = append(w.sendBack, c)
	case do.Has(GiveUp):
		c.reason = a.giveUpReason(event)
		w.giveUp = append(w.giveUp, c)
	case do.Has(Withdraw):
		w.withdraw = append(w.withdraw, c)
	case do.Has(Supersede):
		w.supersede = append(w.supersede, c)
	case do.Has(Interrupt):
		w.interrupt = append(w.interrupt, c)
	case do.Has(Recall):
		w.recall = append(w.recall, c)

	// the rest
	case do.Has(Release):
		w.release = append(w.release, a.agent.id)
	case do.Has(Impossible):
		w.mistakes = append(w.mistakes, mistake{a, a.state, event})
	}
}
