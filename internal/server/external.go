package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/nats"
)

// ExternalOptions say how this server uses a NATS cluster that is not Gozzard's to reach the other servers.
type ExternalOptions struct {
	URLs        []string // of its brokers; none: it is not used
	CA          string   // file with its authorities; "": those of the system
	Credentials string   // file with a user and a password, or with a JWT and its seed; "": none
	Cert, Key   string   // files with the certificate of this server there; "": none
}

// checkExternal finds settings that an external NATS cluster needs.
func (o *Options) checkExternal() error {
	x := &o.Cluster.External
	if (x.Cert == "") != (x.Key == "") {
		return errors.New("--cluster-nats-cert and --cluster-nats-key go together")
	}
	if x.Key != "" {
		if err := atomicfile.Check(x.Key); err != nil {
			return fmt.Errorf("--cluster-nats-key: %w", err)
		}
	}

	// The name of this machine is known from --cluster-address otherwise.
	if o.Trust.Address == "" && namesNoMachine(o.AgentListen) {
		return fmt.Errorf("--cluster-nats needs --agent-address HOST:PORT: agents of other servers learn it, and --agent-listen %s "+
			"names no machine", o.AgentListen)
	}
	if o.Relay.Listen != "" && o.Relay.Address == "" && namesNoMachine(o.Relay.Listen) {
		return fmt.Errorf("--cluster-nats needs --relay-address HOST:PORT: relays of other servers learn it, and --relay-listen %s "+
			"names no machine", o.Relay.Listen)
	}
	return nil
}

// namesNoMachine reports whether an address to listen on is for all addresses of the machine.
func namesNoMachine(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false // to listen on it fails with a better message
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// natsUser is a file with a user of the NATS cluster.
type natsUser struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// login says how the server authenticates itself. A file is read again for each connection, so it can be replaced.
func (o *ExternalOptions) login(to *nats.ExternalOptions) error {
	if o.Credentials == "" {
		return nil
	}
	b, err := o.readCredentials()
	if err != nil {
		return err
	}
	if bytes.Contains(b, []byte("BEGIN NATS USER JWT")) {
		to.Creds = o.Credentials
		return nil
	}

	last, err := parseNATSUser(b)
	if err != nil {
		return fmt.Errorf("--cluster-nats-credentials %s: %w", o.Credentials, err)
	}
	log := to.Log
	to.User = func() (name, password string) { // never two at a time
		b, err := o.readCredentials()
		now := last
		if err == nil {
			now, err = parseNATSUser(b)
		}
		if err != nil {
			log.Error("cannot read the credentials of the NATS cluster again, the last ones are used", "err", err)
			return last.User, last.Password
		}
		last = now
		return last.User, last.Password
	}
	return nil
}

// readCredentials reads a file that no other account can read.
func (o *ExternalOptions) readCredentials() ([]byte, error) {
	b, err := os.ReadFile(o.Credentials)
	if err == nil {
		err = atomicfile.Check(o.Credentials)
	}
	if err != nil {
		return nil, fmt.Errorf("--cluster-nats-credentials: %w", err)
	}
	return b, nil
}

func parseNATSUser(b []byte) (u natsUser, err error) {
	if err := json.Unmarshal(b, &u); err != nil || u.User == "" || u.Password == "" {
		return u, errors.New(`the file has neither {"user": …, "password": …} nor a JWT of a NATS user`)
	}
	return u, nil
}

// openExternal makes the way to the other servers through an external NATS cluster. It connects when the server runs.
func (s *Server) openExternal(ctx context.Context) error {
	x := &s.options.Cluster.External
	installation, err := s.store.Installation(ctx)
	if err != nil {
		return err
	}
	seal, err := s.trust.authority.NewPeerSeal(installation, s.id)
	if err != nil {
		return err
	}

	o := nats.ExternalOptions{URLs: x.URLs, Server: s.id, Installation: installation, CA: x.CA, Cert: x.Cert, Key: x.Key,
		Seal: seal, Peer: s.hearPeer, Log: s.options.Log}
	if err := x.login(&o); err != nil {
		return err
	}
	if s.external, err = nats.NewExternal(o); err != nil {
		return fmt.Errorf("--cluster-nats: %w", err)
	}
	s.onClose("cannot close the connection to the NATS cluster", func() error { s.external.Close(); return nil })
	s.cluster, s.keySync = newCluster(s, s.external), newKeySync(s)
	return nil
}
