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

// Room for reports that wait to be taken in. Results have so much that only an agent gone mad meets its bound, and
// what it loses it repeats; status is soft and the next report replaces what was lost.
const (
	resultsPerAgent = 32 << 20
	resultsTotal    = 512 << 20
	statusPerAgent  = 4 << 20
	statusTotal     = 64 << 20
)

// HubOptions says where reports go. The funcs are called from several goroutines: in order and one at a time for
// one agent and subject, at the same time for different agents, and for the results and the status of one agent.
type HubOptions struct {
	Broker  *Broker
	Receive func(from gozzard.AgentID, cloud int, r *gozzard.Report)
	// a report that could not be read; wire.ErrNewer for one of a newer protocol; may be nil
	Malformed func(from gozzard.AgentID, err error)

	// Seal is how agents know whose command it is. nil: commands go as they are, for tests.
	Seal Sealer

	Limits Limits // of one agent
	// told of every message that was refused by Limits, and of those that cannot be read; may be nil
	Refused func(rule string)

	Log *slog.Logger
}

// Hub is the server's end of the fabric.
type Hub struct {
	opts     HubOptions
	conn     *natsgo.Conn
	gone     chan struct{} // the connection is closed for good
	subsDone sync.WaitGroup
	results  *lanes
	statuses *lanes
	gate     *floodgate
	said     onceEach
	post     *post

	stop     chan struct{}
	stopOnce sync.Once
	running  sync.Mutex // held by Run

	resultsIn, statusesIn, dropped, malformed, newer, flooded atomic.Uint64
}

// NewHub connects to the broker and begins to collect reports; Run hands them on. Commands can be sent at once.
func NewHub(o HubOptions) (*Hub, error) {
	if o.Broker == nil || o.Receive == nil {
		return nil, errors.New("cannot make a hub: it needs a broker and a receiver")
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
		results: newLanes(resultsPerAgent, resultsTotal), statuses: newLanes(statusPerAgent, statusTotal),
		gate: newFloodgate(o.Limits),
	}
	conn, err := natsgo.Connect("", h.connOptions()...)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the broker: %w", err)
	}

	h.conn = conn
	h.post = newPost(conn, o.Seal, h.stop, o.Log)
	go h.post.run()

	if err := h.subscribe(); err != nil {
		h.Close()
		return nil, fmt.Errorf("cannot subscribe at the broker: %w", err)
	}

	return h, nil
}

// Run hands reports on until the context ends or Close is called. It waits for the calls of Receive that are under
// way; what still waits is thrown away, agents repeat what matters.
func (h *Hub) Run(ctx context.Context) error {
	if !h.running.TryLock() {
		return errors.New("cannot run a hub twice")
	}

	defer h.running.Unlock()
	var workers sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), 2), 8) {
		workers.Go(func() { h.work(h.results) })
		workers.Go(func() { h.work(h.statuses) })
	}

	workers.Go(func() { h.watch(h.stop) })

	select {
	case <-ctx.Done():
	case <-h.stop:
	}

	h.shut()
	workers.Wait()
	return nil
}

// Close ends Run and waits for it. It must not be called from Receive.
func (h *Hub) Close() {
	h.shut()
	h.running.Lock()
	defer h.running.Unlock()
}

// Send hands a command to the fabric. It does not wait for the agent, nor know whether there is one; what is sent
// to one agent stays in order.
func (h *Hub) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	p, err := newPeer(cloud, to)
	if err != nil {
		return fmt.Errorf("cannot send to agent: %w", err)
	}
	if cmd.Kind == gozzard.CommandLogs {
		h.gate.asked(p.String())
	}
	err = h.post.hand(to, subjectOp+p.String(), cmd.Kind, func(b []byte) []byte { return wire.AppendCommand(b, cmd) })
	if err != nil {
		return fmt.Errorf("cannot send to agent %s: %w", to, err)
	}
	return nil
}

