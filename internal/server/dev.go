package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// The app and the user of `gozzard dev`.
const devApp, devUser = "gozzard_dev", "admin"

// DevOptions are the settings of `gozzard dev`: a server and its agents in one process.
type DevOptions struct {
	Options
	Hosts int
	Cloud int
	// NewAgent makes the agent of one host.
	NewAgent func(DevHost) (Part, error)
	// Ready is called when every host has reported.
	Ready func(DevAddress) error
}

// DevAddress says how people reach `gozzard dev`.
type DevAddress struct {
	URL         string
	Credentials string // the file for callers
	Console     string // link that opens the console once, within a minute; "": the app of dev may not make one
}

// DevHost is one host of `gozzard dev`.
type DevHost struct {
	Data      string // the state folder of its agent
	IP        string
	Cloud     int
	Broker    *nats.Broker // of the server
	Secret    string
	ServerKey signing.Key
	Log       *slog.Logger
}

// RunDev runs a server and its agents until ctx ends. The agents use the fabric inside the process, so only the port of
// the API is opened.
func RunDev(ctx context.Context, o DevOptions) (err error) {
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}

	// Refuse a lost record before anything is written.
	o.dev = true
	o.Login.MaxTokenAge = cmp.Or(o.Login.MaxTokenAge, DefaultTokenAge)
	if _, err := o.checkLost(ctx); err != nil {
		return err
	}

	// Open the server.
	secret, err := keptSecret(filepath.Join(o.Data, "dev.secret"))
	if err != nil {
		return err
	}
	o.JoinSecret, o.FirstApp = secret, FirstApp{devApp, secret}
	s, err := New(ctx, o.Options)
	if err != nil {
		return err
	}

	// Open the agents.
	parts, err := s.newDevAgents(o)
	if err != nil {
		s.Close()
		return err
	}

	return s.run(ctx, append(parts, &devReady{s, o})...)
}

// newDevAgents opens the agents. When one cannot be opened, those before it are closed.
func (s *Server) newDevAgents(o DevOptions) (agents []Part, err error) {
	broker := s.fabric.(*natsFabric).broker
	for i := range o.Hosts {
		ip := "127.0.0." + strconv.Itoa(i+1)
		a, err := o.NewAgent(DevHost{
			Data: filepath.Join(o.Data, "hosts", ip), IP: ip, Cloud: o.Cloud, Broker: broker,
			Secret: s.options.JoinSecret, ServerKey: s.signer.Key(), Log: o.Log.With("host", ip),
		})
		if err != nil {
			for _, a := range agents {
				a.Close()
			}
			return nil, err
		}
		agents = append(agents, a)
	}

	return agents, nil
}

// devReady waits for the hosts and says that the fleet is ready.
type devReady struct {
	s *Server
	o DevOptions
}

// Run writes the credentials when every host has reported, and then waits until ctx ends.
func (d *devReady) Run(ctx context.Context) error {
	if !d.awaitHosts(ctx) {
		return nil
	}

	path := filepath.Join(d.o.Data, "dev.json")
	c := Credentials{URL: d.s.URL(), AppCode: devApp, Secret: d.s.options.FirstApp.Secret, Username: devUser}
	if err := c.Write(path); err != nil {
		return err
	}
	if err := d.o.Ready(DevAddress{URL: d.s.URL(), Credentials: path, Console: d.s.devLink()}); err != nil {
		return err
	}

	<-ctx.Done()
	return nil
}

// devLink is a one-time link to the console. Its session acts as the app of dev for its user, with the same rights as the
// credentials file. An admin can have taken these rights away.
func (s *Server) devLink() string {
	caller := gozzard.Caller{App: devApp, User: devUser, Asserted: true}
	if !s.accounts.Directory().RightsOf(caller).All() {
		return ""
	}
	code, _, err := s.accounts.NewLink(caller)
	if err != nil {
		s.options.Log.Warn("cannot make a link to the console", "err", err)
		return ""
	}
	return api.LinkURL(s.URL(), code)
}

// Close has nothing to close.
func (d *devReady) Close() {}

// awaitHosts reports whether every host is online before ctx ends.
func (d *devReady) awaitHosts(ctx context.Context) bool {
	for {
		online := 0
		for _, h := range d.s.plane.Hosts(gozzard.Caller{Rights: gozzard.Everything()}) {
			if h.Online {
				online++
			}
		}
		if online >= d.o.Hosts {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}
