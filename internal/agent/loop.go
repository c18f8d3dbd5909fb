package agent

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	helloFirst  = 200 * time.Millisecond
	helloLast   = 5 * time.Second
	retryAfter  = time.Second // of what found no room
	maxInbox    = 4096        // commands; the server repeats what matters
	minInterval = time.Second
	maxInterval = time.Hour
)

// agenda is what the loop will do when. Zero times are never.
type agenda struct {
	hello      time.Time
	helloTries int
	session    time.Time // not before: neither a full disk nor a server that greets without end makes the agent spin
	results    time.Time // not before: results leave in batches
	resend     time.Time
	round      time.Time // next full report
	roundTries int
	lastRound  uint64
	ackedFrom  uint64 // an acknowledgement of this round or a later one counts; 0: none is awaited
	interval   time.Duration
	ends       time.Time // next try to save ends
	events     time.Time // when events are told
	eventTries int
	welcomed   bool                  // to be told
	update     *gozzard.UpdateReport // to be told
}

// Receive takes in a command. It never blocks: the fabric calls it from its reader.
func (a *Agent) Receive(cmd *gozzard.Command) {
	if cmd == nil {
		return
	}

	now := a.o.Now()

	if cmd.Version > gozzard.ProtocolVersion {
		a.log.Warn("command of a newer protocol was refused", "version", cmd.Version, "known", gozzard.ProtocolVersion)
		return
	}

	// at once: the disk may be slow, the lease is not about the disk
	if cmd.Kind == gozzard.CommandAck && cmd.Beat > 0 {
		a.contact.answered(cmd.Session, cmd.Beat, now)
		if len(cmd.Acked) == 0 && cmd.AckRound == 0 && cmd.AckEvents == 0 {
			return
		}
	}

	// a lease that is over when a command arrives stays over, however long the command waits here
	a.contact.Leased(cmd.Session, now)
	a.inMu.Lock()

	if len(a.inbox) < maxInbox {
		a.inbox = append(a.inbox, cmd)
	} else {
		a.dropped++
	}

	a.inMu.Unlock()
	a.wake()
}

// Connected is called when the fabric has a connection, again and again if need be: each is a new session.
func (a *Agent) Connected() {
	a.contact.link(true)
	a.wake()
}

// Disconnected is called when the connection is gone.
func (a *Agent) Disconnected() {
	a.contact.link(false)
	a.wake()
}

// beats sends heartbeats. It touches neither the disk nor anything that waits for it.
func (a *Agent) beats(ctx context.Context, link Link) {
	t := time.NewTimer(a.o.Heartbeat)
	defer t.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-a.beatNow:
		case <-t.C:
		}
		// never later than asked, and a fleet not in step
		t.Reset(time.Duration(float64(a.o.Heartbeat) * (0.9 + 0.1*a.o.Rand())))
		session, beat := a.contact.nextBeat(a.o.Now())
		if beat == 0 {
			continue
		}
		r := a.frame(gozzard.ReportHeartbeat)
		r.Session, r.Beat = session, beat
		if err := link.Send(r); err != nil {
			a.log.Debug("heartbeat did not leave", "error", err)
		}
	}
}

// loop does everything else, one thing after the other.
func (a *Agent) loop(ctx context.Context, link Link) error {
	a.plan.interval = a.o.Interval
	t := time.NewTimer(0)
	defer t.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.failed:
			return err
		case <-a.kick:
		case <-t.C:
		}
		next := a.step(link)
		if next.IsZero() {
			t.Stop()
			continue
		}
		t.Reset(max(0, next.Sub(a.o.Now())))
	}
}

// step does what is due and returns when the next thing will be.
func (a *Agent) step(link Link) time.Time {
	a.obey()
	p := &a.plan
	if p.welcomed && a.o.Welcomed != nil {
		a.o.Welcomed()
	}

	p.welcomed = false
	now := a.o.Now()
	var wait waiting
	v := a.contact.view(now)
	if v.wanted && !p.session.After(now) {
		a.openSession(v.floor)
		v = a.contact.view(now)
	}

	if v.wanted {
		wait.until(p.session)
	}

	if v.connected && !v.wanted && !v.ready {
		if !p.hello.After(now) {
			a.sendHello(link)
			p.hello = now.Add(a.jitter(min(helloFirst<<min(p.helloTries, 8), helloLast)))
			p.helloTries++
		}
		wait.until(p.hello)
	}

	if !p.ends.After(now) {
		p.ends = time.Time{}
		if a.saveEnds() {
			p.ends = now.Add(retryAfter)
		}
	}

	wait.until(p.ends)
	a.saveEvents()

	if v.ready {
		wait.until(v.leaseEnds)
		a.report(link, now, &wait)
		a.sendUpdate(link)
	}

	a.compact()
	return wait.at
}

