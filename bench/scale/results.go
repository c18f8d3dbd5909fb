//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
	"github.com/gozzard/gozzard/bench/sheet"
)

// The goals.
const (
	goalAgents = 50_000
	goalMemory = 45.0 // KB for each agent, of all servers together
	goalBack   = 30 * time.Second
	goalFan    = 10 * time.Second
	goalAccept = 2.0 // times the bare transaction
	goalLoss   = 15 * time.Second
)

// results is the result of the run.
type results struct {
	sheet.Sheet
	options  *options
	postgres string
}

func newResults(o *options) *results { return &results{options: o, Sheet: sheet.Sheet{At: time.Now()}} }

func ratio(a, b float64) string {
	if b <= 0 {
		return "below what can be measured"
	}
	return fmt.Sprintf("%.1f×", a/b)
}

func ratioOf(a, b time.Duration) string { return ratio(float64(a), float64(b)) }

// span formats a duration with three digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

func perSecond(d time.Duration) string {
	return fmt.Sprintf("%.0f ms/s", float64(d)/float64(time.Millisecond))
}

// kb is memory for each agent.
func (b *bench) kb(bytes int64) float64 { return float64(bytes) / float64(b.agents) / 1024 }

// add adds everything that was measured.
func (r *results) add(b *bench) error {
	r.postgres = b.pg.version
	r.addRest(b)
	r.addTasks(b)
	r.addLists(b)
	r.addFaults(b)
	if err := r.addHolding(b); err != nil {
		return err
	}
	if err := r.addCosts(b); err != nil {
		return err
	}
	r.Note("%d hosts enrolled one after the other at one server, eight at a time, in %s; %s for each.", b.agents, span(b.m.enrolled),
		span(b.m.enrolled/time.Duration(b.agents)))
	r.Note("All agents had joined, and every server knew all %d processes, after %s.", b.agents*b.processes, span(b.m.joined))
	return nil
}

func (r *results) addRest(b *bench) {
	m := &b.m
	t := r.Table(fmt.Sprintf("%d agents over TLS at %d servers, at rest", b.agents, servers), "servers", "three bare NATS servers, as many connections and messages in, each answered")
	ours, bare := b.kb(m.full-m.empty), b.kb(m.bare.full-m.bare.empty)
	t.Add("memory of all servers for each agent, above that without agents", fmt.Sprintf("%.1f KB", ours), fmt.Sprintf("%.1f KB", bare), ratio(ours, bare),
		fmt.Sprintf("≤ %.0f KB", goalMemory))
	whole, bareWhole := b.kb(m.full), b.kb(m.bare.full)
	t.Add("memory of all servers for each agent, in all", fmt.Sprintf("%.1f KB", whole), fmt.Sprintf("%.1f KB", bareWhole), ratio(whole, bareWhole), "")
	t.Add("CPU of all servers", perSecond(m.rest.servers), perSecond(m.bare.cpu), ratioOf(m.rest.servers, m.bare.cpu), "")
	t.Add("CPU of PostgreSQL", perSecond(m.rest.postgres), "", "", "")
	t.Add("CPU of the simulated hosts", perSecond(m.rest.hosts), "", "", "")
	t.Add("messages of agents, and to agents", fmt.Sprintf("%.0f/s, %.0f/s", m.in, m.out), "", "", "")
	each := time.Duration(0)
	if m.in > 0 {
		each = time.Duration(float64(m.rest.servers) / m.in)
	}
	t.Add("CPU of all servers for each message of an agent", span(each), "", "", "")

	if ours > goalMemory {
		r.miss(b, "memory is %.1f KB for each agent, %.1f above the goal. Bare NATS takes %.1f. Each of the %d servers holds the whole live index; the table of what holds "+
			"the memory has the parts.", ours, ours-goalMemory, bare, servers)
	}
}

