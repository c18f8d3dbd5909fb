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
	Server string // address for agents
	Secret string
	// ServerKey is the key of the server that the hosts trust. All hosts share one key ring: thousands of files would
	// only measure the disk.
	ServerKey signing.Key
	Dir       string // state folders of the agents
	Log       *slog.Logger
	Fatal     func(error)

	// Setup prepares the i-th host and its state folder before its agent starts, and may change how it connects. nil:
	// a host on which nothing runs, that connects with the secret.
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

	ring, err := fleetRing(o)
	if err != nil {
		return err
	}

	written := &notes{path: filepath.Join(o.Dir, Notes), fatal: o.Fatal}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, o.Hosts)
	for i := range o.Hosts {
		wg.Go(func() {
			if errs[i] = runHost(ctx, o, ring, written, o.First+i); errs[i] != nil {
				cancel()
			}
		})
	}

	wg.Wait()
	return errors.Join(errs...)
}

func fleetRing(o FleetOptions) (*signing.KeyRing, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the state folder: %w", err)
	}
	ring, err := signing.OpenKeyRing(o.Dir, nil)
	if err != nil {
		return nil, err
	}
	if o.ServerKey.Epoch < ring.Key().Epoch { // the fleet has received a newer key since
		return ring, nil
	}
	return ring, ring.Trust(o.ServerKey)
}

// proving is the share of hosts that verify signatures: one in so many. Real hosts have their own processors for that.
// Simulated ones share those of one machine, often with the server under test.
const proving = 50

func opener(ring *signing.KeyRing, id gozzard.AgentID, i int) func([]byte) ([]byte, error) {
	if i%proving != 0 {
		return signing.Unproven
	}
	return func(b []byte) ([]byte, error) { return ring.Open(id, b) }
}

func runHost(ctx context.Context, o FleetOptions, ring *signing.KeyRing, written *notes, i int) error {
	// Set up the machine.
	id, addr, machine := AgentID(i), Addr(o.Cloud, i), NewHost()
	machine.name, machine.notes = string(id), written
	dir := filepath.Join(o.Dir, string(id))
	lo := nats.LinkOptions{URL: o.Server, Agent: id, Cloud: o.Cloud, Secret: o.Secret, Log: o.Log,
		Open: opener(ring, id, i)}
	if o.Setup != nil {
		if err := o.Setup(i, dir, machine, &lo); err != nil {
			return err
		}
	}

	// Open the agent and its link.
	a, err := agent.New(agent.Options{
		Dir: dir, Host: machine, Log: o.Log, Fatal: o.Fatal, SampleEvery: time.Minute,
		Simulated: true,
		Info: gozzard.HostInfo{
			Agent: id, Addrs: []gozzard.HostAddr{addr}, Hostname: string(id), OS: "linux", Arch: "sim",
			Version: "sim", BootID: "sim",
			StartedAt: time.Now().Unix(), CPUs: 1, MemBytes: 1 << 30,
		},
	})
	if err != nil {
		return err
	}

	lo.Command, lo.Up, lo.Down = a.Receive, a.Connected, a.Disconnected
	link, err := nats.NewLink(lo)
	if err != nil {
		return err
	}

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
