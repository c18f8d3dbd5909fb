package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

const (
	helloEvery = 5 * time.Second
	firstPause = 250 * time.Millisecond
	longPause  = 8 * time.Second
	renewPause = 30 * time.Second // after a renewal that failed

	// A relay leaves a server that the servers name no more, at a random moment within this time. If it found no other one
	// and came back, it stays for a while: each time, all hosts behind it have to connect again.
	leaveWithin = 10 * time.Second
	cameBack    = 5 * time.Minute

	maxHostConn = maxStreams - 64 // some streams stay free for the relay itself
)

// Options are the settings of `gozzard relay`.
type Options struct {
	Data      string
	Listen    string // HOST:PORT for agents
	APIListen string // HOST:PORT for enrolment and renewal
	Address   string // host at which hosts reach this machine; "": that of Listen, or the one that they joined with

	Log *slog.Logger
}

// Relay carries connections of hosts to a server.
type Relay struct {
	o           Options
	state       *state
	agents, api net.Listener

	present present
	hosts   atomic.Int64 // connections of agents
	all     atomic.Int64 // connections of hosts
	carried sync.WaitGroup

	renewNotBefore time.Time // after a failure
}

// New reads the state of a relay and opens its ports. Nothing is served before Run.
func New(o Options) (*Relay, error) {
	s, err := readState(o.Data)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(o.Address) == nil && o.Address != "" && !plainName(o.Address) {
		return nil, fmt.Errorf("--address %q: use the name or the address of this machine, without a port", o.Address)
	}

	r := &Relay{o: o, state: s}
	if r.agents, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("cannot serve agents: %w", err)
	}
	if r.api, err = net.Listen("tcp", o.APIListen); err != nil {
		_ = r.agents.Close()
		return nil, fmt.Errorf("cannot serve hosts that join: %w", err)
	}
	return r, nil
}

// plainName reports whether a text can be a host name.
func plainName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return len(s) <= 253
}

// Run carries connections until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	m := &r.state.Member
	r.o.Log.Info("relay started", "relay", m.ID, "name", m.Name, "areas", m.Areas, "agents", r.agents.Addr().String(),
		"api", r.api.Addr().String(), "servers", r.state.Servers)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _, _ = r.agents.Close(), r.api.Close() }) // the end of both

	var wg sync.WaitGroup
	var failed [2]error
	wg.Go(func() { defer cancel(); failed[0] = r.accept(ctx, r.agents, enrol.RelayAgentsPath) })
	wg.Go(func() { defer cancel(); failed[1] = r.accept(ctx, r.api, enrol.RelayAPIPath) })
	wg.Go(func() { r.keepConnected(ctx) })
	wg.Wait()
	r.carried.Wait()
	return errors.Join(failed[:]...)
}

// accept carries the connections of one port. While no server is reached, they are closed: the hosts try again.
func (r *Relay) accept(ctx context.Context, l net.Listener, path string) error {
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close() // there is nothing to do about an error
			}
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			r.o.Log.Error("cannot accept connections of hosts: they wait. If too many files are open, raise the limit of open "+
				"files (ulimit -n, LimitNOFILE= in the unit)", "err", err)
			time.Sleep(firstPause)
			continue
		}

		if r.all.Load() >= maxHostConn {
			_ = c.Close() // there is nothing to do about an error
			continue
		}
		r.all.Add(1)
		r.carried.Go(func() {
			defer r.all.Add(-1)
			u := r.present.get(ctx.Done())
			if u == nil {
				_ = c.Close() // there is nothing to do about an error
				return
			}
			if path == enrol.RelayAgentsPath {
				r.hosts.Add(1)
				defer r.hosts.Add(-1)
			}
			u.carry(c, path)
		})
	}
}

// keepConnected keeps a connection to one server, until ctx ends. When it is lost, all connections of hosts end with it,
// and the next server is tried.
func (r *Relay) keepConnected(ctx context.Context) {
	pause, last := firstPause, ""
	for ctx.Err() == nil {
		began := time.Now()
		if at := r.followOne(ctx, last); at != "" {
			pause, last = firstPause, at
			if time.Since(began) > longPause {
				continue // the others are tried at once
			}
		}

		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, longPause)
	}
}

// followOne connects to the first server that can be reached and stays there until the connection is lost. It returns that
// server, or "".
func (r *Relay) followOne(ctx context.Context, last string) string {
	for _, at := range r.order(last) {
		if r.follow(ctx, at) {
			return at
		}
		if ctx.Err() != nil {
			return ""
		}
	}
	return ""
}

// order is the servers in random order, so that relays spread evenly. The one of the connection that was lost is last, also
// if the servers name it no more: a drained server is better than none.
func (r *Relay) order(last string) []string {
	list := slices.DeleteFunc(slices.Clone(r.state.Servers), func(at string) bool { return at == last })
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if last != "" {
		list = append(list, last)
	}
	return list
}