// Stats returns the counts so far.
func (h *Hub) Stats() gozzard.FabricCounts {
	return gozzard.FabricCounts{
		Sent: h.post.sent.Load(), Results: h.resultsIn.Load(), Statuses: h.statusesIn.Load(), Dropped: h.dropped.Load(),
		Malformed: h.malformed.Load(), Newer: h.newer.Load(), Flooded: h.flooded.Load(),
	}
}

func (h *Hub) connOptions() []natsgo.Option {
	log := h.opts.Log
	return append(commonOptions(),
		natsgo.Name(hubUser),
		natsgo.InProcessServer(h.opts.Broker.server),
		natsgo.UserInfo(hubUser, h.opts.Broker.hubPassword),
		// the broker cuts a hub that reads too slowly; every agent waits for it to be back
		natsgo.ReconnectWait(100*time.Millisecond),
		natsgo.ReconnectJitter(0, 0),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			log.Warn("broker reports a fault", "err", err)
		}),
		natsgo.DisconnectErrHandler(func(_ *natsgo.Conn, err error) {
			if err != nil {
				log.Warn("connection to the broker was cut", "err", err)
			}
		}),
		natsgo.ClosedHandler(func(*natsgo.Conn) { close(h.gone) }),
	)
}

// subscribe keeps results and telemetry apart all the way, so that no result ever waits behind a status.
func (h *Hub) subscribe() error {
	for _, s := range []struct {
		subject string
		queue   *lanes
		in      *atomic.Uint64
		soft    bool
	}{{subjectResult, h.results, &h.resultsIn, false}, {subjectStatus, h.statuses, &h.statusesIn, true}} {
		sub, err := h.conn.Subscribe(s.subject+"*.*", func(m *natsgo.Msg) {
			s.in.Add(1)
			if !h.letIn(m.Subject, len(m.Data), s.soft) {
				return
			}
			if !s.queue.push(m.Subject, m.Data) {
				h.drop(m.Subject)
			}
		})
		if err != nil {
			return err
		}
		h.subsDone.Add(1)
		sub.SetClosedHandler(func(string) { h.subsDone.Done() })
		// The lanes bound what waits; the library's own bound would drop without regard to whose message it is.
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return err
		}
	}
	return h.conn.FlushTimeout(readyTimeout)
}

// shut ends the connection and all work.
func (h *Hub) shut() {
	h.stopOnce.Do(func() { close(h.stop) })
	<-h.post.done
	h.conn.Close()
	<-h.gone
	h.subsDone.Wait()
	h.results.close()
	h.statuses.close()
}

func (h *Hub) work(q *lanes) {
	for {
		l, data, ok := q.take()
		if !ok {
			return
		}
		h.receive(l.subject, data)
		q.done(l)
	}
}

func (h *Hub) receive(subject string, data []byte) {
	_, name, _ := strings.Cut(subject, ".")
	from, err := parsePeer(name)
	if err != nil { // the broker lets no such name in
		h.malformed.Add(1)
		h.opts.Log.Error("report on a subject that is no agent's", "subject", subject)
		return
	}

	r, err := wire.DecodeReport(data)
	switch {
	case errors.Is(err, wire.ErrNewer):
		h.newer.Add(1)
		if h.said.first("newer " + name) {
			h.opts.Log.Warn("agent speaks a newer protocol and is not understood", "agent", from.agent, "cloud",
				from.cloud, "err", err)
		}
		h.opts.Malformed(from.agent, err)
	case err != nil:
		h.malformed.Add(1)
		if h.said.first("malformed " + name) {
			h.opts.Log.Warn("report cannot be read", "agent", from.agent, "cloud", from.cloud, "err", err)
		}
		h.opts.Malformed(from.agent, err)
		h.unreadable(name)
	default:
		h.opts.Receive(from.agent, from.cloud, r)
	}
}

// drop counts, and says so ever more rarely.
func (h *Hub) drop(subject string) {
	if n := h.dropped.Add(1); n&(n-1) == 0 {
		h.opts.Log.Warn("reports come faster than they are taken in and are dropped", "subject", subject, "dropped", n)
	}
}
