//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
	"github.com/gozzard/gozzard/bench/sheet"
)

// The goals, for 10,000 agents on two cores that also carry the agents.
const (
	goalAgents    = 10_000
	goalRest      = 100 * time.Millisecond // in a second
	goalMemory    = 45.0                   // KB for each agent
	goalBackPlain = 15 * time.Second
	goalBackTLS   = 30 * time.Second
)

// measured is what was measured of one fleet.
type measured struct {
	way     string
	agents  int
	joined  time.Duration // from the start of the agents until the status of all was known
	ours    cost
	bare    cost
	in, out float64 // messages in a second at rest
	serving time.Duration
	back    time.Duration
	backCPU time.Duration

	backAgents float64 // share of the simulated hosts in the CPU of both while they come back

	fan, fanLarge fanned

	files, filesLarge fanned

	generated, released fanned
}

func (m *measured) String() string { return fmt.Sprintf("%d agents, %s", m.agents, m.way) }

// goalBack is the time until all are back.
func (m *measured) goalBack() time.Duration {
	if m.way == wayTLS {
		return goalBackTLS
	}
	return goalBackPlain
}

// results is the result of the run.
type results struct {
	sheet.Sheet
	options options
	rest    *sheet.Table
	memory  *sheet.Table
	fan     *sheet.Table
	files   *sheet.Table
	release *sheet.Table
	back    *sheet.Table
	costs   *sheet.Table
}

func newResults(o options) *results {
	r := &results{options: o, Sheet: sheet.Sheet{At: time.Now()}}
	if o.growth != nil {
		return r
	}
	r.rest = r.Table("Server CPU at rest", "server", "bare NATS, as many messages in, each answered")
	r.memory = r.Table("Memory of the server for each agent", "server", "bare NATS")
	r.fan = r.Table("One task on all hosts, all verdicts durable and read", "time", "server CPU per operation")
	r.files = r.Table("One file written on all hosts, one content for all, all verdicts durable and read", "time", "server CPU per host")
	r.release = r.Table("A configuration file from a template of 20 KB, another content for each host, the end of the job read", "time", "server CPU per host")
	r.back = r.Table("From kill -9 of the server until the status of all processes is known again", "time", "until the server answers")
	r.costs = r.Table("The three largest costs, in shares of the server's CPU", "costs", "")
	return r
}

// add adds the figures of one fleet.
func (r *results) add(b *bench, m *measured) error {
	r.addFigures(m)
	if b.binary != "" {
		return nil
	}

	// Name the largest costs.
	rest, err := b.costsOf("rest", m)
	if err != nil {
		return err
	}
	back, err := b.costsOf("return", m)
	if err != nil {
		return err
	}
	fan, err := b.costsOf("fanout", m)
	if err != nil {
		return err
	}
	r.costs.Add(m.String()+", at rest", rest.Top(3), "", "", "")
	r.costs.Add(m.String()+", tasks", fan.Top(3), "", "", "")
	r.costs.Add(m.String()+", return", back.Top(3), "", "", "")

	// Say what holds memory.
	ours, err := crowd.ReadHolding(filepath.Join(b.profiles, profileName("rest", m.way, m.agents)+".memory"))
	if err != nil {
		return err
	}
	bare, err := crowd.ReadHolding(filepath.Join(b.profiles, profileName("bare", m.way, m.agents)+".memory"))
	if err != nil {
		return err
	}
	r.addHolding(m, ours, bare)
	r.addMissed(m, rest, fan, back, ours)
	return nil
}

