package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

// The bounds of waiting reports, in bytes. Only an agent with a fault reaches the bound of results, and it repeats the
// results that are dropped. Status may be dropped: the next report replaces it.
const (
	resultsPerAgent = 32 << 20
	resultsTotal    = 512 << 20
	statusPerAgent  = 4 << 20
	statusTotal     = 64 << 20
)

// HubOptions says where the hub sends reports. Several goroutines call the functions: in order and one at a time for
// one agent and subject, concurrently for different agents, and concurrently for the results and the status of one
// agent.
type HubOptions struct {
	Broker  *Broker
	Receive func(from gozzard.AgentID, cloud int, r *gozzard.Report)

	// Malformed is called for a report that cannot be decoded, with wire.ErrNewer for a newer protocol. It may be nil.
	Malformed func(from gozzard.AgentID, err error)

	// Signer proves to agents that a command is from their server. nil: commands are not signed, for tests.
	Signer Signer

	Limits Limits // of each agent

	// Peer is called for each message of another server of the cluster: in order and one at a time for one peer. It may
	// be nil.
	Peer func(from string, payload []byte)

	// Refused is called for each message that exceeds the limits or cannot be decoded. It may be nil.
	Refused func(rule string)

	Log *slog.Logger
}

// Hub is the server's end of the fabric.
type Hub struct {
	opts     HubOptions
	conn     *natsgo.Conn
	gone     chan struct{} // closed when the connection is closed for good
	subsDone sync.WaitGroup
	results  *queues
	statuses *queues
	peers    *queues // of other servers
	limiter  *limiter
	logged   onceEach
	outbox   *outbox

	stop     chan struct{}
	stopOnce sync.Once
	running  sync.Mutex // held by Run

	resultsIn, statusesIn, dropped, malformed, newer, flooded atomic.Uint64
}

// NewHub connects to the broker and starts to queue reports; Run processes them. Commands can be sent at once.
func NewHub(o HubOptions) (*Hub, error) {
	// Check the options.
	if o.Broker == nil || o.Receive == nil {
		return nil, errors.New("cannot create a hub: it needs a broker and a receiver")
	}
	if o.Malformed == nil {
		o.Malformed = func(gozzard.AgentID, error) {}
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	h := &Hub{
		opts: o, gone: make(chan struct{}), stop: make(chan struct{}),
		results:  newQueues(resultsPerAgent, resultsTotal),
		statuses: newQueues(statusPerAgent, statusTotal),
		peers:    newQueues(perPeer, peersTotal),
		limiter:  newLimiter(o.Limits),
	}

	// Connect to the broker.
	conn, err := natsgo.Connect("", h.connOptions()...)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the broker: %w", err)
	}

	h.conn = conn

	// Start to send and to receive.
	h.outbox = newOutbox(conn, o.Signer, h.stop, o.Log)
	go h.outbox.run()
	if err := errors.Join(h.subscribe(), h.subscribePeers()); err != nil {
		h.Close()
		return nil, fmt.Errorf("cannot subscribe at the broker: %w", err)
	}

	return h, nil
}

// Run passes reports to Receive until the context ends or Close is called. It waits for running calls of Receive. It
// drops the reports that still wait; agents repeat the important ones.
func (h *Hub) Run(ctx context.Context) error {
	if !h.running.TryLock() {
		return errors.New("cannot run a hub twice")
	}

	defer h.running.Unlock()

	// Start the workers.
	var workers sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), 2), 8) {
		workers.Go(func() { h.work(h.results) })
		workers.Go(func() { h.work(h.statuses) })
	}
	workers.Go(h.workPeers)
	workers.Go(func() { h.banBusyAgents(h.stop) })

	// Wait for the end.
	select {
	case <-ctx.Done():
	case <-h.stop:
	}

	h.shutdown()
	workers.Wait()
	return nil
}

// Close ends Run and waits for it. It must not be called from Receive.
func (h *Hub) Close() {
	h.shutdown()
	h.running.Lock()
	defer h.running.Unlock()
}

// Send sends a command to an agent. It does not wait for the agent and does not know whether the agent is connected.
// Commands to one agent stay in order.
func (h *Hub) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	p, err := newAgentName(cloud, to)
	if err != nil {
		return fmt.Errorf("cannot send to agent: %w", err)
	}

	if cmd.Kind == gozzard.CommandLogs || cmd.Kind == gozzard.CommandHistory || cmd.Kind == gozzard.CommandFile {
		h.limiter.expectAnswer(p.String())
	}

	err = h.outbox.add(to, subjectOp+p.String(), cmd.Kind,
		func(b []byte) []byte { return wire.AppendCommand(b, cmd) })
	if err != nil {
		return fmt.Errorf("cannot send to agent %s: %w", to, err)
	}
	return nil
}