func (r *results) addTasks(b *bench) {
	f, a := &b.m.fan, &b.m.accept
	t := r.Table(fmt.Sprintf("One operation on each of %d hosts, median of %d", f.targets, b.rounds), "servers", "bare NATS: a request to each agent, answered")
	t.Add("accepted and durable", span(f.accepted), "", "", "")
	t.Add("all verdicts durable, known to the caller", span(f.whole), span(b.m.bare.fan), ratioOf(f.whole, b.m.bare.fan), fmt.Sprintf("< %.0f s for %d", goalFan.Seconds(), goalAgents))
	t.Add("all results read at another server, page by page", span(f.read), "", "", fmt.Sprintf("< %.0f s for %d", goalFan.Seconds(), goalAgents))
	t.Add("CPU for each operation: servers, PostgreSQL", span(f.cpu.servers)+", "+span(f.cpu.postgres), "", "", "")
	t.Add("share of the simulated hosts in the CPU of all", fmt.Sprintf("%.0f %%", 100*f.cpu.share()), "", "", "")

	t = r.Table(fmt.Sprintf("A task with %d targets, median of %d", a.targets, b.rounds), "servers", "bare PostgreSQL: the same rows in one transaction, by COPY")
	t.Add("accepted and durable", span(a.ours), span(a.bare), ratioOf(a.ours, a.bare), fmt.Sprintf("≤ %.0f×", goalAccept))

	t = r.Table("Size of the record, with indexes", "PostgreSQL", "")
	t.Add("each operation of a task", fmt.Sprintf("%.0f bytes", b.m.attemptBytes), "", "", "")
	t.Add(fmt.Sprintf("everything else, for each host with %d processes", b.processes), fmt.Sprintf("%.1f KB", b.m.hostBytes/1024), "", "", "")

	if f.read > goalFan {
		r.miss(b, "an operation on all hosts took %s, %s above the goal. All parts share %s; the simulated hosts take %.0f %% of the CPU, PostgreSQL %s and the servers %s "+
			"for each operation.", span(f.read), span(f.read-goalFan), "the processors of one machine", 100*f.cpu.share(), span(f.cpu.postgres), span(f.cpu.servers))
	}
	if times := float64(a.ours) / float64(max(a.bare, 1)); times > goalAccept {
		r.miss(b, "a task with %d targets is accepted in %.1f times the bare transaction, the goal is %.0f. The servers used %s of CPU for it and PostgreSQL %s; the table of the "+
			"largest costs has the parts.", a.targets, times, goalAccept, span(a.cpu.servers), span(a.cpu.postgres))
	}
}

func (r *results) addLists(b *bench) {
	all := b.listed * b.processes
	for _, part := range []struct {
		title string
		list  []list
	}{
		{fmt.Sprintf("Pages of %d rows, of %d processes, with the number of all that match; median of %d at each server", pageRows, all, b.looks), b.m.lists},
		{fmt.Sprintf("The same by expressions, in a business of %d processes", all), b.m.expression},
	} {
		t := r.Table(part.title, "each server, over HTTPS", "bare PostgreSQL, a table with indexes for it, over a socket")
		for _, l := range part.list {
			var words []string
			slowest := time.Duration(0)
			for _, d := range l.servers {
				words = append(words, span(d))
				slowest = max(slowest, d)
			}
			t.Add(fmt.Sprintf("%s: %d rows match", l.what, l.rows), strings.Join(words, ", "), span(l.bare), ratioOf(slowest, l.bare), "")
		}
	}
	r.Note("Every server answered for a business of %d processes %s after its record began.", all, span(b.m.applied))
}

