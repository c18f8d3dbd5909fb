package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
)

// How messages are tried again.
const (
	minRetry    = time.Second
	maxRetry    = 5 * time.Minute
	maxAge      = 24 * time.Hour // of a message; afterwards it is a dead letter
	maxRejected = 3              // tries of a message that the receiver rejects
	sendIdle    = 30 * time.Second
	sendBatch   = 16
)

// sink is a way to a receiver.
type sink interface {
	// Send returns nil when the receiver has the message. A rejected error is about this message only.
	Send(ctx context.Context, m *Message) error
	// Repeat sends what fires, to a receiver that forgets what is not repeated. Others do nothing.
	Repeat(ctx context.Context, firing []Message) error
	Close()
}

// sender delivers the messages of one receiver, in their order. A receiver that is slow delays its own messages only.
type sender struct {
	e        *Engine
	receiver record.Receiver
	sink     sink
	wake     chan struct{} // there is a new message
	again    chan struct{} // somebody wants a message to be tried now, also after a failure
	next     atomic.Int64  // Unix milliseconds: when the record says that the message that failed is tried; 0: none failed
	cancel   context.CancelFunc
	done     sync.WaitGroup

	wait  time.Duration // after the next failure
	tries int           // that failed in a row
}

// keepSenders starts senders of new receivers and stops those of receivers that were removed. A receiver that was changed
// gets a new one: nothing more goes to its former address.
func (e *Engine) keepSenders(ctx context.Context) {
	for id, s := range e.senders {
		if r, known := e.receives[id]; !known || !r.Same(&s.receiver) {
			s.stop()
			delete(e.senders, id)
		}
	}
	for id, r := range e.receives {
		if e.senders[id] != nil {
			continue
		}
		s := &sender{e: e, receiver: r, wake: make(chan struct{}, 1), again: make(chan struct{}, 1), wait: minRetry}
		var err error
		if s.sink, err = e.open(&r); err != nil {
			s.sink = broken{err}
		}
		var life context.Context
		life, s.cancel = context.WithCancel(ctx)
		s.done.Go(func() { s.run(life) })
		e.senders[id] = s
	}
}

func (e *Engine) stopSenders() {
	for _, s := range e.senders {
		s.cancel()
	}
	for _, s := range e.senders {
		s.stop()
	}
}

func (s *sender) stop() {
	s.cancel()
	s.done.Wait()
	s.sink.Close()
}