// report does what is due on the way up while the session is open.
func (a *Agent) report(link Link, now time.Time, wait *waiting) {
	p := &a.plan
	if !p.resend.After(now) {
		p.resend = now.Add(resendLook)
		if a.repeat(now) == 0 {
			p.resend = time.Time{}
		}
	}

	if a.anyFresh() {
		if p.results.After(now) {
			wait.until(p.results)
		} else {
			a.sendResults(link, now)
			p.results = now.Add(batchResults)
			p.resend = now.Add(resendLook)
		}
	}

	wait.until(p.resend)

	if !p.round.After(now) {
		p.lastRound++
		if p.ackedFrom == 0 {
			p.ackedFrom, p.roundTries = p.lastRound, 0
		}
		a.sendRound(link, p.lastRound)
		p.round = now.Add(a.jitter(min(roundFirst<<min(p.roundTries, 8), p.interval)))
		p.roundTries++
	}

	wait.until(p.round)

	if due := a.changesDue(); !due.IsZero() {
		if due.After(now) {
			wait.until(due)
		} else {
			a.sendChanges(link)
		}
	}

	a.reportEvents(link, now, wait)
}

func (a *Agent) anyFresh() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.fresh) > 0
}

// obey handles the commands that have arrived.
func (a *Agent) obey() {
	a.inMu.Lock()
	inbox, dropped := a.inbox, a.dropped
	a.inbox, a.dropped = nil, 0
	a.inMu.Unlock()

	if dropped > 0 {
		a.log.Warn("commands were dropped: too many at once", "commands", dropped)
	}

	for _, cmd := range inbox {
		switch cmd.Kind {
		case gozzard.CommandWelcome:
			a.welcome(cmd)
		case gozzard.CommandGreet:
			a.greet(cmd)
		case gozzard.CommandOperate:
			a.operate(cmd)
		case gozzard.CommandCancel:
			a.cancel(cmd)
		case gozzard.CommandAck:
			a.roundAcked(cmd)
			a.eventsAcked(cmd)
		case gozzard.CommandGroups:
			a.setGroups(cmd)
		case gozzard.CommandLogs:
			a.askLogs(cmd)
		case gozzard.CommandUpdate:
			a.update(cmd)
		default:
			a.log.Warn("command of unknown kind was ignored", "kind", cmd.Kind)
		}
		a.acked(cmd)
	}
}

// openSession makes the next session durable; HELLO tells it afterwards.
func (a *Agent) openSession(floor uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.plan
	now := a.o.Now()
	base := a.state.base

	if a.state.welcomed {
		base = a.journal.Synced()
	}

	session := max(a.state.session, floor) + 1
	if _, err := a.write(true, recordSession, &entry{Session: session, Base: base}); err != nil {
		a.log.Error("cannot open a session", "error", err)
		p.session = now.Add(retryAfter)
		return
	}

	a.contact.open(session, base)
	clear(a.buried)

	for _, op := range a.fresh { // HELLO tells them
		op.fresh = false
	}

	a.fresh = nil
	p.session, p.hello, p.helloTries = now.Add(helloFirst), now, 0
}

// welcome opens the session for operations and reports. The record about it is not waited for: until it is durable
// the old position is told. It must answer the HELLO of this very run: an agent that lost its state counts its
// sessions anew, and whoever kept the Welcome and the operations of its earlier life could play them again.
func (a *Agent) welcome(cmd *gozzard.Command) {
	now := a.o.Now()
	if !a.contact.answerable(cmd.Session, now) {
		return
	}
	if cmd.Beat != a.run {
		a.log.Warn("welcome was refused: it answers another run of this agent", "session", cmd.Session)
		return
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.plan

	if cmd.Interval > 0 {
		p.interval = min(max(cmd.Interval, minInterval), maxInterval)
	}
	if a.state.welcomed {
		return
	}

	lsn, err := a.write(true, recordWelcome, &entry{Session: cmd.Session})
	if err != nil {
		a.log.Warn("welcome was not recorded", "error", err)
		return // HELLO is repeated
	}

	a.contact.welcome(cmd.Session, lsn, now)
	nudge(a.beatNow) // the lease counts from HELLO, which may have waited long for its answer

	for _, op := range a.state.ops {
		op.tries, op.due = 0, now.Add(resendWelcome)
	}

	p.resend = now.Add(resendWelcome)
	p.round, p.ackedFrom = now, 0
	p.events, p.eventTries = time.Time{}, 0
	p.welcomed = true
	a.log.Info("session is open", "session", cmd.Session)
}

// greet: the server does not know the session.
func (a *Agent) greet(cmd *gozzard.Command) {
	if a.contact.greeted(cmd.Session) {
		a.log.Info("server asks for a new session", "session", cmd.Session)
	}
}

// roundAcked: everything that was told arrived.
func (a *Agent) roundAcked(cmd *gozzard.Command) {
	p := &a.plan
	if cmd.AckRound == 0 || p.ackedFrom == 0 || cmd.AckRound < p.ackedFrom || cmd.AckRound > p.lastRound ||
		!a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	p.ackedFrom = 0
	p.round = a.o.Now().Add(a.jitter(p.interval))
}

// compact makes the journal short again. Others wait meanwhile, heartbeats do not.
func (a *Agent) compact() {
	if !a.journal.WantsCompact() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.journal.Compact(a.state.snapshot()); err != nil {
		a.log.Warn("journal was not compacted", "error", err)
	}
}

// waiting finds the next of several times.
type waiting struct{ at time.Time }

func (w *waiting) until(t time.Time) {
	if !t.IsZero() && (w.at.IsZero() || t.Before(w.at)) {
		w.at = t
	}
}
