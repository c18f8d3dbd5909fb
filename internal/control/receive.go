package control

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// Receive takes a report in. from and cloud are what the fabric proved; it calls Receive in order for one agent.
func (p *Plane) Receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	switch r.Kind {
	case gozzard.ReportHello:
		p.receiveHello(from, cloud, r)
		return
	case gozzard.ReportResults, gozzard.ReportStatus, gozzard.ReportHeartbeat, gozzard.ReportEvents,
		gozzard.ReportLogs, gozzard.ReportUpdate, gozzard.ReportHistory, gozzard.ReportFile, gozzard.ReportContent:
		if !p.heard(from, cloud, r.Session) {
			return
		}
	default:
		p.reject("report_kind", from)
		return
	}

	switch r.Kind {
	case gozzard.ReportResults:
		p.o.Live.Apply(from, r.Statuses, nil) // before the verdicts: a reader of those finds a status that agrees
		if p.o.Tracer != nil {
			p.o.Tracer.Reported(from, r.Results)
		}
		p.delivery.Receive(from, cloud, r)
		p.peers.noteStatuses(from, cloud, r)
	case gozzard.ReportStatus:
		p.receiveStatus(from, cloud, r)
	case gozzard.ReportHeartbeat:
		if r.Vitals != nil {
			p.o.Live.SetVitals(from, vitalsOf(r.Vitals, p.o.Now()))
		}
		p.acknowledge(from, cloud, &gozzard.Command{Session: r.Session, Beat: r.Beat})
		p.peers.noteReport(from, cloud, r)
	case gozzard.ReportEvents:
		p.receiveEvents(from, cloud, r)
	case gozzard.ReportLogs:
		p.receiveLogs(from, cloud, r)
	case gozzard.ReportHistory:
		p.receiveHistory(from, cloud, r)
	case gozzard.ReportFile:
		p.receiveFile(from, cloud, r)
	case gozzard.ReportContent:
		p.receiveContent(from, cloud, r)
	case gozzard.ReportUpdate:
		p.receiveUpdate(from, r)
		p.peers.noteReport(from, cloud, r) // another server may have ordered it
	}
}

// heard renews the lease of a session and reports whether the session is the agent's present one. An agent whose
// session this server does not know is asked to say HELLO.
func (p *Plane) heard(from gozzard.AgentID, cloud int, session uint64) bool {
	now := p.o.Now()
	switch p.delivery.Heard(from, session, now) {
	case delivery.ContactNew:
		p.delivery.Send(from, cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGreet,
			Session: session})
		return false
	case delivery.ContactOld: // it was on its way when the session ended
		p.reject("old_session", from)
		return false
	case delivery.ContactBack:
		p.o.Live.SetOnline(from, true, now)
		p.peers.noteReport(from, cloud, &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportHeartbeat,
			Session: session})
	default:
		p.o.Live.Touch(from, now)
	}
	return true
}

// acknowledge sends an acknowledgement; cmd says of what.
func (p *Plane) acknowledge(to gozzard.AgentID, cloud int, cmd *gozzard.Command) {
	cmd.Version, cmd.Kind = gozzard.ProtocolVersion, gozzard.CommandAck
	if cmd.Beat > 0 {
		now := p.o.Now()
		cmd.NextBeat = nextBeat(now)
		if now.UnixNano() < p.spreadUntil.Load() {
			cmd.Servers = p.servers(cloud)
		}
	}
	p.delivery.Send(to, cloud, cmd)
}

// reject counts a report that is not used.
func (p *Plane) reject(rule string, from gozzard.AgentID) {
	p.o.Log.Debug("report rejected", "agent", from, "rule", rule)
	p.o.Observe.rejected(rule)
}

// leftOut counts processes that the live index does not accept.
func (p *Plane) leftOut(from gozzard.AgentID, tooMany, badKeys int) {
	if tooMany > 0 {
		p.reject("too_many_processes", from)
	}
	if badKeys > 0 {
		p.reject("process_name", from)
	}
}

// forged rejects a report in which an agent speaks for another one. It is logged ever more rarely, so that no agent
// can fill the log.
func (p *Plane) forged(rule string, from gozzard.AgentID) {
	p.reject(rule, from)
	if n := p.forgeries.Add(1); n&(n-1) == 0 {
		p.o.Log.Warn("an agent speaks for another agent and is ignored", "agent", from, "rule", rule, "forgeries", n)
	}
}

func (p *Plane) receiveStatus(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	defer p.peers.noteReport(from, cloud, r)
	if r.Round == 0 {
		p.o.Live.Apply(from, r.Statuses, r.Removed)
		return
	}
	if p.o.Live.Full(from, r.Round, r.Part, r.Parts, r.Statuses) {
		p.o.Joining.end(from)
		p.protocols.spoken(from, r)
		p.acknowledge(from, cloud, &gozzard.Command{Session: r.Session, AckRound: r.Round, Beat: r.Beat})
	}
}
