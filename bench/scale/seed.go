//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/sim"
)

// The limits of this machine that bound a run.
const (
	spareFiles = 1500       // of a server, for everything but agents, and because agents do not spread quite evenly
	eachMemory = 1280 << 10 // that an agent needs on both sides, with the journal of its simulated host and with room for PostgreSQL
)

// fit makes the run smaller if the machine cannot carry it, and says why.
func (b *bench) fit() error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("cannot read how many files a process may open: %w", err)
	}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return fmt.Errorf("cannot read how much memory there is: %w", err)
	}

	b.m.room = int(files.Max) - spareFiles
	asked := b.agents
	b.listed = max(b.listed, asked)
	for _, l := range []struct {
		most int
		why  string
	}{
		{servers * b.m.room, fmt.Sprintf("a process may open %d files, and %d servers need one for each agent", files.Max, servers)},
		{int(info.Totalram * uint64(info.Unit) / eachMemory), fmt.Sprintf("the machine has %d GB of memory", info.Totalram*uint64(info.Unit)>>30)},
		{sim.MaxFleet, "the simulator has no more addresses"},
	} {
		if b.agents > l.most {
			b.agents = l.most
			b.res.Note("%d agents and not %d: %s.", b.agents, asked, l.why)
		}
	}
	if b.listed > b.agents {
		b.res.Note("%d more hosts are in the record, and in every list, without an agent.", b.listed-b.agents)
	}
	if b.agents < 4 {
		return errors.New("this machine cannot carry a run: see how many files a process may open (ulimit -n)")
	}
	return nil
}

// business is the one that all processes belong to.
const business = 2

func (b *bench) namespace() string { return topology.Namespace(business) }

func procName(i int) string { return fmt.Sprintf("process-%02d", i) }

// keys are the first processes of each host.
func (b *bench) keys(n int) (list []gozzard.Key) {
	for i := range n {
		list = append(list, topology.Key(business, procName(i), 1))
	}
	return list
}

// perPart is how many hosts a process simulates.
func (b *bench) perPart() int { return min(crowd.MaxHosts, (b.agents+3)/4) }

func (b *bench) hostsDir(first int) string { return filepath.Join(b.shm, strconv.Itoa(first)) }

// prepare makes an installation and the state of a fleet: all hosts are enrolled through the API, and the processes are
// registered and started on the first host through the API. The other hosts get copies of its journal and of its rows in the
// record, and so do hosts that are only listed.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.makeServers(ctx); err != nil {
		return err
	}
	if err := b.enrolAll(ctx); err != nil {
		return err
	}

	// Register and start the processes of the first host.
	first, err := crowd.StartPart(b.dir, "hosts", crowd.Hosts{Server: b.servers[0].o.Agents, API: b.servers[0].Base, Dir: b.hostsDir(0), N: 1})
	if err != nil {
		return err
	}
	defer first.Stop()
	if err := b.servers[0].RegisterAll(ctx, b.keys(b.processes), first); err != nil {
		return err
	}
	if err := b.awaitAll(ctx, b.servers[:1], 1); err != nil {
		return err
	}
	first.Stop()
	if err := crowd.Template(filepath.Join(b.hostsDir(0), string(sim.AgentID(0))), b.template()); err != nil {
		return err
	}

	// Copy what the record has of it.
	b.stopServers()
	store, err := sqlstore.OpenPostgres(ctx, b.pg.URL(database), sqlstore.Options{Log: slog.New(slog.DiscardHandler), Fatal: func(error) {}, Sole: true})
	if err != nil {
		return err
	}
	if err := errors.Join(crowd.CopyProcesses(ctx, store, b.listed), store.Close()); err != nil {
		return err
	}
	return b.pg.exec(ctx, "VACUUM ANALYZE")
}

func (b *bench) template() string { return filepath.Join(b.shm, "template") }

func (b *bench) enrolAll(ctx context.Context) error {
	began := time.Now()
	file := filepath.Join(b.dir, "token")
	if err := b.servers[0].Token(ctx, b.agents, file); err != nil {
		return err
	}
	for first := 0; first < b.agents; first += b.perPart() {
		err := sim.Enrol(ctx, sim.FleetOptions{Hosts: min(b.perPart(), b.agents-first), First: first, API: b.servers[0].Base, TokenFile: file,
			Dir: b.hostsDir(first)})
		if err != nil {
			return err
		}
	}
	b.m.enrolled = time.Since(began)
	b.say("%d hosts enrolled in %s", b.agents, b.m.enrolled.Round(time.Second))
	return nil
}

// join starts everything, and waits until every server knows all processes. One process with simulated hosts joins after the
// other: all at once they would take the processors from the servers, which real hosts cannot.
func (b *bench) join(ctx context.Context) (err error) {
	if err := b.startServers(ctx); err != nil {
		return err
	}
	crowd.Sleep(ctx, b.settle/5) // what only the start needed is given back
	if b.m.empty, err = b.rss(); err != nil {
		return err
	}

	began := time.Now()
	for first := 0; first < b.agents; first += b.perPart() {
		h := &hostPart{first: first, n: min(b.perPart(), b.agents-first)}
		h.Process, err = crowd.StartPart(b.dir, "hosts", crowd.Hosts{Server: b.agentAddrs(), API: b.servers[0].Base, Dir: b.hostsDir(first),
			Equal: true, First: first, N: h.n, Template: b.template(), Running: b.keys(b.processes)})
		if err != nil {
			return err
		}
		b.hosts = append(b.hosts, h)
		if err := b.awaitAll(ctx, b.servers, first+h.n); err != nil {
			return err
		}
		b.say("%d are there after %s", first+h.n, time.Since(began).Round(time.Second))
	}
	b.m.joined = time.Since(began)
	b.say("all there after %s", b.m.joined.Round(100*time.Millisecond))
	return nil
}

// stopHosts stops the last n processes with simulated hosts.
func (b *bench) stopHosts(n int) {
	for range n {
		last := len(b.hosts) - 1
		b.hosts[last].Stop()
		b.hosts = b.hosts[:last]
	}
}

// hostCount is how many hosts run.
func (b *bench) hostCount() (n int) {
	for _, h := range b.hosts {
		n += h.n
	}
	return n
}
