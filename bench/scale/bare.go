//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
)

const bareSize = 120 // bytes of a message

// bare is what three bare NATS servers cost with as many connections and messages.
type bare struct {
	empty, full int64
	cpu         time.Duration // in a second at rest
	fan         time.Duration // a request to each agent, until all have answered
	killed      int
	back        time.Duration
}

// bareServer is the order of a part: one of three NATS servers, and a client that answers its share of the messages. The client
// connects inside the process, as our hub does.
type bareServer struct {
	N       int
	Dir     string // for the files with its address and with the number of its clients
	Cluster string // address for the others
	Routes  []string
	TLS     *crowd.KeyPair
	Profile string
}

func (o *bareServer) file(name string) string {
	return filepath.Join(o.Dir, name+"-"+strconv.Itoa(o.N))
}

func (o *bareServer) run(ctx context.Context) error {
	profile.Serve(ctx, o.Profile, crowd.WriteHolding)
	so, err := o.options()
	if err != nil {
		return err
	}
	s, err := natsserver.NewServer(so)
	if err != nil {
		return fmt.Errorf("cannot set up NATS: %w", err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(crowd.Patience) {
		return errors.New("cannot start NATS")
	}

	conn, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("cannot connect to NATS: %w", err)
	}
	defer conn.Close()
	if err := crowd.AnswerAll(conn, "hub", bareSize); err != nil {
		return err
	}
	if err := put(o.file("address"), s.Addr().String()); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := put(o.file("clients"), strconv.Itoa(s.NumClients()-1)); err != nil { // without ours
			return err
		}
		crowd.Sleep(ctx, 100*time.Millisecond)
	}
	return nil
}

func (o *bareServer) options() (*natsserver.Options, error) {
	config, err := o.TLS.Config()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(o.Cluster)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	return &natsserver.Options{ServerName: fmt.Sprint("bare", o.N), Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPending: 64 << 20,
		TLSConfig: config, TLSTimeout: crowd.Patience.Seconds(), TLSHandshakeFirst: true,
		Cluster: natsserver.ClusterOpts{Name: "bare", Host: host, Port: number, TLSConfig: config.Clone(), TLSTimeout: crowd.Patience.Seconds()},
		Routes:  natsserver.RoutesFromStr(strings.Join(o.Routes, ","))}, nil
}

