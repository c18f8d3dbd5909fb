package control

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// Hear takes in what another server tells. The fabric calls it in the order in which one server sent.
func (p *Plane) Hear(n *gozzard.PeerNews) {
	s := p.peers
	if s == nil || n.From == s.o.Server {
		return
	}
	if s.missed(n) {
		s.send(n.From, &gozzard.PeerNews{Want: true})
	}
	if n.Want {
		select {
		case s.asked <- n.From:
		default: // it asks again
		}
	}

	// What its agents said.
	for i := range n.Reports {
		s.observe(n, &n.Reports[i])
	}
	for _, silent := range n.Silent {
		s.hearSilent(n.From, silent)
	}
	if n.Last {
		s.endSnapshot(n.From)
	}

	// What is new in the record.
	for i := range n.Seeds {
		if seed := &n.Seeds[i]; seed.Agent != "" {
			s.p.seed(seed.Agent, seed.Status)
		}
	}
	for _, id := range n.Removed {
		s.o.Live.Remove(id.Agent, id.Key)
	}
	for _, seq := range n.Tasks {
		p.taskFeed.note(seq)
		p.results.drop(seq)
	}
	for _, seq := range n.Wake {
		select {
		case s.wakes <- seq:
		default: // the next sweep finds it
		}
	}
	for i := range n.Commands {
		s.passDown(&n.Commands[i])
	}
	s.hearCancels(n)
	if slices.Contains(n.Changed, eventFacts) {
		p.NotifyEvents()
	}
	if len(n.Changed) > 0 && s.o.Changed != nil {
		s.o.Changed(n.Changed)
	}
}

// missed notes the number of a message and reports whether to ask for everything, because messages before it were missed.
func (s *peers) missed(n *gozzard.PeerNews) bool {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[n.From]
	if k == nil {
		k = s.meet(n.From, now)
	}
	k.heard = now
	if n.Snapshot {
		k.part = now
		if k.mark == 0 {
			s.marks++
			k.mark = s.marks
		}
	}
	if n.Seq == 0 {
		return false
	}

	if k.run != n.Run || n.Seq != k.seq+1 {
		k.gap, k.again = true, true
	}
	k.run, k.seq = n.Run, n.Seq
	return k.mustAsk(now)
}

// observe takes in a report of an agent whose home is another server.
func (s *peers) observe(n *gozzard.PeerNews, r *gozzard.PeerReport) {
	if r.Report == nil {
		return
	}
	if r.Report.Kind == gozzard.ReportHello {
		s.observeHello(n, r)
		return
	}
	if !s.isHome(n.From, r) {
		return
	}

	live := s.o.Live
	switch r.Report.Kind {
	case gozzard.ReportStatus:
		if r.Report.Round == 0 {
			live.Apply(r.Agent, r.Report.Statuses, r.Report.Removed)
		} else {
			live.Full(r.Agent, r.Report.Round, r.Report.Part, r.Report.Parts, r.Report.Statuses)
		}
	case gozzard.ReportHeartbeat:
		live.SetOnline(r.Agent, true, s.o.Now())
		if r.Report.Vitals != nil {
			live.SetVitals(r.Agent, vitalsOf(r.Report.Vitals, s.o.Now()))
		}
	case gozzard.ReportLogs:
		if c := r.Report.Logs; c != nil && s.p.questions.isAsked(c.ID) {
			s.p.answered(r.Agent, c.ID, r.Report, "logs_unasked")
		}
	case gozzard.ReportHistory:
		if h := r.Report.History; h != nil && s.p.questions.isAsked(h.ID) {
			s.p.answered(r.Agent, h.ID, r.Report, "history_unasked")
		}
	case gozzard.ReportFile:
		if f := r.Report.File; f != nil && s.p.questions.isAsked(f.ID) {
			s.p.answered(r.Agent, f.ID, r.Report, "file_unasked")
		}
	case gozzard.ReportUpdate:
		s.p.receiveUpdate(r.Agent, r.Report)
	}
}