func (r *results) addFigures(m *measured) {
	ratio := func(a, b float64) string { return fmt.Sprintf("%.1f×", a/max(b, 1e-9)) }
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms/s", float64(d)/float64(time.Millisecond)) }

	r.rest.Add(m.String(), ms(m.ours.cpu), ms(m.bare.cpu), ratio(float64(m.ours.cpu), float64(m.bare.cpu)),
		fmt.Sprintf("≤ %s at %d", ms(goalRest), goalAgents))
	ours, bare := m.ours.perAgent(m.agents), m.bare.perAgent(m.agents)
	r.memory.Add(m.String(), fmt.Sprintf("%.1f KB", ours), fmt.Sprintf("%.1f KB", bare), ratio(ours, bare),
		fmt.Sprintf("≤ %.0f KB with TLS", goalMemory))
	r.addFan(m)
	r.addFiles(m)
	r.addRelease(m)
	r.back.Add(m.String(), fmt.Sprintf("%.1f s, %.1f s of server CPU; the simulated hosts take %.0f %% of the CPU of both", m.back.Seconds(),
		m.backCPU.Seconds(), 100*m.backAgents),
		fmt.Sprintf("%.1f s", m.serving.Seconds()), "", fmt.Sprintf("< %.0f s at %d", m.goalBack().Seconds(), goalAgents))
	r.Note("%s: all had joined for the first time after %.1f s; at rest %.0f messages a second from agents and %.0f to agents.",
		m, m.joined.Seconds(), m.in, m.out)
}

// addHolding adds the table of what holds memory.
func (r *results) addHolding(m *measured, ours, bare crowd.Holders) {
	t := r.Table("What holds memory: "+m.String()+", KB for each agent", "server", "bare NATS")
	kb := func(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/float64(m.agents)/1024) }
	ours.Settle(m.ours.full)
	bare.Settle(m.bare.full)

	for _, kind := range crowd.HeldOrder {
		t.Add(kind, kb(ours[kind]), kb(bare[kind]), "", "")
	}
	t.Add("all", kb(m.ours.full), kb(m.bare.full), "", "")
	t.Add("of it without agents", kb(m.ours.empty), kb(m.bare.empty), "", "")
}

// addMissed says of each goal that is missed by how much and why.
func (r *results) addMissed(m *measured, rest, fan, back profile.Costs, ours crowd.Holders) {
	if m.agents != goalAgents {
		return
	}
	miss := func(format string, args ...any) {
		r.Miss("%s: %s", m, fmt.Sprintf(format, args...))
	}

	if over := m.ours.cpu - goalRest; over > 0 {
		miss("at rest %.0f ms/s above the goal of %.0f. Bare NATS with the same messages takes %.0f. The largest costs are %s.",
			float64(over)/1e6, float64(goalRest)/1e6, float64(m.bare.cpu)/1e6, rest.Top(3))
	}
	if over := m.ours.perAgent(m.agents) - goalMemory; over > 0 && m.way == wayTLS {
		miss("memory %.1f KB above the goal of %.0f for each agent. Bare NATS takes %.1f. The largest parts are %s.", over,
			goalMemory, m.bare.perAgent(m.agents), ours.Top(3, m.agents))
	}
	m.missedFan(fan, miss)
	if over := m.back - m.goalBack(); over > 0 {
		miss("all were back %.1f s after the goal of %.0f s. %.1f s of the server's CPU went into it, %.1f s passed before it "+
			"answered. Server and simulated hosts share the two cores, and the hosts take %.0f %% of what both use. The largest "+
			"costs of the server are %s.", over.Seconds(), m.goalBack().Seconds(), m.backCPU.Seconds(), m.serving.Seconds(),
			100*m.backAgents, back.Top(3))
	}
}

// Text is the whole page.
func (r *results) Text() string {
	if r.options.growth != nil {
		return r.growthText()
	}
	return r.Markdown(sheet.Head{
		Title: "A large fleet beside its limits", Command: "make bench-fleet",
		Shared:   " (server, simulated agents, bare NATS), loopback",
		Versions: sheet.Versions("", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go"),
		Read: fmt.Sprintf("Every agent is the real agent with its link over a machine in memory, with %d running processes. Simulated hosts have a lower priority (nice 10) than the server: real ones have processors that are not the server's. CPU is user and "+
			"system time of the server's process alone. Memory is resident memory above that of the server without agents, "+
			"divided by the agents.", r.options.processes),
	})
}