func (r *results) addFaults(b *bench) {
	m := &b.m
	t := r.Table(fmt.Sprintf("kill -9 of one of %d servers, with %d agents connected", servers, m.killed), "servers", "bare NATS")
	t.Add(fmt.Sprintf("all have sessions at the others (%d had theirs at the one that was killed; the servers count every 3 s)", m.orphans), span(m.back), span(m.bare.back),
		ratioOf(m.back, m.bare.back), fmt.Sprintf("< %.0f s", goalBack.Seconds()))
	t.Add("both others know that all processes run", span(m.backRows), "", "", "")
	each := m.backCPU.servers / time.Duration(max(m.orphans, 1))
	t.Add("CPU of the others until then, for each agent that came to them", span(each), "", "", "")

	t = r.Table("Hosts are lost: their connections stay, and nothing comes any more", "servers", "")
	t.Add(fmt.Sprintf("all %d servers show the processes of %d lost hosts as unknown (goal < %.0f s)", servers, m.lost, goalLoss.Seconds()), span(m.noticed), "", "", "")

	if m.back > goalBack {
		r.miss(b, "all agents were back %s after the kill, %s above the goal. Bare NATS needed %s. The servers used %s of CPU for it, the simulated hosts %s.",
			span(m.back), span(m.back-goalBack), span(m.bare.back), span(m.backCPU.servers), span(m.backCPU.hosts))
	}
	if m.noticed > goalLoss {
		r.miss(b, "the loss of %d hosts was known to all servers after %s, %s above the goal. A host counts as lost after 14 s of silence, and the rest is the time until all "+
			"rows have changed on all servers.", m.lost, span(m.noticed), span(m.noticed-goalLoss))
	}
}

// addHolding says what holds the memory of all servers.
func (r *results) addHolding(b *bench) error {
	sum := crowd.Holders{}
	for _, s := range b.all {
		h, err := crowd.ReadHolding(filepath.Join(s.o.Profiles, "rest.memory"))
		if err != nil {
			return err
		}
		for kind, n := range h {
			sum[kind] += n
		}
	}
	sum.Settle(b.m.full)
	t := r.Table("What holds the memory of all servers, KB for each agent", "servers", "")
	for _, kind := range crowd.HeldOrder {
		t.Add(kind, fmt.Sprintf("%.1f", b.kb(sum[kind])), "", "", "")
	}
	t.Add("all", fmt.Sprintf("%.1f", b.kb(b.m.full)), "", "", "")
	t.Add("of it without agents", fmt.Sprintf("%.1f", b.kb(b.m.empty)), "", "", "")
	return nil
}

// addCosts names the largest costs.
func (r *results) addCosts(b *bench) error {
	t := r.Table("The largest costs of the first server, in shares of its CPU", "costs", "")
	for _, what := range []string{"rest", "fanout", "accept", "return"} {
		c, err := profile.Read(filepath.Join(b.servers[0].o.Profiles, what+".cpu"))
		if err != nil {
			return err
		}
		t.Add(map[string]string{"rest": "at rest", "fanout": "one operation on each host", "accept": "a large task, until it was accepted", "return": "after the kill of another server"}[what], c.Top(4), "", "", "")
	}
	return nil
}

// miss names a goal that was missed. The goals are those of the full run.
func (r *results) miss(b *bench, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if b.agents != goalAgents {
		line += fmt.Sprintf(" (The goal is for %d agents; this run has %d.)", goalAgents, b.agents)
	}
	r.Miss("%s", line)
}

// Text is the whole page.
func (r *results) Text() string {
	command := "make bench-scale"
	if r.options.agents != goalAgents {
		command = fmt.Sprint("go run ./bench/scale -agents ", r.options.agents, " -listed ", r.options.listed)
	}
	return r.Markdown(sheet.Head{
		Title: "Three servers on one PostgreSQL beside their limits", Command: command,
		Shared:   " (three servers, PostgreSQL, simulated agents, bare NATS), loopback",
		Versions: sheet.Versions(r.postgres, "github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go", "github.com/jackc/pgx/v5"),
		Read: fmt.Sprintf("Every agent is the real agent with its link over a machine in memory, enrolled, with %d running processes; it verifies every signature. Simulated hosts have the same priority as servers: with a lower one they would miss heartbeats whenever servers use the whole machine, which real hosts do not. "+
			"PostgreSQL has its default settings and writes every commit to the disk. CPU is user and system time.", r.options.processes),
	})
}
