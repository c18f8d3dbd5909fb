package control

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/pace"
)

// PeerLink carries news to the other servers of the installation. It promises nothing: what was lost is asked for again.
type PeerLink interface {
	// Tell sends news to a server, or to all others with "".
	Tell(to string, n *gozzard.PeerNews) error
}

const (
	peerPause = 10 * time.Millisecond // news that come together leave together
	peerBeat  = 2 * time.Second       // a server that has no news says that it lives
	peerSweep = 5 * time.Second       // between two comparisons of memory and record
	peerShare = 10                    // reading all registered processes may take this part of the time
	peerItems = 512                   // reports in a message, at most
	peerBytes = 256 << 10             // of reports in a message, about, unless one is larger
	askPause  = time.Second           // between two requests for everything
	tellPause = 15 * time.Second      // for an answer to such a request
)

// peers is what a server knows of the others, and what it tells them. A nil *peers is that of a server that is alone.
//
// Every agent has a home: the server with its present session. The home delivers, and tells the others what it hears from
// the agent. So every server can answer every question about status.
type peers struct {
	o    *Options
	p    *Plane
	run  uint64
	wake chan struct{}

	wakes chan gozzard.TaskSeq // tasks with attempts for agents of this server
	asked chan string          // servers that want everything

	cancels chan peerCancel // callers of other servers cancel what this one delivers

	// Held while news are sent, and while a part of a snapshot is made and sent: no status in it may be older than one
	// that was sent before.
	telling sync.Mutex

	mu    sync.Mutex
	seq   uint64
	out   outbox
	known map[string]*peer
	away  map[string]away          // servers that are not heard
	runs  map[string]bool          // servers that run by the record, as it was read last
	homes map[gozzard.AgentID]home // of agents whose home is another server
	marks uint64                   // number of the newest snapshot
	stale bool                     // registrations may have been missed

	answers map[gozzard.OpID]chan gozzard.PeerCancelled // to requests of this server that wait for them
}

// peer is another server.
type peer struct {
	run, seq uint64
	heard    time.Time
	complete time.Time // up to here, everything that it told is known
	gap      bool      // news were missed, and everything was not told since
	again    bool      // news were missed after the newest request for everything
	askedAt  time.Time
	part     time.Time // when the newest part of a snapshot came
	mark     uint64    // of the snapshot that is being received; 0: none
}

// home is the home of an agent.
type home struct {
	server  string
	session uint64
	cloud   int
	silent  bool
	mark    uint64 // of the snapshot that named it last
}

func newPeers(o *Options, p *Plane) *peers {
	if o.Peers == nil {
		return nil
	}
	return &peers{o: o, p: p, run: rand.Uint64(), wake: make(chan struct{}, 1), wakes: make(chan gozzard.TaskSeq, 4096),
		asked: make(chan string, 64), cancels: make(chan peerCancel, 64), answers: map[gozzard.OpID]chan gozzard.PeerCancelled{}, known: map[string]*peer{}, away: map[string]away{}, homes: map[gozzard.AgentID]home{}}
}

// loop tells the others what is new, until ctx ends.
func (s *peers) loop(ctx context.Context) {
	beat := time.NewTicker(peerBeat)
	defer beat.Stop()

	var wg sync.WaitGroup
	defer wg.Wait()
	for range wakers {
		wg.Go(func() { s.wakeLoop(ctx) })
	}
	wg.Go(func() { s.snapshotLoop(ctx) })
	wg.Go(func() { s.cancelLoop(ctx) })
	wg.Go(func() { s.sweepLoop(ctx) })
	s.tellAll() // that it is there
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			if pace.Sleep(ctx, peerPause) != nil {
				return
			}
			s.tellAll()
		case <-beat.C:
			s.tellAll()
			s.lookForGone()
		}
	}
}

