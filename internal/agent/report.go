package agent

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
)

// Limits of one report, well below the largest message of the fabric.
const (
	maxStatuses    = 400
	maxResults     = 500
	maxReportBytes = 400 << 10
)

// How long reports wait.
const (
	batchResults  = 3 * time.Millisecond  // results that end together are sent together; the first does not wait
	batchStatus   = 30 * time.Millisecond // changes that happen together are sent together
	eventsFirst   = time.Second
	eventsLast    = 5 * time.Second
	resendLook    = 250 * time.Millisecond
	resendWelcome = 500 * time.Millisecond // HELLO lists the verdicts, so the server is about to acknowledge them
	roundFirst    = 2 * time.Second
)

// resendLimits bound the pause before a verdict is sent again. In between the pause follows the time that the server
// takes to acknowledge: repeats to a server that has too much to do would only give it more to do.
var resendLimits = pace.Limits{Least: time.Second, Most: 15 * time.Second}

// queueResult adds an operation to the next report of results. The caller holds a.mu.
func (a *Agent) queueResult(op *operation) {
	if op.toSend {
		return
	}
	op.toSend = true
	a.toSend = append(a.toSend, op)
	a.wake()
}

// newReport makes a report without content.
func (a *Agent) newReport(kind gozzard.ReportKind) *gozzard.Report {
	session, lsn := a.contact.position(a.journal.Synced())
	return &gozzard.Report{
		Version: gozzard.ProtocolVersion, Kind: kind, Session: session,
		Journal: gozzard.JournalPos{ID: a.journal.ID(), LSN: lsn},
	}
}

// sendResults sends the results that are queued.
func (a *Agent) sendResults(link Link, now time.Time) {
	for {
		a.mu.Lock()
		results, keys, lsn := a.nextResults(now)
		a.mu.Unlock()
		if len(results) == 0 {
			return
		}

		if a.sync(lsn) != nil { // the journal reports the error through fatal
			return
		}

		r := a.newReport(gozzard.ReportResults)
		r.Results = results
		r.Statuses = a.statusesOf(keys)
		if err := link.Send(r); err != nil {
			a.log.Debug("cannot send results", "err", err)
			return // they are repeated
		}
	}
}

// statusesOf returns the present statuses of the processes in a report of verdicts. They are sent together, so that a
// reader of a verdict finds a status that agrees with it.
func (a *Agent) statusesOf(keys []gozzard.Key) (rows []gozzard.Status) {
	for _, k := range keys {
		if st, ok := a.sup.Status(k); ok {
			rows = append(rows, a.withFault(st))
		}
	}
	return rows
}

// nextResults removes the results of one report from the queue and plans when they are repeated. The caller holds
// a.mu.
func (a *Agent) nextResults(now time.Time) (results []gozzard.OpReport, keys []gozzard.Key, lsn uint64) {
	size, n := 0, 0
	for _, op := range a.toSend {
		if len(results) >= maxResults || size > maxReportBytes {
			break
		}
		n++
		op.toSend = false
		if a.state.ops[op.id] != op { // acknowledged meanwhile
			continue
		}

		r := a.opReport(op)
		if !op.arrived.IsZero() {
			r.Held = max(now.Sub(op.arrived), 1)
		}
		op.addTimes(&r)
		results = append(results, r)
		size += reportSize(op)
		lsn = max(lsn, op.lsn)

		if op.hasVerdict() {
			if op.tries == 0 && !op.action.ReadOnly() {
				keys = append(keys, op.key)
			}
			a.planRepeat(op, now)
		}
	}

	if a.toSend = a.toSend[n:]; len(a.toSend) == 0 {
		a.toSend = nil
	}

	return results, keys, lsn
}

// planRepeat plans when a verdict that is sent now is sent again. The caller holds a.mu.
func (a *Agent) planRepeat(op *operation, now time.Time) {
	switch {
	case op.tries == 0:
		op.sentAt = now
	case op.tries == 1 && !op.due.After(now): // else the server asked again
		a.acks.Overdue(op.sentAt, now)
	}
	op.tries++
	op.due = now.Add(a.acks.Pause(op.tries, resendLimits, a.o.Rand()))
}

// requeueUnacked queues verdicts again if their acknowledgement is overdue. It returns how many verdicts are not
// acknowledged.
func (a *Agent) requeueUnacked(now time.Time) (waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, op := range a.state.ops {
		if !op.hasVerdict() {
			continue
		}
		waiting++
		if !op.toSend && !op.due.After(now) {
			a.queueResult(op)
		}
	}
	return waiting
}

func reportSize(op *operation) int {
	size := 512 + len(op.outcome.Message)
	if op.outcome.Script != nil {
		for i := range op.outcome.Script.Steps {
			size += 256 + len(op.outcome.Script.Steps[i].Output) + len(op.outcome.Script.Steps[i].Message)
		}
	}
	return size
}

// markChanged records that a process has changed. The status is read when the report is made, so an agent without a
// server stores only the names.
func (a *Agent) markChanged(key gozzard.Key) {
	a.statusMu.Lock()
	if len(a.changed) == 0 {
		a.since = a.o.Now()
	}
	a.changed[key] = struct{}{}
	a.statusMu.Unlock()
	a.wake()
}

// claimChanged returns the set of changes and empties it.
func (a *Agent) claimChanged() map[gozzard.Key]struct{} {
	a.statusMu.Lock()
	defer a.statusMu.Unlock()
	changed := a.changed
	a.changed, a.since = map[gozzard.Key]struct{}{}, time.Time{}
	return changed
}

// changesDue is when changes must be sent. It is zero if there are none.
func (a *Agent) changesDue() time.Time {
	a.statusMu.Lock()
	defer a.statusMu.Unlock()
	if len(a.changed) == 0 {
		return time.Time{}
	}
	return a.since.Add(batchStatus)
}

// sendChanges sends the statuses that have changed. A lost report does no harm: the next full report corrects it.
func (a *Agent) sendChanges(link Link) {
	r := a.newReport(gozzard.ReportStatus)
	send := func() {
		if err := link.Send(r); err != nil {
			a.log.Debug("cannot send statuses", "err", err)
		}
		r = a.newReport(gozzard.ReportStatus)
	}

	for key := range a.claimChanged() {
		if st, ok := a.sup.Status(key); ok {
			r.Statuses = append(r.Statuses, a.withFault(st))
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

// sendRound sends all statuses, in parts. The server acknowledges the round when it has all parts.
func (a *Agent) sendRound(link Link, round uint64) {
	a.claimChanged() // before the statuses are read, so that a change from now on is sent again
	all := a.sup.Statuses()
	for i := range all {
		all[i] = a.withFault(all[i])
	}
	parts := max(1, (len(all)+maxStatuses-1)/maxStatuses)
	for i := range parts {
		r := a.newReport(gozzard.ReportStatus)
		r.Round, r.Part, r.Parts = round, uint32(i), uint32(parts)
		r.Statuses = all[i*maxStatuses : min(len(all), (i+1)*maxStatuses)]
		if i == parts-1 { // the server answers it, so it is a heartbeat too
			if session, beat := a.contact.nextBeat(a.o.Now()); session == r.Session {
				r.Beat = beat
			}
		}
		if err := link.Send(r); err != nil {
			a.log.Debug("cannot send a full report", "err", err)
			return
		}
	}
}

// jitter spreads a waiting time over 75 to 125 percent, so that the agents of a fleet do not act at the same moment.
func (a *Agent) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(float64(d)/2*a.o.Rand())
}
