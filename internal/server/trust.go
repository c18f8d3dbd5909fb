package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

// TrustOptions say how a server is reached from other machines.
type TrustOptions struct {
	Enrol     bool     // agents on loopback need certificates, too
	Cert, Key string   // files with the certificate of the API and its key; "": the server's own authority makes one
	Names     []string // further names of this server in that certificate
	Address   string   // where agents are asked to connect to; "": the host they joined by and the port of the fabric
}

// trust is what a server has that can be reached from other machines. Everything is nil on a server that serves its own
// machine only.
type trust struct {
	authority *enrol.Authority
	registry  *enrol.Registry // nil: agents need no certificate
	api       *tls.Config
}

// openTrust makes what the addresses of the server need.
func (s *Server) openTrust(ctx context.Context) (err error) {
	o, t := &s.options, &s.trust
	if err := o.Trust.check(); err != nil {
		return err
	}

	// A server for its own machine needs no certificate.
	if !o.enrols() && isLoopbackAddr(o.Listen) && o.Trust.Cert == "" {
		return nil
	}

	// Open the authority, and the certificate of the API.
	if t.authority, err = enrol.NewAuthority(enrol.AuthorityOptions{Dir: o.Data, Life: o.Keys.Life,
		Outside: s.outside, MakeOutside: o.Keys.makes(keyAuthority)}); err != nil {
		return err
	}
	var given func() (*tls.Certificate, error)
	if o.Trust.Cert != "" {
		files := &certFiles{cert: o.Trust.Cert, key: o.Trust.Key, log: o.Log}
		if _, err := files.get(); err != nil {
			return err
		}
		given = files.get
	}
	t.api = t.authority.APITLS(serverNames(o), given)

	// Open the registry of enrolled hosts.
	if !o.enrols() {
		return nil
	}
	ro := enrol.RegistryOptions{
		Store: s.store, Authority: t.authority, Address: s.agentAddress, Key: s.signer.Key,
		// The accounts are opened later. No token is used before.
		Rights:  func(c gozzard.Caller) *gozzard.Rights { return s.accounts.Directory().RightsOf(c) },
		Refused: s.metrics.ReportRefused, Log: o.Log, Servers: s.agentServers,
	}
	if s.second.revoked {
		ro.Ask = s.askReturn
	}
	t.registry, err = enrol.NewRegistry(ctx, ro)
	return err
}

// check finds settings that contradict each other.
func (o *TrustOptions) check() error {
	if _, _, err := net.SplitHostPort(o.Address); err != nil && o.Address != "" {
		return fmt.Errorf("--agent-address %q: use HOST:PORT", o.Address)
	}
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	return nil
}

// agentAddress is where agents are asked to connect to: as configured, else the port alone.
func (s *Server) agentAddress() string {
	if s.options.Trust.Address != "" {
		return s.options.Trust.Address
	}
	_, port, err := net.SplitHostPort(s.fabric.Addr())
	if err != nil {
		return "" // an agent rejects the answer
	}
	return ":" + port
}

// serverNames are all names of this machine and those that were given.
func serverNames(o *Options) []string {
	names := append([]string{"localhost", "127.0.0.1", "::1"}, o.Trust.Names...)

	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	if host, _, err := net.SplitHostPort(o.Listen); err == nil {
		names = append(names, host)
	}

	addrs, err := net.InterfaceAddrs()
	if err != nil {
		o.Log.Warn("cannot list the addresses of this machine for its certificate", "err", err)
	}

	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			names = append(names, p.Addr().String())
		}
	}

	return names
}

// authorityPEM is the authority that callers of this server must trust; "" when it did not make the certificate of the
// API, or there is none.
func (s *Server) authorityPEM() string {
	if s.trust.api == nil || s.options.Trust.Cert != "" {
		return ""
	}
	return string(s.trust.authority.Bundle())
}

// wrap puts TLS around a listener where there is any.
func (t *trust) wrap(l net.Listener) net.Listener {
	if t.api == nil {
		return l
	}
	return tls.NewListener(l, t.api)
}
