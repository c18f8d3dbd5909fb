package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/relay"
)

// RelayOptions make a server one that relays connect to.
type RelayOptions struct {
	Listen  string // address for relays; "": none connect here
	Address string // at which relays reach it; "": that of Listen
}

// checkRelay finds settings that contradict each other.
func (o *Options) checkRelay() error {
	switch {
	case o.Relay.Listen == "" && o.Relay.Address != "":
		return errors.New("--relay-address needs --relay-listen")
	case o.Relay.Listen == "":
		return nil
	case !o.enrols():
		return errors.New("--relay-listen needs hosts with certificates: use --enrol, or an --agent-listen beyond this machine")
	}
	if _, _, err := net.SplitHostPort(o.Relay.Address); err != nil && o.Relay.Address != "" {
		return fmt.Errorf("--relay-address %q: use HOST:PORT", o.Relay.Address)
	}
	return nil
}

// relays are what a server has for relays. All is nil on a server without enrolled hosts, and door on one that relays do
// not connect to.
type relays struct {
	desk *enrol.RelayDesk
	door *relay.Door
}

// openRelays reads the relays, and opens the port for them.
func (s *Server) openRelays(ctx context.Context) (err error) {
	if s.trust.registry == nil {
		return nil
	}
	s.relays.desk, err = enrol.NewRelayDesk(ctx, enrol.RelayDeskOptions{Store: s.store, Authority: s.trust.authority,
		Rights: s.rightsOf, Servers: s.relayServers, Refused: s.metrics.ReportRefused, Log: s.options.Log})
	if err != nil {
		return err
	}
	s.onClose("cannot close the relays", func() error { s.relays.desk.Close(); return nil })
	if s.options.Relay.Listen == "" {
		return nil
	}

	s.relays.door, err = relay.OpenDoor(relay.DoorOptions{Listen: s.options.Relay.Listen, Server: s.id, Desk: s.relays.desk,
		Authority: s.trust.authority, Agents: s.localAgents, Refused: s.metrics.ReportRefused, Log: s.options.Log})
	if err != nil {
		return err
	}
	s.onClose("cannot close the port for relays", s.relays.door.Close)
	return nil
}

// localAgents is where this machine reaches the port of the agents.
func (s *Server) localAgents() string {
	host, port, err := net.SplitHostPort(s.fabric.Addr())
	if err != nil {
		return "" // a dial fails
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() && !ip.Is4In6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// through tells the broker which agents came through a relay; nil: there are none.
func (s *Server) through() nats.Through {
	door := s.relays.door
	if door == nil {
		return nil
	}
	return func(remote string) (nats.Passage, bool) {
		p, ok := door.Through(remote)
		return nats.Passage{Relay: p.Relay.ID, From: p.From.Addr().String(), Areas: p.Relay.Areas}, ok
	}
}

// relayAddress is where relays reach this server: as configured, else where it listens. Without a host it is the one that
// the relay reached.
func (s *Server) relayAddress() string {
	if s.relays.door == nil {
		return ""
	}
	if a := s.options.Relay.Address; a != "" {
		return a
	}
	host, port, err := net.SplitHostPort(s.relays.door.Addr())
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsUnspecified() {
		return net.JoinHostPort(host, port)
	}
	if s.cluster != nil { // other servers name this one, too
		if host, _, err = net.SplitHostPort(s.cluster.fabric.ClusterAddr()); err == nil {
			return net.JoinHostPort(host, port)
		}
	}
	return ":" + port
}

// relayServers are the addresses of all servers for relays, this one first. While it is drained, it is not among them if
// there are others.
func (s *Server) relayServers() []string {
	var list []string
	if own := s.relayAddress(); own != "" {
		list = append(list, own)
	}
	if s.cluster == nil {
		return list
	}
	others := s.cluster.relays.Load()
	if others != nil && len(*others) > 0 && s.cluster.drain.on.Load() {
		return slices.Clone(*others)
	}
	if others != nil {
		for _, a := range *others {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// serveRelayed serves the part of the API that is for hosts to those behind relays, until ctx ends.
func (s *Server) serveRelayed(ctx context.Context) error {
	l := framedListener{tls.NewListener(s.relays.door.Calls(), s.trust.api)}
	srv := &http.Server{
		Handler:           http.HandlerFunc(s.answerRelayed),
		ReadHeaderTimeout: 15 * time.Second, // the way through a relay is longer
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	framed(srv, s.metrics.ReportRefused)
	context.AfterFunc(ctx, func() { _ = srv.Close() }) // a host asks again
	if err := srv.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("cannot serve hosts behind relays: %w", err)
	}
	return nil
}

// hostRoutes are what hosts behind a relay may call: methods and paths, those that end with / with all below.
var hostRoutes = []struct{ method, path string }{
	{http.MethodPost, enrol.JoinPath},
	{http.MethodPost, enrol.RenewPath},
	{http.MethodPost, enrol.LeavePath},
	{http.MethodGet, enrol.ReleasePath + "/"},
	{http.MethodGet, "/join"},
	{http.MethodGet, "/api/v1/enrol/program/"},
}

// forHosts reports whether a request is one that hosts behind a relay may send.
func forHosts(r *http.Request) bool {
	path := r.URL.Path
	if strings.Contains(path, "//") || strings.Contains(path, "..") {
		return false
	}
	for _, h := range hostRoutes {
		if r.Method == h.method && (path == h.path || strings.HasSuffix(h.path, "/") && strings.HasPrefix(path, h.path)) {
			return true
		}
	}
	return false
}

// answerRelayed answers a host behind a relay. Everything but its own routes is hidden: the network behind a relay has no
// way to the API of the servers.
func (s *Server) answerRelayed(w http.ResponseWriter, r *http.Request) {
	if !forHosts(r) {
		s.metrics.ReportRefused("relay_route")
		http.Error(w, "this is a relay: hosts join and renew their certificates here, nothing else. Call the API at a server",
			http.StatusNotFound)
		return
	}

	// A relay says which host a connection is of. No header adds to that.
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		r.Header.Del(h)
	}
	p, ok := passageOf(r)
	if !ok {
		http.Error(w, "this connection came through no relay", http.StatusForbidden)
		return
	}
	if cloud, ok := s.trust.registry.CloudOf(r.TLS); ok && !p.Relay.Serves(cloud) {
		s.metrics.ReportRefused(enrol.RuleRelayArea)
		http.Error(w, "this relay is for other cloud areas than that of this host", http.StatusForbidden)
		return
	}
	s.handler.ServeHTTP(w, r.WithContext(enrol.ThroughRelay(r.Context(), p.Relay)))
}

// passageOf is how the connection of a request came here.
func passageOf(r *http.Request) (relay.Passage, bool) {
	f, ok := r.Context().Value(framedKey{}).(*framedConn)
	if !ok {
		return relay.Passage{}, false
	}
	t, ok := f.Conn.(*tls.Conn)
	if !ok {
		return relay.Passage{}, false
	}
	c, ok := t.NetConn().(*relay.HostConn)
	if !ok {
		return relay.Passage{}, false
	}
	return c.Passage, true
}