// note adds news.
func (s *peers) note(add func(o *outbox)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	add(&s.out)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// noteReport tells what an agent of this server reported.
func (s *peers) noteReport(agent gozzard.AgentID, cloud int, r *gozzard.Report) {
	s.note(func(o *outbox) {
		n := o.of(agent)
		n.Reports = append(n.Reports, gozzard.PeerReport{Agent: agent, Cloud: cloud, Report: r})
	})
}

// noteStatuses tells statuses that came with results.
func (s *peers) noteStatuses(agent gozzard.AgentID, cloud int, r *gozzard.Report) {
	if s == nil || len(r.Statuses) == 0 {
		return
	}
	s.noteReport(agent, cloud, &gozzard.Report{Version: r.Version, Kind: gozzard.ReportStatus, Session: r.Session,
		Statuses: r.Statuses})
}

// noteHello tells that an agent opened a session here.
func (s *peers) noteHello(h hello, info *gozzard.HostInfo) {
	if s == nil {
		return
	}
	s.mu.Lock()
	delete(s.homes, h.from)
	s.mu.Unlock()
	s.noteReport(h.from, h.cloud, helloReport(h.report.Session, h.report.Hello.Run, info))
}

// helloReport describes a host and names its session, and the run of its agent if it is known.
func helloReport(session, run uint64, info *gozzard.HostInfo) *gozzard.Report {
	return &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportHello, Session: session,
		Hello: &gozzard.Hello{Host: *info, Run: run}}
}

// noteSilent tells that an agent went silent.
func (s *peers) noteSilent(agent gozzard.AgentID, session uint64, since time.Time) {
	s.note(func(o *outbox) {
		n := o.endOf(agent)
		n.Silent = append(n.Silent, gozzard.PeerSilent{Agent: agent, Session: session, Since: since})
	})
}

// noteTask tells that a task got verdicts.
func (s *peers) noteTask(seq gozzard.TaskSeq) {
	s.note(func(o *outbox) {
		n := &o.news
		if len(n.Tasks) == 0 || n.Tasks[len(n.Tasks)-1] != seq { // the verdicts of one task often come together
			n.Tasks = append(n.Tasks, seq)
		}
	})
}

// eventFacts is the kind of recorded facts that events are.
const eventFacts = "events"

// noteEvents tells that there are new events in the record.
func (s *peers) noteEvents() {
	s.note(func(o *outbox) {
		if !slices.Contains(o.news.Changed, eventFacts) {
			o.news.Changed = append(o.news.Changed, eventFacts)
		}
	})
}

// noteSeed tells that a process was registered.
func (s *peers) noteSeed(agent gozzard.AgentID, status gozzard.Status) {
	s.note(func(o *outbox) {
		n := o.of(agent)
		n.Seeds = append(n.Seeds, gozzard.PeerSeed{Agent: agent, Status: status})
	})
}

// noteRemoved tells that a process was removed.
func (s *peers) noteRemoved(id gozzard.ProcID) {
	s.note(func(o *outbox) {
		n := o.endOf(id.Agent)
		n.Removed = append(n.Removed, id)
	})
}

// passOn hands an answer that this server did not ask for to the others: one of them may have asked.
func (s *peers) passOn(agent gozzard.AgentID, cloud int, id gozzard.OpID, r *gozzard.Report) bool {
	if s == nil || s.p.questions.isAsked(id) {
		return false
	}
	s.noteReport(agent, cloud, r)
	return true
}

// tellAll sends what is new to all others, in messages that are not too large. The last one may be empty.
func (s *peers) tellAll() {
	for more := true; more; {
		more = s.tellSome()
	}
}

// tellSome sends one message to all others, and reports whether there is more.
func (s *peers) tellSome() (more bool) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	n, more := s.out.take()
	s.seq++
	n.Seq = s.seq
	s.mu.Unlock()
	s.send("", &n)
	return more
}

func (s *peers) send(to string, n *gozzard.PeerNews) {
	n.From, n.Run = s.o.Server, s.run
	if err := s.o.Peers.Tell(to, n); err != nil {
		s.o.Log.Debug("cannot send to the other servers", "to", to, "err", err)
	}
}

// homeOf is the session of an agent whose home is another server; its ID is 0 if there is none, or the agent is silent.
func (s *peers) homeOf(agent gozzard.AgentID) (server string, session delivery.Session) {
	if s == nil {
		return "", delivery.Session{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.homes[agent]
	if !ok || h.silent {
		return "", delivery.Session{}
	}
	return h.server, delivery.Session{ID: h.session, Cloud: h.cloud}
}

// reach is the session in which an agent that is online can be asked something, whichever server is its home.
func (p *Plane) reach(agent gozzard.AgentID) delivery.Session {
	if s := p.delivery.OnlineSession(agent); s.ID != 0 {
		return s
	}
	_, s := p.peers.homeOf(agent)
	return s
}
