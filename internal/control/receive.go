package control

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const helloWorkers = 8

// hello is a HELLO waiting for a worker: it needs the record, and the fabric must not wait for that.
type hello struct {
	from   gozzard.AgentID
	cloud  int
	report *gozzard.Report
}

// Receive takes a report in. from and cloud are what the fabric proved; it calls Receive in order for one agent.
func (p *Plane) Receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	switch r.Kind {
	case gozzard.ReportHello:
		if r.Hello == nil {
			p.refuse("hello_empty", from)
			return
		}
		if claimed := r.Hello.Host.Agent; claimed != "" && claimed != from {
			p.forged("hello_agent", from)
			return
		}
		if rule := p.door.refuses(from, p.o.Now()); rule != "" { // the agent says it again
			p.refuse(rule, from)
			return
		}
		select {
		case p.hellos <- hello{from, cloud, r}:
		default: // the agent says it again
		}
	case gozzard.ReportResults:
		if p.heard(from, cloud, r.Session) {
			p.receiveResults(from, cloud, r)
		}
	case gozzard.ReportStatus:
		if p.heard(from, cloud, r.Session) {
			p.receiveStatus(from, cloud, r)
		}
	case gozzard.ReportHeartbeat:
		if p.heard(from, cloud, r.Session) {
			p.tell(from, cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck,
				Session: r.Session, Beat: r.Beat})
		}
	case gozzard.ReportEvents:
		if p.heard(from, cloud, r.Session) {
			p.receiveEvents(from, cloud, r)
		}
	case gozzard.ReportLogs:
		if p.heard(from, cloud, r.Session) {
			p.receiveLogs(from, r)
		}
	case gozzard.ReportUpdate:
		if p.heard(from, cloud, r.Session) {
			p.receiveUpdate(from, r)
		}
	default:
		p.refuse("report_kind", from)
	}
}

// heard renews the lease of a session. A session this server does not know is asked to say HELLO.
func (p *Plane) heard(from gozzard.AgentID, cloud int, id uint64) bool {
	now := p.o.Now()
	p.mu.Lock()
	s := p.sessions[from]
	if s == nil || s.id < id {
		p.mu.Unlock()
		p.tell(from, cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGreet, Session: id})
		return false
	}

	if s.id > id { // something of an older session that was under way
		p.mu.Unlock()
		p.refuse("old_session", from)
		return false
	}

	s.heard = now
	back := !s.online
	s.online = true
	p.mu.Unlock()

	if back {
		p.o.Live.SetOnline(from, true, now)
	} else {
		p.o.Live.Touch(from, now)
	}

	return true
}

func (p *Plane) refuse(rule string, from gozzard.AgentID) {
	p.o.Log.Debug("report refused", "agent", from, "rule", rule)
	if p.o.Observe.Refused != nil {
		p.o.Observe.Refused(rule)
	}
}

// leftOut counts processes that the live index does not take in.
func (p *Plane) leftOut(from gozzard.AgentID, tooMany, badKeys int) {
	if tooMany > 0 {
		p.refuse("too_many_processes", from)
	}
	if badKeys > 0 {
		p.refuse("process_name", from)
	}
}

// forged refuses what an agent has no business to say: it speaks for another one. Said ever more rarely, as a log
// must not grow because somebody wants it to.
func (p *Plane) forged(rule string, from gozzard.AgentID) {
	p.refuse(rule, from)
	if n := p.forgeries.Add(1); n&(n-1) == 0 {
		p.o.Log.Warn("agent speaks for another agent and is not believed", "agent", from, "rule", rule, "forgeries", n)
	}
}

func (p *Plane) receiveStatus(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if r.Round == 0 {
		p.o.Live.Apply(from, r.Statuses, r.Removed)
		return
	}
	if p.o.Live.Full(from, r.Round, r.Part, r.Parts, r.Statuses) {
		p.speaks(from, r)
		p.tell(from, cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck,
			Session: r.Session, AckRound: r.Round})
	}
}

func (p *Plane) receiveResults(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	p.o.Live.Apply(from, r.Statuses, nil) // before the verdicts: whoever reads those finds a status that agrees

	for i := range r.Results {
		res := &r.Results[i]
		s, final := p.fold(from, res, r.Journal)
		if final {
			s.cloud, s.session = cloud, r.Session
			select {
			case p.settles <- s:
			case <-p.quit:
				return
			}
		}
	}
}

// fold turns an agent's word about an operation into a row for the record. What decides nothing only tells that the
// agent has it.
func (p *Plane) fold(from gozzard.AgentID, res *gozzard.OpReport, pos gozzard.JournalPos) (settle, bool) {
	p.mu.Lock()
	f := p.flights[res.ID]
	ref, action, key := res.Ref, gozzard.ActionNone, gozzard.Key{}

	if f != nil {
		if f.agent != from {
			p.mu.Unlock()
			p.forged("foreign_operation", from)
			return settle{}, false
		}
		ref, action, key = f.ref, f.op.Action, f.op.Key
		f.begun = true
		p.leaveWindow(f)
	}

	p.mu.Unlock()
	state, final := gozzard.Finalise(res.Phase, res.Outcome.Code)
	if !final {
		return settle{}, false
	}

	out := describe(res)
	row := record.Settlement{Ref: ref, Op: res.ID, Agent: from, To: state, Outcome: out, Journal: &pos}

	if key != (gozzard.Key{}) {
		row.Process = p.processChange(from, key, action, out)
	}

	return settle{row: row, action: action, key: key}, true
}

// describe completes the outcome of phases that carry none.
func describe(res *gozzard.OpReport) gozzard.Outcome {
	out := res.Outcome
	switch {
	case res.Phase == gozzard.PhaseInterrupted:
		out.Code = gozzard.CodeInterrupted
		out.Message = "interrupted: the agent or its host went down in the middle; it was done at most once and is not repeated by itself"
	case res.Phase == gozzard.PhaseNever && (out.Code == "" || out.Code == gozzard.CodeOK):
		out.Code = gozzard.CodeExpired
		out.Message = "not executed: its time was over before the host could begin"
	}
	return out
}

// await blocks until a task in memory has no open attempt, or ctx ends.
func (p *Plane) await(ctx context.Context, seq gozzard.TaskSeq) {
	p.mu.Lock()
	t := p.tasks[seq]
	p.mu.Unlock()
	if t == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-t.done:
	}
}