// follow connects to a server and stays until the connection is lost. It reports whether there was a connection.
func (r *Relay) follow(ctx context.Context, at string) bool {
	u, err := dial(ctx, at, r.state.tlsConfig())
	if err == nil && time.Now().After(r.state.Member.NotAfter()) {
		err = r.renew(ctx, u)
	}
	if err == nil {
		err = r.hello(ctx, u)
	}
	if err != nil {
		u.close()
		if ctx.Err() == nil {
			r.o.Log.Warn("cannot reach a server, trying the next", "server", at, "err", err)
		}
		return false
	}

	r.o.Log.Info("connected to a server", "server", at)
	r.present.set(u)
	err = r.stay(ctx, u)
	r.present.set(nil)
	u.close()
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errNotNamed):
		r.o.Log.Info("leaving a server that takes no hosts any more: they connect again through the next one", "server", at)
	default:
		r.o.Log.Warn("connection to the server is lost: hosts connect again through the next one", "server", at, "err", err)
	}
	return true
}

// errNotNamed is why a relay leaves a server.
var errNotNamed = errors.New("the server is not one that this relay may use")

// stay says hello again and again, and renews the certificate, until the connection is lost or the servers name this one
// no more.
func (r *Relay) stay(ctx context.Context, u *upstream) error {
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	patience := leaveWithin
	if !r.isNamed(u.at) {
		patience += cameBack
	}
	var leave <-chan time.Time // nil: it stays
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-u.lost:
			return errors.New("the server closed it, or does not answer")
		case <-leave:
			return errNotNamed
		case <-tick.C:
		}

		// First the certificate: a server does not answer the hello of a relay with an expired one.
		r.renewInTime(ctx, u)
		if err := r.hello(ctx, u); err != nil {
			return err
		}
		switch named := r.isNamed(u.at); {
		case named:
			leave, patience = nil, leaveWithin
		case leave == nil:
			leave = time.After(patience - rand.N(leaveWithin))
		}
	}
}

// isNamed reports whether a server is one that the servers name to this relay.
func (r *Relay) isNamed(at string) bool { return slices.Contains(r.state.Servers, at) }

// renewInTime renews the certificate when two thirds of its life are over, and when the servers have other authorities.
func (r *Relay) renewInTime(ctx context.Context, u *upstream) {
	m, now := &r.state.Member, time.Now()
	if u.authorities == m.Authority && now.Before(m.RenewAt()) || now.Before(r.renewNotBefore) {
		return
	}
	if err := r.renew(ctx, u); err != nil {
		r.renewNotBefore = now.Add(renewPause)
		r.o.Log.Warn("cannot renew the certificate of this relay, trying again", "err", err, "expires", m.NotAfter())
		return
	}
	r.o.Log.Info("certificate of this relay renewed", "expires", r.state.Member.NotAfter())
}

// hello says that the relay is there, and takes over what the server answers.
func (r *Relay) hello(ctx context.Context, u *upstream) error {
	var out enrol.RelayWelcome
	in := enrol.RelayHello{Agents: r.reachedAt(r.agents), API: r.reachedAt(r.api), Hosts: int(r.hosts.Load())}
	if err := u.call(ctx, enrol.RelayHelloPath, in, &out); err != nil {
		return err
	}
	u.authorities = out.Authorities
	if r.state.learn(out.Servers, u.at) {
		r.o.Log.Info("this relay may use these servers", "servers", r.state.Servers)
		r.keep()
	}
	return nil
}

// keep stores the state. The relay goes on without: it has everything in memory.
func (r *Relay) keep() {
	if err := r.state.write(r.o.Data); err != nil {
		r.o.Log.Error("cannot keep the state of this relay; it is used until the relay ends", "err", err)
	}
}

// reachedAt is where hosts reach a port of this machine. The host is missing if it is not known.
func (r *Relay) reachedAt(l net.Listener) string {
	ap, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return ""
	}
	host := r.o.Address
	if host == "" && !ap.Addr().IsUnspecified() {
		host = ap.Addr().Unmap().String()
	}
	return net.JoinHostPort(host, fmt.Sprint(ap.Port()))
}

// renew gets a certificate for a new key. The connection stays.
func (r *Relay) renew(ctx context.Context, u *upstream) error {
	key, req, err := r.state.Member.NewKey()
	if err != nil {
		return err
	}
	var out enrol.RelayAnswer
	if err := u.call(ctx, enrol.RelayRenewPath, req, &out); err != nil {
		return err
	}
	next, err := r.state.Member.Apply(out, key)
	if err != nil {
		return err
	}
	r.state.Member = *next
	r.keep()
	return nil
}
