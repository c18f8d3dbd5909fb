package delivery

import (
	"time"

	"github.com/gozzard/gozzard"
)

// Attempt is an attempt that is not final, in memory.
type Attempt struct {
	ref   gozzard.AttemptRef
	op    gozzard.Op // never changes
	agent *agent
	task  *task
	found bool // an earlier run of the server left it open

	// changed by transition only
	state    State
	session  uint64 // in which the record has it as dispatched; 0 while it waits
	deadline time.Time
	expires  time.Time
	tries    int       // repeats in this state
	sentAt   time.Time // first, in this session; zero when it was not, or when the time was measured
	unsent   bool      // given up before it was sent in its session

	// A verdict of the agent is on its way into the record, and how long the agent held the operation.
	reported bool
	held     time.Duration

	// places in the queues
	older, newer *Attempt  // neighbours in the order of unsent operations on its process
	due          time.Time // when the timer looks at it; zero when it does not
	dueIndex     int       // in the heap
	agentIndex   int       // in agent.attempts
}

func newAttempt(a *gozzard.Attempt, ag *agent, t *task) *Attempt {
	return &Attempt{
		ref: a.Ref, agent: ag, task: t, session: a.Session, deadline: a.Deadline, expires: a.Expires,
		op: gozzard.Op{ID: a.Op, Ref: a.Ref, Gen: a.Generation(), Action: a.Action, Key: a.Key, Labels: a.Labels,
			Spec: a.Spec, Adopt: a.Adopt, Account: a.Account},
	}
}

// process is what the operation is about.
func (a *Attempt) process() gozzard.ProcID { return gozzard.ProcID{Agent: a.agent.id, Key: a.op.Key} }

// dueEvent decides what the timer does about an attempt whose time has come.
func (a *Attempt) dueEvent(now time.Time, keep time.Duration) EventKind {
	online := a.agent.online
	switch a.state {
	case Waiting:
		switch {
		case online:
			return ReleaseDue
		case a.expires.After(now):
			return WaitDue
		}
		return ExpiryDue
	case Recalled:
		return RecallDue
	case Unknown:
		if now.Sub(a.deadline) > keep {
			return KeepDue
		}
		return CancelDue
	}

	switch {
	case !a.deadline.After(now), !online && a.state != Received:
		return GiveUpDue
	case a.state == Sent:
		return LateDue
	case a.state == Repeated:
		return RepeatDue
	}
	return CheckDue
}

// lookAt is when the timer looks at an attempt after a transition with these effects.
func (q *queue) lookAt(a *Attempt, do Effects, now time.Time) time.Time {
	switch do & schedules {
	case ScheduleRelease:
		if a.agent.online {
			return now
		}
		return a.expires

	case ScheduleExpiry:
		return a.expires
	case ScheduleResend:
		return now.Add(q.resend)
	case ScheduleLate:
		return a.noLater(now.Add(q.flow.late(q.resend)))
	case ScheduleRepeat:
		return a.noLater(q.repeatAt(a, now))
	case ScheduleDeadline:
		return a.deadline
	}
	return now // ScheduleNow
}

// repeatAt is when an attempt is repeated next.
func (q *queue) repeatAt(a *Attempt, now time.Time) time.Time {
	if a.tries == 0 && !a.sentAt.IsZero() { // it is late, and not repeated yet
		now = a.sentAt
	}
	return now.Add(q.flow.pause(a.tries, q.resend, q.random()))
}

// noLater is the given time, or the deadline if that is earlier. Unknown attempts have no deadline any more.
func (a *Attempt) noLater(at time.Time) time.Time {
	if a.state != Unknown && a.deadline.Before(at) {
		return a.deadline
	}
	return at
}
