//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// The goals, for 10,000 agents on two cores that also carry the agents.
const (
	goalRest      = "≤ 100 ms/s at 10,000"
	goalMemory    = "≤ 45 KB with TLS"
	goalBackPlain = "< 15 s at 10,000"
	goalBackTLS   = "< 30 s at 10,000"
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
}

// results is the result of the run.
type results struct {
	sheet.Sheet
	options options
	rest    *sheet.Table
	memory  *sheet.Table
	back    *sheet.Table
	tops    strings.Builder
}

func newResults(o options) *results {
	r := &results{options: o, Sheet: sheet.Sheet{At: time.Now()}}
	r.rest = r.Table("Server CPU at rest", "server", "bare NATS, as many messages in, each answered")
	r.memory = r.Table("Memory of the server for each agent", "server", "bare NATS")
	r.back = r.Table("From kill -9 of the server until the status of all processes is known again", "time", "until the server answers")
	return r
}

// add adds the figures of one fleet.
func (r *results) add(b *bench, m measured) error {
	what := fmt.Sprintf("%d agents, %s", m.agents, m.way)
	ratio := func(a, b float64) string { return fmt.Sprintf("%.1f×", a/max(b, 1e-9)) }
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms/s", float64(d)/float64(time.Millisecond)) }

	r.rest.Add(what, ms(m.ours.cpu), ms(m.bare.cpu), ratio(float64(m.ours.cpu), float64(m.bare.cpu)), goalRest)
	r.memory.Add(what, fmt.Sprintf("%.1f KB", m.ours.perAgent(m.agents)), fmt.Sprintf("%.1f KB", m.bare.perAgent(m.agents)),
		ratio(m.ours.perAgent(m.agents), m.bare.perAgent(m.agents)), goalMemory)
	goal := goalBackPlain
	if m.way == wayTLS {
		goal = goalBackTLS
	}
	r.back.Add(what, fmt.Sprintf("%.1f s, %.1f s of server CPU", m.back.Seconds(), m.backCPU.Seconds()),
		fmt.Sprintf("%.1f s", m.serving.Seconds()), "", goal)
	r.Note("%s: all had joined for the first time after %.1f s; at rest %.0f messages a second from agents and %.0f to agents.",
		what, m.joined.Seconds(), m.in, m.out)

	if b.profiles == "" {
		return nil
	}
	for _, p := range []struct{ name, kind, flag string }{{"rest", "cpu", ""}, {"return", "cpu", ""},
		{"rest", "heap", "-sample_index=inuse_space"}} {
		if err := r.addTop(b, m, p.name, p.kind, p.flag); err != nil {
			return err
		}
	}
	return nil
}

// addTop adds the top costs of a profile.
func (r *results) addTop(b *bench, m measured, name, kind, flag string) error {
	args := []string{"tool", "pprof", "-top", "-nodecount=25"}
	if flag != "" {
		args = append(args, flag)
	} else {
		args = append(args, "-cum", "-nodecount=60")
	}
	file := filepath.Join(b.profiles, fmt.Sprintf("%s-%d-%s.%s", m.way, m.agents, name, kind))
	text, err := exec.Command("go", append(args, file)...).Output()
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", file, err)
	}
	fmt.Fprintf(&r.tops, "\n## Profile: %s of %d agents, %s, %s\n\n```\n%s```\n", name, m.agents, m.way, kind, text)
	return nil
}

func (r *results) Text() string {
	return r.Markdown(sheet.Head{
		Title: "A large fleet beside its limits", Command: "make bench-fleet",
		Shared:   " (server, simulated agents, bare NATS), loopback",
		Versions: sheet.Versions("", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go"),
		Read: fmt.Sprintf("Every agent is the real agent with its link over a machine in memory, with %d running processes. CPU is user and "+
			"system time of the server's process alone. Memory is resident memory above that of the server without agents, "+
			"divided by the agents.", r.options.processes),
	}) + r.tops.String()
}
