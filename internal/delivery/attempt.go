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
	tries    int  // repeats in this state
	unsent   bool // given up before it was sent in its session

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
	case Unknown:
		if now.Sub(a.deadline) > keep {
			return KeepDue
		}
		return CancelDue
	}

	switch {
	case !a.deadline.After(now), !online && a.state != Received:
		return GiveUpDue
	case a.state == Sent || a.state == Repeated:
		return RepeatDue
	}
	return CheckDue
}

// lookAt is when the timer looks at an attempt after a transition with these effects.
func (a *Attempt) lookAt(do Effects, now time.Time, resend time.Duration) time.Time {
	switch do & schedules {
	case ScheduleRelease:
		if a.agent.online {
			return now
		}
		return a.expires

	case ScheduleExpiry:
		return a.expires
	case ScheduleResend:
		return now.Add(resend)
	case ScheduleRepeat:
		at := now.Add(resend << min(a.tries, 3))
		if a.state != Unknown && a.deadline.Before(at) {
			return a.deadline
		}
		return at
	case ScheduleDeadline:
		return a.deadline
	}
	return now // ScheduleNow
}
