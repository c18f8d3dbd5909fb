package signing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/test/sim"
)

const (
	joinSecret = "0123456789abcdef0123456789abcdef"
	patience   = time.Minute

	asRecorded = gozzard.CommandKind(255) // the hub sends recorded bytes instead of a command
)

// tape is a server, and a fabric that records all messages and sends them again.
type tape struct {
	t      *testing.T
	signer *signing.Signer
	broker *nats.Broker
	hub    *nats.Hub

	mu       sync.Mutex
	recorded [][]byte
	raw      []byte // to be sent next
	mute     bool   // the server does not answer
	sessions map[gozzard.AgentID]uint64
	final    map[gozzard.OpID]gozzard.OpReport
	gens     map[gozzard.Key]uint64
}

func newTape(t *testing.T) *tape {
	p := &tape{
		t: t, signer: signer(t, t.TempDir()), sessions: map[gozzard.AgentID]uint64{},
		final: map[gozzard.OpID]gozzard.OpReport{}, gens: map[gozzard.Key]uint64{},
	}
	var err error
	if p.broker, err = nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", Secret: joinSecret}); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(p.broker.Close)

	if p.hub, err = nats.NewHub(nats.HubOptions{Broker: p.broker, Receive: p.receive, Signer: p}); err != nil {
		t.Fatal(err)
	}

	background(t, p.hub.Run)
	return p
}

func background(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Begin implements nats.Signer: it signs and records an envelope, or returns a recorded one.
func (p *tape) Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == asRecorded {
		return append(b, p.raw...)
	}
	at := len(b)
	b = p.signer.Append(b, to, kind, write)
	p.recorded = append(p.recorded, slices.Clone(b[at:]))
	return b
}

// Sign implements nats.Signer.
func (p *tape) Sign([]*[]byte) error { return nil }

// receive answers as a server does.
func (p *tape) receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	cmd := &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck, Session: r.Session}
	p.mu.Lock()
	mute := p.mute

	switch r.Kind {
	case gozzard.ReportHello:
		cmd.Kind, cmd.Beat = gozzard.CommandWelcome, r.Hello.Run
		p.sessions[from] = r.Session
	case gozzard.ReportHeartbeat:
		cmd.Beat = r.Beat
	case gozzard.ReportResults:
		for _, res := range r.Results {
			if _, final := gozzard.Finalise(res.Phase, res.Outcome.Code); final {
				cmd.Acked = append(cmd.Acked, res.ID)
				p.final[res.ID] = res
			}
		}
	case gozzard.ReportStatus:
		cmd.AckRound = r.Round
	case gozzard.ReportEvents:
		cmd.AckEvents = r.Events[len(r.Events)-1].Seq
	}
	p.mu.Unlock()

	if !mute {
		p.send(from, cloud, cmd)
	}
}

func (p *tape) send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) {
	if err := p.hub.Send(to, cloud, cmd); err != nil {
		p.t.Error(err)
	}
}

// operate sends one operation of each key, as one command each, and waits for the verdicts.
func (p *tape) operate(to gozzard.AgentID, keys []gozzard.Key, action gozzard.Action) {
	p.t.Helper()
	var ids []gozzard.OpID
	for _, key := range keys {
		p.gens[key]++
		op := gozzard.Op{ID: gozzard.NewOpID(), Gen: p.gens[key], Action: action, Key: key}
		if action == gozzard.ActionStart {
			op.Spec = gozzard.EncodeSpec(&gozzard.Spec{
				Identity: gozzard.Identity{ProcName: "web"},
				Control:  gozzard.Control{Start: "ok", Stop: "ok", Reload: "ok", Restart: "ok"},
				// do not wait whether it keeps running
				Policy: gozzard.Policy{Kind: gozzard.KindResident, OpTimeout: 60},
			})
		}
		ids = append(ids, op.ID)
		p.send(to, 0, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandOperate,
			Session: p.session(to), Ops: []gozzard.Op{op}})
	}

	until(p.t, fmt.Sprintf("all of %s to end", action), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !slices.ContainsFunc(ids, func(id gozzard.OpID) bool { _, done := p.final[id]; return !done })
	})

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, id := range ids {
		if res := p.final[id]; res.Outcome.Code != gozzard.CodeOK {
			p.t.Fatalf("%s: %s %+v", action, res.Phase, res.Outcome)
		}
	}
}

// replay sends all recorded messages once more.
func (p *tape) replay(to gozzard.AgentID) int {
	p.mu.Lock()
	recorded := slices.Clone(p.recorded)
	p.mu.Unlock()
	for _, raw := range recorded {
		p.mu.Lock()
		p.raw = raw
		p.mu.Unlock()
		p.send(to, 0, &gozzard.Command{Kind: asRecorded})
	}
	return len(recorded)
}

func (p *tape) session(of gozzard.AgentID) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[of]
}

// forget makes an earlier session unknown.
func (p *tape) forget(of gozzard.AgentID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, of)
}

func (p *tape) setMute(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// runner is a real agent with a simulated machine.
type runner struct {
	link      atomic.Pointer[nats.Link]
	stopLink  func()
	stopAgent func()
	agent     *agent.Agent
	ring      *signing.KeyRing
}

func (p *tape) run(id gozzard.AgentID, dir string, host *sim.Host) *runner {
	p.t.Helper()

	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}

	a, err := agent.New(agent.Options{Dir: dir, Info: gozzard.HostInfo{Agent: id}, Host: host,
		SampleEvery: time.Minute, Simulated: true})
	if err != nil {
		p.t.Fatal(err)
	}

	r := &runner{agent: a, ring: ring(p.t, dir, p.signer.Key())}
	r.stopAgent = background(p.t, func(ctx context.Context) error { return a.Run(ctx, linkOf{r}) })
	p.connect(id, r)
	return r
}

// linkOf is the current link of a runner.
type linkOf struct{ *runner }

func (l linkOf) Send(r *gozzard.Report) error {
	link := l.link.Load()
	if link == nil {
		return errors.New("not connected")
	}
	return link.Send(r)
}

// connect makes a new connection, and so a new session.
func (p *tape) connect(id gozzard.AgentID, r *runner) {
	p.t.Helper()
	link, err := nats.NewLink(nats.LinkOptions{
		URL: p.broker.Addr(), Agent: id, Secret: joinSecret,
		Open:    func(b []byte) ([]byte, error) { return r.ring.Open(id, b) },
		Command: r.agent.Receive, Up: r.agent.Connected, Down: r.agent.Disconnected,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	r.link.Store(link)
	r.stopLink = background(p.t, link.Run)
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// executions counts all commands that were started on a machine.
func executions(h *sim.Host, keys []gozzard.Key) (n int) {
	for _, key := range keys {
		for a := gozzard.ActionNone; a <= gozzard.ActionUnregister; a++ {
			n += h.Commands(key, a)
		}
		n += h.Starts(key)
	}
	return n
}
