package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
)

// trustConfig is how a server is reached beyond its own machine.
type trustConfig struct {
	Enrol     bool // also where agents are on loopback
	Cert, Key string
	Names     []string
	Address   string // of the fabric, as agents are told it
}

func (c *trustConfig) register(f *pflag.FlagSet) {
	f.BoolVar(&c.Enrol, "enrol", false, "serve agents by certificates (TLS) also on loopback; always so elsewhere")
	f.StringVar(&c.Cert, "tls-cert", "",
		"certificate `FILE` for callers of the API (default: one of the server's own authority)")
	f.StringVar(&c.Key, "tls-key", "", "`FILE` with the key of --tls-cert")
	f.StringSliceVar(&c.Names, "server-name", nil,
		"further `NAMES` and addresses of this server in its own certificate")
	f.StringVar(&c.Address, "agent-address", "",
		"`HOST:PORT` that agents are told to connect to (default: the host they joined by and the port of --agent-listen)")
}

// trust is what a server that can be reached from elsewhere has: an authority, and a desk when it enrols agents.
// Both nil: it serves its machine only.
type trust struct {
	authority *enrol.Authority
	desk      *enrol.Registry
	api       *tls.Config
}

// enrols reports whether agents come with certificates.
func (c nodeConfig) enrols() bool {
	return c.AgentListen != "" && (c.Trust.Enrol || !isLoopbackAddr(c.AgentListen))
}

// openTrust makes what the addresses of a server ask for.
func (n *node) openTrust(ctx context.Context, refused func(rule string)) (err error) {
	cfg := n.cfg
	if _, _, err := net.SplitHostPort(cfg.Trust.Address); err != nil && cfg.Trust.Address != "" {
		return fmt.Errorf("--agent-address %q: use HOST:PORT", cfg.Trust.Address)
	}
	if (cfg.Trust.Cert == "") != (cfg.Trust.Key == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if !cfg.enrols() && isLoopbackAddr(cfg.Listen) && cfg.Trust.Cert == "" {
		return nil
	}

	t := &n.trust
	if t.authority, err = enrol.OpenAuthority(cfg.Data, nil); err != nil {
		return err
	}

	var given func() (*tls.Certificate, error)

	if cfg.Trust.Cert != "" {
		files := &certFiles{cert: cfg.Trust.Cert, key: cfg.Trust.Key, log: cfg.Log}
		if _, err := files.get(); err != nil {
			return err
		}
		given = files.get
	}

	t.api = t.authority.APITLS(serverNames(cfg), given)

	if !cfg.enrols() {
		return nil
	}

	t.desk, err = enrol.NewRegistry(ctx, enrol.RegistryOptions{
		Store: n.store, Authority: t.authority, Address: n.agentAddress, Key: cfg.Signer.Key, Refused: refused,
		Log: cfg.Log,
	})
	return err
}

// agentAddress is what agents are told to connect to: as configured, else the port alone.
func (n *node) agentAddress() string {
	if n.cfg.Trust.Address != "" {
		return n.cfg.Trust.Address
	}
	_, port, err := net.SplitHostPort(n.broker.Addr())
	if err != nil {
		return "" // an agent refuses the answer
	}
	return ":" + port
}

// brokerOptions says how agents are served.
func (n *node) brokerOptions(refused func(rule string)) nats.BrokerOptions {
	o := nats.BrokerOptions{Listen: n.cfg.AgentListen, Secret: n.cfg.JoinSecret, Refused: refused, Log: n.cfg.Log}
	if n.trust.desk != nil {
		o.TLS, o.Gate, o.Secret = n.trust.authority.FabricTLS(), n.trust.desk, ""
	}
	return o
}

// receive hands reports on. Which addresses an enrolled agent may have is not for it to say alone.
func (n *node) receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if n.restore.Holds() { // it will say HELLO again
		n.refused("restored")
		return
	}
	if n.trust.desk != nil && r.Hello != nil {
		r.Hello.Host.Addrs = n.trust.desk.Addrs(from, r.Hello.Host.Addrs)
	}
	n.plane.Receive(from, cloud, r)
}

// downgraded puts an enrolled agent into quarantine that came back with an older protocol.
func (n *node) downgraded(agent gozzard.AgentID, said, known uint32) {
	if n.trust.desk != nil {
		n.trust.desk.Downgraded(agent, said, known)
	}
}

// serverNames are all names by which this machine knows itself, and those given.
func serverNames(cfg nodeConfig) []string {
	names := append([]string{"localhost", "127.0.0.1", "::1"}, cfg.Trust.Names...)

	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	if host, _, err := net.SplitHostPort(cfg.Listen); err == nil {
		names = append(names, host)
	}

	addrs, err := net.InterfaceAddrs()
	if err != nil {
		cfg.Log.Warn("cannot list the addresses of this machine for its certificate", "err", err)
	}

	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			names = append(names, p.Addr().String())
		}
	}

	return names
}

// certFiles is a certificate that others look after. It is read again when its file changes; a bad one leaves the
// last good one in place.
type certFiles struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	stamp  time.Time
	loaded *tls.Certificate
}

func (f *certFiles) get() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.cert)
	if err == nil && f.loaded != nil && st.ModTime().Equal(f.stamp) {
		return f.loaded, nil
	}

	pair, loadErr := tls.LoadX509KeyPair(f.cert, f.key)
	if err := errors.Join(err, loadErr); err != nil {
		if f.loaded == nil {
			return nil, fmt.Errorf("cannot read the certificate of the API: %w", err)
		}
		f.log.Error("cannot read the certificate of the API again, the last one is used", "err", err)
		return f.loaded, nil
	}

	f.loaded, f.stamp = &pair, st.ModTime()
	return f.loaded, nil
}

// isLoopbackAddr reports whether an address to listen on can only be reached from this machine.
func isLoopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // whoever listens on it says what is wrong
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// listenAPI opens the API's listener: with TLS, or on loopback only, as its requests carry secrets.
func listenAPI(addr string, c *tls.Config) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("--listen %q: use ADDRESS:PORT, such as 127.0.0.1:8080", addr)
	}
	if c == nil && !isLoopbackAddr(addr) {
		return nil, fmt.Errorf("--listen %s: the API is not served in the clear beyond this machine", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API: %w", err)
	}
	return l, nil
}

// authorityPEM is what callers of this server must trust; "" when it shows a certificate of others, or none.
func (n *node) authorityPEM() string {
	if n.trust.api == nil || n.cfg.Trust.Cert != "" {
		return ""
	}
	return string(n.trust.authority.PEM())
}

// wrap puts TLS around a listener where there is any.
func (t *trust) wrap(l net.Listener) net.Listener {
	if t.api == nil {
		return l
	}
	return tls.NewListener(l, t.api)
}