// observeHello takes in that an agent opened a session with another server, unless it has a newer one.
func (s *peers) observeHello(n *gozzard.PeerNews, r *gozzard.PeerReport) {
	session := r.Report.Session
	if r.Report.Hello == nil || r.Report.Hello.Host.Agent != r.Agent {
		return
	}
	if own, _, _ := s.p.delivery.Session(r.Agent); own.ID >= session {
		return
	}

	s.mu.Lock()
	before := s.homes[r.Agent]
	mark := before.mark
	if k := s.known[n.From]; n.Snapshot && k != nil {
		mark = k.mark
	}
	newer := before.session <= session
	if newer {
		s.homes[r.Agent] = home{server: n.From, session: session, cloud: r.Cloud, mark: mark}
	}
	s.mu.Unlock()
	if !newer {
		return
	}

	s.p.noteRun(r.Agent, r.Cloud, r.Report.Hello.Run)
	s.p.delivery.LetGo(r.Agent, session)
	s.o.Live.PutHost(fleet.Host{Info: r.Report.Hello.Host, Session: session, Online: true, LastSeen: s.o.Now()})
}

// isHome reports whether a report is of the present session of an agent with its home.
func (s *peers) isHome(server string, r *gozzard.PeerReport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.homes[r.Agent]
	if !ok || h.server != server || h.session != r.Report.Session {
		return false
	}
	if h.silent {
		h.silent = false
		s.homes[r.Agent] = h
	}
	return true
}

// hearSilent takes in that an agent went silent at its home.
func (s *peers) hearSilent(server string, silent gozzard.PeerSilent) {
	s.mu.Lock()
	h, ok := s.homes[silent.Agent]
	ok = ok && h.server == server && h.session == silent.Session
	if ok {
		h.silent = true
		s.homes[silent.Agent] = h
	}
	s.mu.Unlock()
	if ok {
		s.setOffline(silent.Agent, silent.Since)
	}
}

// setOffline shows a host as offline that is silent at its home or has lost it, unless it came to this server meanwhile.
func (s *peers) setOffline(agent gozzard.AgentID, since time.Time) {
	s.o.Live.SetOnline(agent, false, since)
	if s.p.delivery.OnlineSession(agent).ID != 0 {
		s.o.Live.SetOnline(agent, true, s.o.Now())
	}
}

// endSnapshot forgets the homes of a server that were in no part of its snapshot.
func (s *peers) endSnapshot(server string) {
	s.mu.Lock()
	k := s.known[server]
	if k == nil { // this server was frozen meanwhile, and has given the other one up
		s.mu.Unlock()
		return
	}
	mark := k.mark
	k.mark = 0
	s.stale = s.stale || k.gap // a snapshot has no registrations
	k.told(s.o.Now())
	s.mu.Unlock()
	s.lose(server, s.o.Now(), func(h home) bool { return h.mark < mark })
}

// lookForGone forgets the homes of servers that were not heard for the lease of a session.
func (s *peers) lookForGone() {
	now := s.o.Now()
	gone := map[string]time.Time{}
	s.mu.Lock()
	for id, k := range s.known {
		if now.Sub(k.heard) > s.o.Lease {
			gone[id] = k.heard
			delete(s.known, id)
			s.away[id] = away{since: k.complete}
		}
	}
	s.mu.Unlock()

	for id, heard := range gone {
		s.o.Log.Warn("another server is silent", "server", id, "since", heard)
		s.lose(id, heard, func(home) bool { return true })
	}
}

// lose forgets homes of a server.
func (s *peers) lose(server string, since time.Time, which func(home) bool) {
	var lost []gozzard.AgentID
	s.mu.Lock()
	for agent, h := range s.homes {
		if h.server == server && which(h) {
			delete(s.homes, agent)
			lost = append(lost, agent)
		}
	}
	s.mu.Unlock()
	for _, agent := range lost {
		s.setOffline(agent, since)
	}
}
