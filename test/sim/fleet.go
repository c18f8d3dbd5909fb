package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// FleetOptions says how large a simulated fleet is and which server it serves.
type FleetOptions struct {
	Hosts  int
	First  int // number of the first host, so that several programs can share one fleet
	Cloud  int
	Server string // address for agents; several with commas between them; "": those that are named at the enrolment
	Secret string // "" for enrolled hosts
	// ServerKey is the key of the server that the hosts trust. All hosts share one key ring: thousands of files would
	// only measure the disk. Enrolled hosts trust the key that they got with their certificates.
	ServerKey signing.Key

	// API is the URL of a server, or of several: the hosts are enrolled and connect with certificates. TokenFile has a token
	// for those that are no members yet; "": all are.
	API, TokenFile string

	Dir   string // state folders of the agents
	Log   *slog.Logger
	Fatal func(error)

	Behaviour

	// Setup prepares the i-th host and its state folder before its agent starts, and may change how it connects. nil:
	// nothing more than the options say.
	Setup func(i int, dir string, h *Host, link *nats.LinkOptions) error
}

// MaxFleet is how many hosts one simulated fleet can have. Each has its own address in 127.1.0.0/16.
const MaxFleet = 250 * 250

// Addr is the address of the i-th simulated host, counted from 0.
func Addr(cloud, i int) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.AddrFrom4([4]byte{127, 1, byte(1 + i/250), byte(1 + i%250)})}
}

// AgentID is the agent of the i-th simulated host.
func AgentID(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("sim-%05d", i)) }

// RunFleet runs simulated hosts until ctx ends: the real agent with its journal and link, over machines in memory.
func RunFleet(ctx context.Context, o FleetOptions) error {
	if o.Hosts < 1 || o.First < 0 || o.First+o.Hosts > MaxFleet {
		return fmt.Errorf("cannot simulate %d hosts: 1 to %d are possible", o.Hosts, MaxFleet)
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.API != "" {
		if err := o.enrol(ctx); err != nil {
			return err
		}
	}
	ring, err := fleetRing(o)
	if err != nil {
		return err
	}

	written := &notes{path: filepath.Join(o.Dir, Notes), fatal: o.Fatal}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	f := fleet{FleetOptions: &o, ring: ring, written: written}
	errs := make([]error, o.Hosts)
	for i := range o.Hosts {
		wg.Go(func() {
			if errs[i] = f.runHost(ctx, o.First+i); errs[i] != nil {
				cancel()
			}
		})
	}

	f.running.disturb(ctx, &o.Behaviour)
	wg.Wait()
	return errors.Join(errs...)
}

// fleet is a fleet that runs.
type fleet struct {
	*FleetOptions
	ring    *signing.KeyRing
	written *notes
	running running
}

// enrol makes all hosts members, and finds the key that they trust.
func (o *FleetOptions) enrol(ctx context.Context) error {
	if err := Enrol(ctx, *o); err != nil {
		return err
	}
	key, err := o.memberKey()
	o.ServerKey = key
	return err
}

func fleetRing(o FleetOptions) (*signing.KeyRing, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the state folder: %w", err)
	}
	ring, err := signing.OpenKeyRing(o.Dir, nil)
	if err != nil {
		return nil, err
	}
	ring.ShareRoots()                         // real hosts have their own processors for that
	if o.ServerKey.Epoch < ring.Key().Epoch { // the fleet has received a newer key since
		return ring, nil
	}
	return ring, ring.Trust(o.ServerKey)
}

func (f *fleet) runHost(ctx context.Context, i int) error {
	// Set up the machine.
	o, id, machine := f.FleetOptions, AgentID(i), NewHost()
	machine.name, machine.notes = string(id), f.written
	o.apply(i, machine)
	dir := o.folder(i)

	// Say how it connects. Every host verifies every signature.
	lo := nats.LinkOptions{URL: o.Server, Agent: id, Cloud: o.Cloud, Secret: o.Secret, Log: o.Log,
		Open: func(b []byte) ([]byte, error) { return f.ring.Open(id, b) }}
	if o.API != "" {
		if err := o.asMember(i, &lo); err != nil {
			return err
		}
	}
	if o.Setup != nil {
		if err := o.Setup(i, dir, machine, &lo); err != nil {
			return err
		}
	}

	// Open the agent and its link.
	var link *nats.Link
	a, err := agent.New(agent.Options{
		Dir: dir, Host: machine, Log: o.Log, Fatal: o.Fatal, SampleEvery: time.Minute,
		Simulated: true, Files: machine.Files(),
		Servers: func(list []gozzard.ServerAddress) { o.learn(link, list) },
		Info: gozzard.HostInfo{
			Agent: id, Addrs: []gozzard.HostAddr{Addr(lo.Cloud, i)}, Hostname: string(id), OS: "linux", Arch: "sim",
			Version: "sim", BootID: "sim",
			StartedAt: time.Now().Unix(), CPUs: 1, MemBytes: 1 << 30,
		},
	})
	if err != nil {
		return err
	}

	lo.Command, lo.Up, lo.Down = a.Receive, a.Connected, a.Disconnected
	if link, err = nats.NewLink(lo); err != nil {
		return err
	}
	f.running.add(machine, link)

	// Run both.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var errAgent, errLink error
	wg.Go(func() { defer cancel(); errAgent = a.Run(ctx, link) })
	wg.Go(func() { defer cancel(); errLink = link.Run(ctx) })
	wg.Wait()
	return errors.Join(errAgent, errLink)
}
