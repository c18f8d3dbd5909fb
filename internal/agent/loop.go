package agent

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	helloFirst  = 200 * time.Millisecond
	helloLast   = 5 * time.Second
	retryAfter  = time.Second // when the disk was full
	maxInbox    = 4096        // commands; the server repeats what matters
	minInterval = time.Second
	maxInterval = time.Hour
)

// agenda is when the loop does what. A zero time means never.
type agenda struct {
	hello      time.Time
	helloTries int
	session    time.Time // not before this time: a full disk or repeated GREETs must not make the loop spin
	results    time.Time // not before this time: results are sent in batches
	resend     time.Time
	round      time.Time // the next full report
	roundTries int
	lastRound  uint64
	ackedFrom  uint64 // an acknowledgement of this round or a later one counts; 0 if none is awaited
	interval   time.Duration
	ends       time.Time // the next call of saveEnds
	look       time.Time // the next look at the state folder
	reportedID [16]byte  // the id of the journal when its fault was last made known
	events     time.Time // when events are sent
	eventTries int
	welcomed   bool                  // Options.Welcomed must be called
	update     *gozzard.UpdateReport // must be sent
}

// Receive accepts a command. It never blocks, because the fabric calls it from its reader.
func (a *Agent) Receive(cmd *gozzard.Command) {
	if cmd == nil {
		return
	}

	// Reject what this agent does not understand.
	now := a.o.Now()
	if cmd.Version > gozzard.ProtocolVersion {
		a.log.Warn("rejected a command of a newer protocol", "version", cmd.Version, "known", gozzard.ProtocolVersion)
		return
	}

	// Renew the lease here and not in the loop: the loop may wait for the disk.
	if cmd.Kind == gozzard.CommandAck && cmd.Beat > 0 {
		a.contact.renew(cmd.Session, cmd.Beat, cmd.NextBeat, now)
		if len(cmd.Acked) == 0 && cmd.AckRound == 0 && cmd.AckEvents == 0 && len(cmd.Servers) == 0 {
			return
		}
	}

	// End the session if the lease is over when the command arrives, however long the command waits here.
	a.contact.Leased(cmd.Session, now)

	// Queue the command for the loop.
	a.inMu.Lock()
	if len(a.inbox) < maxInbox {
		a.inbox = append(a.inbox, cmd)
	} else {
		a.dropped++
	}
	a.inMu.Unlock()
	a.wake()
}

// Introduce opens a new session, so that the server gets a new description of the host.
func (a *Agent) Introduce() {
	if a.contact.requestSession(0) {
		a.wake()
	}
}

// Connected is called whenever the fabric has a new connection. Each connection gets a new session.
func (a *Agent) Connected() {
	a.contact.setConnected(true)
	a.wake()
}

// Disconnected is called when the connection is lost.
func (a *Agent) Disconnected() {
	a.contact.setConnected(false)
	a.wake()
}

// The server takes a host for lost after 14 s of silence, and the session ends 15 s after the last heartbeat that was
// answered. While all is well there is a heartbeat in 10 s.
const (
	// beatAgain is how long the answer may take before another heartbeat is sent.
	beatAgain = 2 * time.Second

	// slowAnswer is how long the answer of a server takes that has much to do. Heartbeats then come sooner, so that there is
	// more time for their answers. Otherwise sessions would end, and new ones would give the server even more to do.
	slowAnswer = 500 * time.Millisecond
)

// sendHeartbeats sends heartbeats until ctx ends. It uses neither the disk nor anything that waits for the disk.
func (a *Agent) sendHeartbeats(ctx context.Context, link Link) {
	// The jitter keeps a fleet from acting at the same moment. It only shortens the time.
	every := func() time.Duration { return time.Duration(float64(a.o.Heartbeat) * (0.9 + 0.1*a.o.Rand())) }
	period := every()
	t := time.NewTimer(period)
	defer t.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-a.beatNow:
		case <-t.C:
			if wait := a.contact.untilBeat(period, a.o.Now()); wait > 0 {
				t.Reset(wait)
				continue
			}
		}

		period = every()
		session, beat := a.contact.nextBeat(a.o.Now())
		if beat == 0 {
			t.Reset(period)
			continue
		}

		t.Reset(min(period, beatAgain))
		r := a.newReport(gozzard.ReportHeartbeat)
		r.Session, r.Beat, r.Vitals = session, beat, a.vitals()
		if err := link.Send(r); err != nil {
			a.log.Debug("cannot send a heartbeat", "err", err)
		}
	}
}

// loop does everything else, one step after the other.
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
		case <-a.wakeLoop:
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