func (s *sender) wakeUp() { signal(s.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look wakes the sender if messages wait. If the record has an earlier time for the next try than the sender, somebody
// wants it now: a test was successful, or an admin asked for a dead letter.
func (s *sender) look(b *record.Backlog) {
	if b.Waiting == 0 {
		return
	}
	s.wakeUp()
	if b.Next.UnixMilli() < s.next.Load() {
		signal(s.again)
	}
}

// run delivers until ctx ends.
func (s *sender) run(ctx context.Context) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for ctx.Err() == nil {
		sent, pause, err := s.deliver(ctx)
		if ctx.Err() != nil {
			return
		}
		s.log(sent, err)

		select {
		case <-ctx.Done():
		case <-beat.C:
			s.repeat(ctx)
		case <-s.wakeIf(err == nil):
		case <-s.again:
			s.wait = minRetry
		case <-time.After(pause):
		}
	}
}

// wakeIf is the channel of new messages. After a failure these wait for the next try like the others.
func (s *sender) wakeIf(well bool) <-chan struct{} {
	if well {
		return s.wake
	}
	return nil
}

// log says when a receiver begins to fail and when it works again, which is when it took a message. It does not repeat every
// try.
func (s *sender) log(sent int, err error) {
	switch {
	case err != nil:
		if s.tries++; s.tries&(s.tries-1) == 0 {
			s.e.o.Log.Warn("cannot deliver alerts, trying again", "receiver", s.receiver.Name, "kind", s.receiver.Kind, "tries", s.tries,
				"err", err)
		}
	case s.tries > 0 && sent > 0:
		s.e.o.Log.Info("alerts are delivered again", "receiver", s.receiver.Name, "tries", s.tries)
		s.tries = 0
	}
}

// deliver sends what waits. It returns how many messages the receiver took, and how long to pause.
func (s *sender) deliver(ctx context.Context) (sent int, pause time.Duration, err error) {
	list, err := s.e.o.Store.Waiting(ctx, s.receiver.ID, sendBatch)
	if err != nil {
		return 0, minRetry, err
	}
	for i := range list {
		pause = s.wait/2 + rand.N(s.wait/2+1)
		took, err := s.one(ctx, &list[i], pause)
		if err != nil {
			s.wait = min(2*s.wait, maxRetry)
			return sent, pause, err
		}
		if took {
			sent++
		}
		s.wait = minRetry
		s.next.Store(0)
	}
	if len(list) == sendBatch {
		return sent, 0, nil
	}
	return sent, sendIdle, nil
}

// one delivers one message, and reports whether the receiver took it. An error means that the receiver fails; a message that only it rejects does not stop those
// behind it.
func (s *sender) one(ctx context.Context, n *record.Notification, pause time.Duration) (took bool, err error) {
	// Read it, and leave out what the owner of the subscription may not see now.
	var m Message
	if err := json.Unmarshal(n.Body, &m); err != nil {
		return false, s.bury(ctx, n, fmt.Errorf("cannot decode the message: %w", err))
	}
	seen, err := s.e.withRights(ctx, &m, &s.receiver)
	if err != nil {
		return false, err
	}
	if !seen {
		s.e.count(&s.receiver, "withheld")
		return false, s.e.o.Store.Delivered(ctx, n.ID)
	}

	// Send it.
	if err := lease.Check(ctx); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err = s.sink.Send(limited, &m)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil {
		s.e.count(&s.receiver, "sent")
		return true, s.e.o.Store.Delivered(ctx, n.ID)
	}

	// Try it again later.
	s.e.count(&s.receiver, "failed")
	var no rejected
	bad := errors.As(err, &no)
	n.Tries++
	if s.e.o.Now().Sub(n.Created) > maxAge || bad && n.Tries >= maxRejected {
		return false, s.bury(ctx, n, err)
	}
	n.Error, n.Next = clean(err.Error(), maxText), s.e.o.Now().Add(pause)
	if stored := s.e.o.Store.Undelivered(ctx, n); stored != nil {
		return false, stored
	}
	s.next.Store(n.Next.UnixMilli())
	return false, err
}

// bury makes a message a dead letter.
func (s *sender) bury(ctx context.Context, n *record.Notification, err error) error {
	n.Dead, n.Error = true, clean(err.Error(), maxText)
	s.e.count(&s.receiver, "dead")
	s.e.o.Log.Error("a message of alerts could not be delivered: it is a dead letter", "receiver", s.receiver.Name, "message", n.ID,
		"err", err)
	return s.e.o.Store.Undelivered(ctx, n)
}

// repeat sends what fires to a receiver that forgets it otherwise.
func (s *sender) repeat(ctx context.Context) {
	if s.receiver.Kind != record.ReceiverAlertmanager {
		return
	}
	subs, err := s.e.o.Store.Subscriptions(ctx)
	if err != nil {
		return
	}

	var list []Message
	for i := range subs {
		if !contains(subs[i].Receivers, s.receiver.ID) {
			continue
		}
		s.e.mu.Lock()
		m := Message{Subscription: subs[i].ID, Name: subs[i].Name, Alerts: append([]record.Alert(nil), s.e.beat[subs[i].ID]...),
			At: s.e.o.Now()}
		s.e.mu.Unlock()
		if seen, err := s.e.withRights(ctx, &m, &s.receiver); err == nil && seen {
			list = append(list, m)
		}
	}
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := s.sink.Repeat(limited, list); err != nil && ctx.Err() == nil {
		s.e.o.Log.Warn("cannot repeat alerts that fire", "receiver", s.receiver.Name, "err", err)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// withRights leaves in a message what its subscription chooses and its owner may see at this moment, and reports whether
// anything is left. A receiver that is not shared is for admins of everything.
func (e *Engine) withRights(ctx context.Context, m *Message, r *record.Receiver) (bool, error) {
	if m.Test {
		return true, nil
	}
	subs, err := e.o.Store.Subscriptions(ctx)
	if err != nil {
		return false, err
	}
	for i := range subs {
		if subs[i].ID != m.Subscription {
			continue
		}
		owner := subs[i].Owner
		owner.Rights = e.o.Rights(owner)
		if owner.Rights == nil || !r.Shared && !owner.Rights.All() || !contains(subs[i].Receivers, r.ID) {
			return false, nil
		}
		sight := e.o.Plane.Sight(owner.Rights)
		m.only(func(a *record.Alert) bool { return fits(&subs[i].SubscriptionSpec, a) && maySee(owner, a, sight) })
		return len(m.Alerts) > 0, nil
	}
	return false, nil
}

func (e *Engine) count(r *record.Receiver, result string) {
	if e.o.Metrics != nil {
		e.o.Metrics.Notified(string(r.Kind), result)
	}
}

// broken is the sink of a receiver that cannot be opened.
type broken struct{ err error }

func (b broken) Send(context.Context, *Message) error { return b.err }

func (b broken) Repeat(context.Context, []Message) error { return nil }

func (b broken) Close() {}

// open makes the sink of a receiver.
func (e *Engine) open(r *record.Receiver) (sink, error) {
	switch r.Kind {
	case record.ReceiverWebhook:
		return newWebhook(e, r)
	case record.ReceiverAlertmanager:
		return newAlertmanager(e, r)
	case record.ReceiverMail:
		return newMail(e, r)
	case record.ReceiverCommand:
		return e.commands.open(r)
	case record.ReceiverWeCom, record.ReceiverDingTalk, record.ReceiverFeishu, record.ReceiverSlack:
		return newRobot(e, r)
	}
	return nil, gozzard.Errorf(gozzard.ErrInvalid, "there is no kind of receivers %s", strconv.Quote(string(r.Kind)))
}

// allKinds are the kinds of receivers.
func allKinds() []record.ReceiverKind {
	return []record.ReceiverKind{record.ReceiverWebhook, record.ReceiverAlertmanager, record.ReceiverMail, record.ReceiverCommand,
		record.ReceiverWeCom, record.ReceiverDingTalk, record.ReceiverFeishu, record.ReceiverSlack}
}
