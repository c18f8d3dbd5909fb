package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

const (
	// maxStreams is how many connections of hosts one relay carries. The limits of agents are the server's.
	maxStreams = 65_536

	// maxCalls is how many calls of the API may be open through one relay.
	maxCalls = 512

	maxBody     = 64 << 10
	dialTimeout = 10 * time.Second

	// A connection on which nothing arrives is asked whether it is there, and given up.
	pingAfter   = 5 * time.Second
	pingTimeout = 10 * time.Second
)

// DoorOptions are the settings of a Door. All but Refused are required.
type DoorOptions struct {
	Listen    string // HOST:PORT for relays
	Server    string // id of this server
	Desk      *enrol.RelayDesk
	Authority *enrol.Authority
	Agents    func() string // HOST:PORT of the port for agents, on this machine

	Refused func(rule string)
	Log     *slog.Logger
}

// Door is the port of a server for relays.
type Door struct {
	o        DoorOptions
	listener net.Listener
	calls    *callListener

	mu       sync.Mutex
	relays   map[string]map[net.Conn]bool // connections of relays, by id
	passages map[string]*Passage          // by the address that a connection has for the port of the agents
	open     map[string]int               // calls of the API, by relay
}

// Passage is how a connection of a host came to this server.
type Passage struct {
	Relay enrol.RelayRecord
	From  netip.AddrPort // of the host, as the relay says
}

// OpenDoor opens the port. Nothing is served before Run.
func OpenDoor(o DoorOptions) (*Door, error) {
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot serve relays: %w", err)
	}
	d := &Door{o: o, listener: l, calls: newCallListener(l.Addr()), relays: map[string]map[net.Conn]bool{},
		passages: map[string]*Passage{}, open: map[string]int{}}
	o.Desk.OnCut(d.cut)
	return d, nil
}

// Addr is where relays connect to.
func (d *Door) Addr() string { return d.listener.Addr().String() }

// Calls are the connections of hosts to the API, each a *HostConn. The server speaks TLS on them.
func (d *Door) Calls() net.Listener { return d.calls }

// Close closes the port.
func (d *Door) Close() error {
	_ = d.calls.Close() // never fails
	if err := d.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Through finds the relay of a connection to the port of the agents, by the address that the connection has there.
func (d *Door) Through(remote string) (Passage, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.passages[remote]
	if !ok {
		return Passage{}, false
	}
	return *p, true
}

// cut closes the connections of a relay, and with them those of the hosts behind it.
func (d *Door) cut(id string) {
	d.mu.Lock()
	conns := d.relays[id]
	delete(d.relays, id)
	d.mu.Unlock()
	for c := range conns {
		_ = c.Close() // all streams of it end
	}
}

type connKey struct{}

// relayConn is one connection of a relay. The first request on it decides whose it is.
type relayConn struct {
	net.Conn

	mu    sync.Mutex
	relay string // id; "": not admitted yet
}

// Run serves relays until ctx ends.
func (d *Door) Run(ctx context.Context) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	srv := &http.Server{
		Handler: http.HandlerFunc(d.serve), Protocols: protocols, TLSConfig: d.o.Authority.RelayTLS(),
		ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(d.o.Log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: 64 << 10,
			MaxReceiveBufferPerConnection: 4<<20 - 1, SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, &relayConn{Conn: c})
		},
		ConnState: d.forget,
	}
	done := make(chan error, 1)
	go func() { done <- srv.ServeTLS(d.listener, "", "") }()

	select {
	case err := <-done:
		return fmt.Errorf("cannot serve relays: %w", err)
	case <-ctx.Done():
	}
	_ = d.calls.Close() // never fails
	_ = srv.Close()     // streams of hosts never end by themselves: the relay goes to another server
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serve answers a request of a relay.
func (d *Door) serve(w http.ResponseWriter, r *http.Request) {
	relay, err := d.admit(r)
	if err != nil {
		http.Error(w, "this relay is not admitted: "+err.Error(), http.StatusForbidden)
		return
	}

	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
	case r.URL.Path == enrol.RelayHelloPath:
		var in enrol.RelayHello
		answer(w, r, &in, func() (any, error) { return d.o.Desk.Hello(r.Context(), relay.ID, d.o.Server, in) })
	case r.URL.Path == enrol.RelayRenewPath:
		var in enrol.RelayRenewRequest
		answer(w, r, &in, func() (any, error) { return d.o.Desk.Renew(r.Context(), relay.ID, in) })
	case r.URL.Path == enrol.RelayAgentsPath:
		d.serveAgent(w, r, relay)
	case r.URL.Path == enrol.RelayAPIPath:
		d.serveCall(w, r, relay)
	default:
		http.NotFound(w, r)
	}
}

// admit finds the relay of a request. The certificate of a connection is checked once. Later only whether the relay is
// still there: it renews its certificate without a new connection, so that the hosts behind it keep theirs.
func (d *Door) admit(r *http.Request) (enrol.RelayRecord, error) {
	c := r.Context().Value(connKey{}).(*relayConn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.relay != "" {
		relay, err := d.o.Desk.Active(c.relay)
		if err == nil && time.Now().After(relay.NotAfter) && r.URL.Path != enrol.RelayRenewPath {
			err = errors.New("its certificate has expired")
		}
		return relay, err
	}

	relay, err := d.o.Desk.Admit(r.TLS, r.URL.Path == enrol.RelayRenewPath)
	if err != nil {
		return relay, err
	}
	c.relay = relay.ID
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.relays[relay.ID] == nil {
		d.relays[relay.ID] = map[net.Conn]bool{}
	}
	d.relays[relay.ID][c.Conn] = true
	d.o.Log.Info("relay connected", "relay", relay.ID, "name", relay.Name, "areas", relay.Areas, "from", c.RemoteAddr().String())
	return relay, nil
}

// forget is called when a connection has ended.
func (d *Door) forget(c net.Conn, state http.ConnState) {
	if state != http.StateClosed {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, conns := range d.relays {
		if delete(conns, c); len(conns) == 0 {
			delete(d.relays, id)
		}
	}
}

// answer reads a request in JSON and answers it.
func answer(w http.ResponseWriter, r *http.Request, in any, act func() (any, error)) {
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(in); err != nil {
		http.Error(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	out, err := act()
	if err != nil {
		status := http.StatusServiceUnavailable
		switch gozzard.KindOf(err) {
		case gozzard.ErrInvalid:
			status = http.StatusBadRequest
		case gozzard.ErrUnauthenticated, gozzard.ErrNotFound:
			status = http.StatusForbidden
		}
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the relay sees that the answer is not complete
}