// step does what is due and returns when the next step is due.
func (a *Agent) step(link Link) time.Time {
	// Handle what has arrived.
	a.handleCommands()
	p := &a.plan
	if p.welcomed {
		if a.o.Welcomed != nil {
			a.o.Welcomed()
		}
		a.endTrial()
	}
	p.welcomed = false

	// Look at the state folder.
	now := a.o.Now()
	var wait earliest
	wait.include(a.watchState(now))

	// Open a session if one is needed.
	v := a.contact.view(now)
	if v.wanted && !p.session.After(now) {
		a.openSession(v.floor)
		v = a.contact.view(now)
	}
	if v.wanted {
		wait.include(p.session)
	}

	// Say HELLO until the server answers.
	if v.connected && !v.wanted && !v.ready {
		if !p.hello.After(now) {
			a.sendHello(link)
			p.hello = now.Add(a.jitter(min(helloFirst<<min(p.helloTries, 8), helloLast)))
			p.helloTries++
		}
		wait.include(p.hello)
	}

	// Write what is not in the journal yet.
	if !p.ends.After(now) {
		p.ends = time.Time{}
		if a.saveEnds() {
			p.ends = now.Add(retryAfter)
		}
	}
	wait.include(p.ends)
	a.saveEvents()

	// Report.
	if v.ready {
		wait.include(v.leaseEnds)
		a.report(link, now, &wait)
		a.sendUpdate(link)
	}

	a.compact()
	return wait.at
}

// report sends what is due while the session is open.
func (a *Agent) report(link Link, now time.Time, wait *earliest) {
	// Send results, and repeat those that were not acknowledged.
	p := &a.plan
	if !p.resend.After(now) {
		p.resend = now.Add(resendLook)
		if a.requeueUnacked(now) == 0 {
			p.resend = time.Time{}
		}
	}
	if a.anyToSend() {
		if p.results.After(now) {
			wait.include(p.results)
		} else {
			a.sendResults(link, now)
			p.results = now.Add(batchResults)
			p.resend = now.Add(resendLook)
		}
	}
	wait.include(p.resend)

	// Send all statuses at intervals.
	if !p.round.After(now) {
		p.lastRound++
		if p.ackedFrom == 0 {
			p.ackedFrom, p.roundTries = p.lastRound, 0
		}
		a.sendRound(link, p.lastRound)
		p.round = now.Add(a.jitter(min(roundFirst<<min(p.roundTries, 8), p.interval)))
		p.roundTries++
	}
	wait.include(p.round)

	// Send changes of statuses.
	if due := a.changesDue(); !due.IsZero() {
		if due.After(now) {
			wait.include(due)
		} else {
			a.sendChanges(link)
		}
	}

	// Send events.
	a.reportEvents(link, now, wait)
}

func (a *Agent) anyToSend() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.toSend) > 0
}

// handleCommands handles the commands that have arrived.
func (a *Agent) handleCommands() {
	a.inMu.Lock()
	inbox, dropped := a.inbox, a.dropped
	a.inbox, a.dropped = nil, 0
	a.inMu.Unlock()

	if dropped > 0 {
		a.log.Warn("dropped commands: too many at once", "commands", dropped)
	}

	for _, cmd := range inbox {
		switch cmd.Kind {
		case gozzard.CommandWelcome:
			a.handleWelcome(cmd)
		case gozzard.CommandGreet:
			a.handleGreet(cmd)
		case gozzard.CommandOperate:
			a.handleOperate(cmd)
		case gozzard.CommandCancel:
			a.handleCancel(cmd)
		case gozzard.CommandAck:
			a.handleRoundAck(cmd)
			a.handleEventAck(cmd)
			a.handleServers(cmd)
		case gozzard.CommandGroups:
			a.setGroups(cmd)
		case gozzard.CommandLogs:
			a.queueLogQuery(cmd)
		case gozzard.CommandHistory:
			a.queueHistoryQuery(cmd)
		case gozzard.CommandFile:
			a.queueFileQuery(cmd)
		case gozzard.CommandContent:
			a.takePart(cmd)
		case gozzard.CommandUpdate:
			a.handleUpdate(cmd)
		default:
			a.log.Warn("ignored a command of an unknown kind", "kind", cmd.Kind)
		}
		a.handleAck(cmd)
	}
}

// handleRoundAck handles the acknowledgement of a full report.
func (a *Agent) handleRoundAck(cmd *gozzard.Command) {
	p := &a.plan
	if cmd.AckRound == 0 || p.ackedFrom == 0 || cmd.AckRound < p.ackedFrom || cmd.AckRound > p.lastRound ||
		!a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	p.ackedFrom = 0
	p.round = a.o.Now().Add(a.jitter(p.interval))
	if cmd.Beat == 0 { // a server that does not take a full report for a heartbeat
		signal(a.beatNow)
	}
}

// compact shortens the journal. Operations wait meanwhile; heartbeats do not.
func (a *Agent) compact() {
	if !a.journal.WantsCompact() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.journal.Compact(a.state.snapshot(!a.trial)); err != nil {
		a.log.Warn("cannot compact the journal", "err", err)
	}
}

// earliest finds the earliest of several times.
type earliest struct{ at time.Time }

func (w *earliest) include(t time.Time) {
	if !t.IsZero() && (w.at.IsZero() || t.Before(w.at)) {
		w.at = t
	}
}
