package agent

import (
	"time"

	"github.com/gozzard/gozzard"
)

// Bounds of one report, well below what the fabric carries.
const (
	maxStatuses    = 400
	maxResults     = 500
	maxReportBytes = 400 << 10
)

// Waiting times of the way up.
const (
	batchResults  = 3 * time.Millisecond  // results that end together leave together; the first does not wait
	batchStatus   = 30 * time.Millisecond // one change is seldom alone
	resendFirst   = time.Second
	resendLast    = 5 * time.Second
	resendLook    = 250 * time.Millisecond
	resendWelcome = 500 * time.Millisecond // HELLO told them: acknowledgements are on their way
	roundFirst    = 2 * time.Second
)

// tell puts an operation into the next report of results. a.mu is held.
func (a *Agent) tell(op *operation) {
	if op.fresh {
		return
	}
	op.fresh = true
	a.fresh = append(a.fresh, op)
	a.wake()
}

// frame is a report without content.
func (a *Agent) frame(kind gozzard.ReportKind) *gozzard.Report {
	session, lsn := a.contact.position(a.journal.Synced())
	return &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: kind, Session: session,
		Journal: gozzard.JournalPos{ID: a.journal.ID(), LSN: lsn}}
}

// sendResults tells what is fresh, then what is due to be repeated.
func (a *Agent) sendResults(link Link, now time.Time) {
	for {
		a.mu.Lock()
		results, keys, lsn := a.takeResults(now)
		a.mu.Unlock()
		if len(results) == 0 {
			return
		}
		if a.journal.Sync(lsn) != nil { // told by fatal
			return
		}
		r := a.frame(gozzard.ReportResults)
		r.Results = results
		r.Statuses = a.statusesOf(keys)
		if err := link.Send(r); err != nil {
			a.log.Debug("results did not leave", "error", err)
			return // they are repeated
		}
	}
}

// statusesOf gives the present statuses of processes whose verdicts are told: they travel together, so that whoever
// reads a verdict finds a status that agrees with it.
func (a *Agent) statusesOf(keys []gozzard.Key) (rows []gozzard.Status) {
	for _, k := range keys {
		if st, ok := a.sup.Status(k); ok {
			rows = append(rows, st)
		}
	}
	return rows
}

// takeResults fills one report and plans the repeats. a.mu is held.
func (a *Agent) takeResults(now time.Time) (results []gozzard.OpReport, keys []gozzard.Key, lsn uint64) {
	size, n := 0, 0
	for _, op := range a.fresh {
		if len(results) >= maxResults || size > maxReportBytes {
			break
		}
		n++
		op.fresh = false
		if a.state.ops[op.id] != op { // acknowledged meanwhile
			continue
		}
		results = append(results, op.report())
		size += reportSize(op)
		lsn = max(lsn, op.lsn)
		if op.settled() {
			if op.tries == 0 && !op.action.ReadOnly() {
				keys = append(keys, op.key)
			}
			op.due = now.Add(a.jitter(min(resendFirst<<min(op.tries, 8), resendLast)))
			op.tries++
		}
	}

	if a.fresh = a.fresh[n:]; len(a.fresh) == 0 {
		a.fresh = nil
	}

	return results, keys, lsn
}

// repeat makes verdicts fresh again whose acknowledgement did not come. It returns how many wait for one.
func (a *Agent) repeat(now time.Time) (waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, op := range a.state.ops {
		if !op.settled() {
			continue
		}
		waiting++
		if !op.fresh && !op.due.After(now) {
			a.tell(op)
		}
	}
	return waiting
}

func reportSize(op *operation) int { return 512 + len(op.outcome.Message) }

// openOps is the list of HELLO: complete, or absence would prove nothing. Verdicts that do not fit are told as
// begun, "will report", and follow as results. a.mu is held.
func (a *Agent) openOps() (open []gozzard.OpReport) {
	size := 0
	open = make([]gozzard.OpReport, 0, len(a.state.ops))
	for _, op := range a.state.ops {
		r := op.report()
		if size += reportSize(op); op.settled() && size > maxReportBytes {
			r.Phase, r.Outcome = gozzard.PhaseBegun, gozzard.Outcome{}
		}
		open = append(open, r)
	}
	return open
}

// sendHello tells the session. The journal is synced first: the session and every phase in the list are durable.
func (a *Agent) sendHello(link Link) {
	a.mu.Lock()
	session := a.state.session
	open := a.openOps()
	lsn := a.journal.Written()
	a.mu.Unlock()

	if a.journal.Sync(lsn) != nil || !a.contact.helloLeaves(session, a.o.Now()) {
		return
	}

	r := a.frame(gozzard.ReportHello)
	r.Hello = &gozzard.Hello{Run: a.run, Host: a.info, Open: open}
	if err := link.Send(r); err != nil {
		a.log.Debug("hello did not leave", "error", err)
	}
}

// mark notes that a process changed. What it is now is read when the report is made, so that a host nobody listens
// to keeps only names.
func (a *Agent) mark(key gozzard.Key) {
	a.statusMu.Lock()
	if len(a.changed) == 0 {
		a.since = a.o.Now()
	}
	a.changed[key] = struct{}{}
	a.statusMu.Unlock()
	a.wake()
}

// takeChanged empties the set of changes.
func (a *Agent) takeChanged() map[gozzard.Key]struct{} {
	a.statusMu.Lock()
	defer a.statusMu.Unlock()
	changed := a.changed
	a.changed, a.since = map[gozzard.Key]struct{}{}, time.Time{}
	return changed
}

// changesDue is when changes are to be told, zero when there are none.
func (a *Agent) changesDue() time.Time {
	a.statusMu.Lock()
	defer a.statusMu.Unlock()
	if len(a.changed) == 0 {
		return time.Time{}
	}
	return a.since.Add(batchStatus)
}

// sendChanges tells what changed. It is soft state: what is lost is corrected by the next full report.
func (a *Agent) sendChanges(link Link) {
	r := a.frame(gozzard.ReportStatus)
	send := func() {
		if err := link.Send(r); err != nil {
			a.log.Debug("status did not leave", "error", err)
		}
		r = a.frame(gozzard.ReportStatus)
	}

	for key := range a.takeChanged() {
		if st, ok := a.sup.Status(key); ok {
			r.Statuses = append(r.Statuses, st)
		} else {
			r.Removed = append(r.Removed, key)
		}
		if len(r.Statuses)+len(r.Removed) >= maxStatuses {
			send()
		}
	}

	if len(r.Statuses)+len(r.Removed) > 0 {
		send()
	}
}

// sendRound tells everything, in parts; the round counts when all of them arrived.
func (a *Agent) sendRound(link Link, round uint64) {
	a.takeChanged() // before they are read: what changes from now on is told again
	all := a.sup.Statuses()
	parts := max(1, (len(all)+maxStatuses-1)/maxStatuses)
	for i := range parts {
		r := a.frame(gozzard.ReportStatus)
		r.Round, r.Part, r.Parts = round, uint32(i), uint32(parts)
		r.Statuses = all[i*maxStatuses : min(len(all), (i+1)*maxStatuses)]
		if err := link.Send(r); err != nil {
			a.log.Debug("full report did not leave", "error", err)
			return
		}
	}
}

// jitter spreads a waiting time over 75 to 125 percent, so that a fleet does not march in step.
func (a *Agent) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(float64(d)/2*a.o.Rand())
}
