package nats

import (
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// RuleConnections is the rule that closes connections to the port of the agents, as the metrics count it.
const RuleConnections = "agent_connections"

// watchEvery is how often the doorkeeper looks at the connections.
const watchEvery = 250 * time.Millisecond

// doorkeeper limits the connections of one address that did not authenticate. A client that connects and says nothing
// keeps its connection until the timeout of the handshake; without a limit one address could take all connections.
// The broker accepts connections by itself, so the doorkeeper looks at them afterwards. The number of all connections
// is limited by the broker.
type doorkeeper struct {
	server  *server.Server
	limit   int
	refused func(rule string)
	through Through

	mu   sync.Mutex
	seen map[uint64]struct{} // connections that authenticated; some may be closed

	members int // connections that had authenticated at the last look
	stop    chan struct{}
	done    chan struct{}
}

func newDoorkeeper(s *server.Server, limit int, refused func(rule string), through Through) *doorkeeper {
	return &doorkeeper{server: s, limit: limit, refused: refused, through: through, seen: map[uint64]struct{}{},
		stop: make(chan struct{}), done: make(chan struct{})}
}

// admitted notes a connection that authenticated.
func (d *doorkeeper) admitted(conn uint64) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[conn] = struct{}{}
}

// run looks at the connections until close.
func (d *doorkeeper) run() {
	defer close(d.done)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
			d.look()
		}
	}
}

// close ends run.
func (d *doorkeeper) close() {
	if d != nil {
		close(d.stop)
		<-d.done
	}
}

// look closes the oldest connections of addresses that have too many. It lists the connections only when there are
// that many, so a fleet at rest costs nothing.
func (d *doorkeeper) look() {
	n := d.server.NumClients()
	if n-d.members <= d.limit {
		return
	}
	list, err := d.server.Connz(&server.ConnzOptions{Limit: n + d.limit}) // in the order of their ids: the oldest first
	if err != nil {
		return // only of an unknown option
	}

	for _, c := range d.tooMany(list.Conns) {
		if d.server.DisconnectClientByID(c) == nil { // the only error: it is already closed
			d.refused(RuleConnections)
		}
	}
}

// tooMany are the connections to close.
func (d *doorkeeper) tooMany(conns []*server.ConnInfo) (excess []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()

	silent, open := map[string][]uint64{}, make(map[uint64]struct{}, len(conns))
	for _, c := range conns {
		if _, ok := d.seen[c.Cid]; ok {
			open[c.Cid] = struct{}{}
			continue
		}
		from := d.through.origin(net.JoinHostPort(c.IP, strconv.Itoa(c.Port)))
		silent[from] = append(silent[from], c.Cid)
	}
	d.seen, d.members = open, len(open)

	for _, ids := range silent {
		if len(ids) > d.limit {
			slices.Sort(ids)
			excess = append(excess, ids[:len(ids)-d.limit]...)
		}
	}
	return excess
}
