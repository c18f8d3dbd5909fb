package agent

import (
	"time"

	"github.com/gozzard/gozzard"
)

// openSession writes the next session to the journal. HELLO makes it durable and announces it.
func (a *Agent) openSession(floor uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()

	// Write it to the journal.
	p := &a.plan
	now := a.o.Now()
	base := a.state.base
	if a.state.welcomed {
		base = a.journal.Synced()
	}
	session := max(a.state.session, floor) + 1
	if _, err := a.keep(true, recordSession, &entry{Session: session, Base: base, Agent: a.info.Agent}); err != nil {
		a.log.Error("cannot open a session", "err", err)
		p.session = now.Add(retryAfter)
		return
	}

	// Begin it. HELLO lists all operations, so no result must be sent separately.
	a.contact.open(session, base)
	a.announced = a.journal.ID()
	clear(a.tombstones)
	for _, op := range a.toSend {
		op.toSend = false
	}
	a.toSend = nil
	p.session, p.hello, p.helloTries = now.Add(helloFirst), now, 0
}

// handleWelcome opens the session for operations and reports. It does not wait until the record of it is durable:
// until then, reports carry the old position.
//
// A Welcome must answer the HELLO of this run of the agent. An agent that lost its state counts its sessions from the
// beginning. Without the check, an attacker could replay the Welcome and the operations of an earlier life of the
// agent.
func (a *Agent) handleWelcome(cmd *gozzard.Command) {
	// Reject what does not answer our HELLO.
	now := a.o.Now()
	if !a.contact.mayWelcome(cmd.Session, now) {
		return
	}
	if cmd.Beat != a.run {
		a.log.Warn("rejected a welcome: it answers another run of this agent", "session", cmd.Session)
		return
	}
	defer a.learnServers(cmd)

	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.plan

	// Take the interval of full reports from it.
	if cmd.Interval > 0 {
		p.interval = min(max(cmd.Interval, minInterval), maxInterval)
	}
	if a.state.welcomed {
		return
	}

	// Record it. If that fails, HELLO is repeated.
	lsn, err := a.keep(true, recordWelcome, &entry{Session: cmd.Session})
	if err != nil {
		a.log.Warn("cannot record a welcome", "err", err)
		return
	}

	// Open the session. The lease counts from HELLO, so ask for a heartbeat at once in case the answer took long.
	a.contact.welcome(cmd.Session, lsn, now)
	signal(a.beatNow)

	// Plan the first reports.
	for _, op := range a.state.ops {
		op.tries, op.due = 0, now.Add(resendWelcome)
	}

	p.resend = now.Add(resendWelcome)
	p.round, p.ackedFrom = now, 0
	p.events, p.eventTries = time.Time{}, 0
	p.welcomed = true
	a.log.Info("session is open", "session", cmd.Session)
}

// handleGreet handles a server that does not know the session.
func (a *Agent) handleGreet(cmd *gozzard.Command) {
	if a.contact.requestSession(cmd.Session) {
		a.log.Info("server asks for a new session", "session", cmd.Session)
	}
}

// openOps lists all operations for HELLO. The list must be complete, because the server concludes that an operation
// that is absent never arrived. Verdicts that do not fit are listed as begun and follow as results. The caller holds
// a.mu.
func (a *Agent) openOps() (open []gozzard.OpReport) {
	size := 0
	open = make([]gozzard.OpReport, 0, len(a.state.ops))
	for _, op := range a.state.ops {
		r := a.opReport(op)
		if size += reportSize(op); op.hasVerdict() && size > maxReportBytes {
			r.Phase, r.Outcome = gozzard.PhaseBegun, gozzard.Outcome{}
		}
		open = append(open, r)
	}
	return open
}

// newestGen is the newest generation of all processes. The server gives new operations newer ones. The caller holds a.mu.
func (a *Agent) newestGen() (newest uint64) {
	for _, gen := range a.state.gens {
		newest = max(newest, gen)
	}
	for _, gen := range a.queuedGens {
		newest = max(newest, gen)
	}
	return newest
}

// sendHello announces the session. It syncs the journal first, so the session and every phase in the list are durable.
func (a *Agent) sendHello(link Link) {
	a.mu.Lock()
	session := a.state.session
	open := a.openOps()
	newest := a.newestGen()
	lsn := a.journal.Written()
	a.mu.Unlock()

	if a.sync(lsn) != nil || !a.contact.beginHello(session, a.o.Now()) {
		return
	}

	r := a.newReport(gozzard.ReportHello)
	r.Hello = &gozzard.Hello{Run: a.run, Host: a.hostInfo(), Open: open, Kept: a.journal.Detached(), NewestGen: newest}
	if err := link.Send(r); err != nil {
		a.log.Debug("cannot send hello", "err", err)
		return
	}
	if a.o.Described != nil {
		a.o.Described(r.Hello.Host.PolicyDigest)
	}
}

// handleServers handles a change of the servers. A command of another session may be old.
func (a *Agent) handleServers(cmd *gozzard.Command) {
	if a.contact.Leased(cmd.Session, a.o.Now()) {
		a.learnServers(cmd)
	}
}

// learnServers passes on which servers this agent may use.
func (a *Agent) learnServers(cmd *gozzard.Command) {
	if len(cmd.Servers) > 0 && a.o.Servers != nil {
		a.o.Servers(cmd.Servers)
	}
}