// put writes a file that is always whole.
func put(path, text string) error {
	if err := os.WriteFile(path+".part", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// bareRun is the bare cluster while it is measured.
type bareRun struct {
	b       *bench
	dir     string
	orders  []bareServer
	servers []*child.Process
	agents  []*hostPart
	address []string
}

// bare measures the bare cluster.
func (b *bench) bare(ctx context.Context) error {
	b.say("bare NATS")
	r := &bareRun{b: b}
	defer r.stop()
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.rest(ctx); err != nil {
		return err
	}
	if err := r.fan(ctx); err != nil {
		return err
	}
	return r.kill(ctx)
}

func (r *bareRun) stop() {
	for _, a := range r.agents {
		a.Stop()
	}
	crowd.StopAll(r.servers)
}

func (r *bareRun) start(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp(r.b.dir, "bare-"); err != nil {
		return err
	}
	pair, err := crowd.NewKeyPair()
	if err != nil {
		return err
	}
	var routes []string
	for n := range servers {
		o := bareServer{N: n, Dir: r.dir, TLS: pair, Profile: filepath.Join(r.b.profiles, fmt.Sprint("bare", n))}
		if o.Cluster, err = crowd.FreeAddr(); err != nil {
			return err
		}
		if err := os.MkdirAll(o.Profile, 0o755); err != nil {
			return err
		}
		o.Routes = append(o.Routes, routes...)
		routes = append(routes, "nats://"+o.Cluster)
		p, err := crowd.StartPart(r.b.dir, "bare-server", o)
		if err != nil {
			return err
		}
		r.servers, r.orders = append(r.servers, p), append(r.orders, o)
		err = child.Until(ctx, crowd.Patience, "bare NATS", func() (bool, error) {
			text, err := os.ReadFile(o.file("address"))
			if err == nil {
				r.address = append(r.address, string(text))
			}
			return err == nil, err
		}, p)
		if err != nil {
			return err
		}
	}
	r.b.m.bare.empty, err = rssOf(r.servers)
	return err
}

func rssOf(list []*child.Process) (all int64, err error) {
	for _, p := range list {
		n, err := p.RSS()
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// connect connects all agents.
func (r *bareRun) connect(ctx context.Context) error {
	for first := 0; first < r.b.agents; first += r.b.perPart() {
		o := crowd.BareAgents{Server: strings.Join(r.address, ","), Dir: r.dir, First: first, N: min(r.b.perPart(), r.b.agents-first), Size: bareSize,
			TLS: r.orders[0].TLS, Equal: true}
		o.PerSecond = r.b.m.in * float64(o.N) / float64(r.b.agents)
		p, err := crowd.StartPart(r.b.dir, "bare-agents", o)
		if err != nil {
			return err
		}
		r.agents = append(r.agents, &hostPart{Process: p, first: first, n: o.N})
		err = child.Until(ctx, 5*time.Minute, "bare agents", func() (bool, error) {
			_, err := os.Stat(o.ReadyFile())
			return err == nil, err
		}, append(r.servers, p)...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *bareRun) rest(ctx context.Context) (err error) {
	m := &r.b.m.bare
	crowd.Sleep(ctx, r.b.settle)
	before, err := crowd.SpentBy(r.servers)
	if err != nil {
		return err
	}
	began := time.Now()
	crowd.Sleep(ctx, r.b.rest)
	wall := time.Since(began)
	after, err := crowd.SpentBy(r.servers)
	if err != nil {
		return err
	}
	m.cpu = time.Duration(float64(after-before) / wall.Seconds())
	m.full, err = rssOf(r.servers)
	r.b.say("bare NATS: %s/s at rest, %d MB", m.cpu, m.full>>20)
	return err
}

// fan sends a request to each agent through one server, and waits for all answers.
func (r *bareRun) fan(ctx context.Context) error {
	config, err := r.orders[0].TLS.Config()
	if err != nil {
		return err
	}
	conn, err := natsgo.Connect("nats://"+r.address[0], natsgo.Timeout(crowd.Patience), natsgo.Secure(config), natsgo.TLSHandshakeFirst())
	if err != nil {
		return err
	}
	defer conn.Close()
	var answers atomic.Int64
	inbox := natsgo.NewInbox()
	sub, err := conn.Subscribe(inbox, func(*natsgo.Msg) { answers.Add(1) })
	if err != nil {
		return err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}

	var took []time.Duration
	message := make([]byte, bareSize)
	for range r.b.rounds {
		answers.Store(0)
		began := time.Now()
		for i := range r.b.agents {
			if err := conn.PublishRequest("op."+strconv.Itoa(i), inbox, message); err != nil {
				return err
			}
		}
		err := child.Until(ctx, time.Minute, "bare answers", func() (bool, error) {
			n := answers.Load()
			return n >= int64(r.b.agents), fmt.Errorf("%d of %d agents have answered", n, r.b.agents)
		}, r.servers...)
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	r.b.m.bare.fan = middle(took)
	return nil
}

// kill kills one server, with as many connections as in our measurement.
func (r *bareRun) kill(ctx context.Context) error {
	m := &r.b.m.bare
	have := r.b.agents
	for have > r.b.m.killed {
		last := len(r.agents) - 1
		r.agents[last].Stop()
		have -= r.agents[last].n
		r.agents = r.agents[:last]
	}
	m.killed = have
	others := r.servers[:servers-1]
	r.servers[servers-1].Kill()
	r.servers = others
	began := time.Now()
	err := child.Until(ctx, 5*time.Minute, "the bare agents", func() (bool, error) {
		n := 0
		for _, o := range r.orders[:servers-1] {
			text, err := os.ReadFile(o.file("clients"))
			if err != nil {
				return false, err
			}
			count, err := strconv.Atoi(string(text))
			if err != nil {
				return false, err
			}
			n += count
		}
		return n >= have, fmt.Errorf("%d of %d are connected", n, have)
	}, others...)
	m.back = time.Since(began)
	r.b.say("bare NATS: a request to all %s, all back after %s", m.fan, m.back)
	return err
}
