package delivery

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// A caller cancels operations that were not sent. The record has the verdict before the caller gets its answer, and an
// operation that left the queue because of that is never sent: not by this server, and not by another one, because nobody
// dispatches what has a verdict.

// Recalls is what became of attempts whose caller cancels them.
type Recalls struct {
	Elsewhere []gozzard.Attempt       // this server does not have them as the record does
	Sent      map[gozzard.OpID]uint64 // this server has sent them, in these sessions
}

// Recall cancels those of the given attempts that this server has not sent. The attempts are open ones as the record had them
// when they were read. One that is in no part of the answer has its verdict now, or changed meanwhile: read it again.
func (e *Engine) Recall(ctx context.Context, list []gozzard.Attempt) Recalls {
	r := Recalls{Sent: map[gozzard.OpID]uint64{}}
	w := e.change(func(now time.Time) {
		for i := range list {
			row := &list[i]
			a := e.queue.attempts[row.Op]
			switch {
			case a == nil, movedOn(a, row):
				r.Elsewhere = append(r.Elsewhere, *row)
			case wasSent(a.state):
				r.Sent[row.Op] = row.Session
			default:
				e.queue.apply(a, Event{Kind: CancelAsked}, now)
			}
		}
	})
	e.carryOut(ctx, &w)
	return r
}

// wasSent reports whether an attempt in this state was sent in its session.
func wasSent(s State) bool { return s == Sent || s == Repeated || s == Received }

// recall records that attempts were not executed because their callers cancelled them: of those that wait if they are
// still pending, of the others if they are still dispatched in the session in which they were not sent.
func (e *Engine) recall(ctx context.Context, list []claim) bool {
	rows := make([]Settlement, len(list))
	for i, c := range list {
		rows[i] = c.settlement(gozzard.AttemptNotExecuted, Cancelled)
		rows[i].From, rows[i].FromSession = gozzard.AttemptPending, c.session
		if c.session != 0 {
			rows[i].From = gozzard.AttemptDispatched
		}
	}
	return e.settleClaims(ctx, "cannot record that operations were cancelled", list, rows, Event{Kind: Settled},
		Event{Kind: NotSettled})
}