// Stats returns the counts so far.
func (h *Hub) Stats() gozzard.FabricCounts {
	return gozzard.FabricCounts{
		Sent:      h.outbox.sent.Load(),
		Results:   h.resultsIn.Load(),
		Statuses:  h.statusesIn.Load(),
		Dropped:   h.dropped.Load(),
		Malformed: h.malformed.Load(),
		Newer:     h.newer.Load(),
		Flooded:   h.flooded.Load(),
	}
}

// connOptions are the options of the connection to the broker.
func (h *Hub) connOptions() []natsgo.Option {
	log := h.opts.Log
	return append(commonOptions(),
		natsgo.Name("hub"),
		natsgo.InProcessServer(h.opts.Broker.server),
		natsgo.Token(h.opts.Broker.hubPassword),
		// The broker disconnects a hub that reads too slowly. All agents wait until the hub is back.
		natsgo.ReconnectWait(100*time.Millisecond),
		natsgo.ReconnectJitter(0, 0),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			log.Warn("the broker reports an error", "err", err)
		}),
		natsgo.DisconnectErrHandler(func(_ *natsgo.Conn, err error) {
			if err != nil {
				log.Warn("connection to the broker was lost", "err", err)
			}
		}),
		natsgo.ClosedHandler(func(*natsgo.Conn) { close(h.gone) }),
	)
}

// subscribe subscribes to results and status separately, so that no result ever waits for a status.
func (h *Hub) subscribe() error {
	for _, s := range []struct {
		subject string
		queues  *queues
		in      *atomic.Uint64
		soft    bool
	}{
		{subjectResult, h.results, &h.resultsIn, false},
		{subjectStatus, h.statuses, &h.statusesIn, true},
	} {
		sub, err := h.conn.Subscribe(s.subject+"*.*", func(m *natsgo.Msg) {
			s.in.Add(1)
			if !h.withinLimits(m.Subject, len(m.Data), s.soft) {
				return
			}
			if !s.queues.push(m.Subject, m.Data) {
				h.countDropped(m.Subject)
			}
		})
		if err != nil {
			return err
		}

		h.subsDone.Add(1)
		sub.SetClosedHandler(func(string) { h.subsDone.Done() })
		// The queues have bounds per agent. The library's bound would drop messages of any agent.
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return err
		}
	}
	return h.conn.FlushTimeout(readyTimeout)
}

// shutdown closes the connection and the queues, which ends all workers.
func (h *Hub) shutdown() {
	h.stopOnce.Do(func() { close(h.stop) })
	<-h.outbox.done
	h.conn.Close()
	<-h.gone
	h.subsDone.Wait()
	h.results.close()
	h.statuses.close()
	h.peers.close()
}

// work processes messages until the queues are closed.
func (h *Hub) work(q *queues) {
	for {
		from, data, ok := q.next()
		if !ok {
			return
		}
		h.receive(from.subject, data)
		q.done(from)
	}
}

// receive decodes a report and passes it on.
func (h *Hub) receive(subject string, data []byte) {
	_, name, _ := strings.Cut(subject, ".")
	from, err := parseAgentName(name)
	if err != nil { // cannot happen: the broker accepts no such name
		h.malformed.Add(1)
		h.opts.Log.Error("report on a subject that belongs to no agent", "subject", subject)
		return
	}

	r, err := wire.DecodeReport(data)
	switch {
	case errors.Is(err, wire.ErrNewer):
		h.newer.Add(1)
		if h.logged.first("newer " + name) {
			h.opts.Log.Warn("report rejected: the agent uses a newer protocol; upgrade the server",
				"agent", from.agent, "cloud", from.cloud, "err", err)
		}
		h.opts.Malformed(from.agent, err)
	case err != nil:
		h.malformed.Add(1)
		if h.logged.first("malformed " + name) {
			h.opts.Log.Warn("report cannot be read", "agent", from.agent, "cloud", from.cloud, "err", err)
		}
		h.opts.Malformed(from.agent, err)
		h.rejectMalformed(name)
	default:
		h.opts.Receive(from.agent, from.cloud, r)
	}
}

// countDropped counts a report that was dropped, and logs the first, second, fourth, eighth and so on.
func (h *Hub) countDropped(subject string) {
	if n := h.dropped.Add(1); n&(n-1) == 0 {
		h.opts.Log.Warn("reports are dropped: they arrive faster than the server processes them",
			"subject", subject, "dropped", n)
	}
}
