//go:build linux

package crowd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/test/sim"
)

// MaxHosts is how many hosts one process simulates: each has a connection and a journal, and files are limited.
const MaxHosts = 3000

// Hosts is the order of a part that simulates hosts.
type Hosts struct {
	Equal bool // they do not yield to the servers

	Server   string // address for agents, or several
	API      string // URL of a server, of enrolled hosts
	JoinFile string // of hosts that are not enrolled
	Dir      string // state folders
	First, N int

	Template string        // folder with the journal of the first host, which the others begin with; "": they begin with nothing
	Running  []gozzard.Key // processes that run from the beginning, with a template
}

// RunHosts simulates hosts until ctx ends.
func RunHosts(ctx context.Context, o Hosts) (err error) {
	if !o.Equal {
		if err := child.Yield(); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	fo := sim.FleetOptions{Hosts: o.N, First: o.First, Server: o.Server, API: o.API, Dir: o.Dir, Log: log,
		Fatal: func(err error) { log.Error("cannot go on", "err", err); os.Exit(1) }}
	if o.API == "" {
		if fo.Secret, fo.ServerKey, err = agentd.ReadJoinFile(o.JoinFile); err != nil {
			return err
		}
	}

	var records []journal.Record
	if o.Template != "" {
		if records, err = readJournal(o.Template); err != nil {
			return err
		}
	}

	// Every host has its own address and its processes.
	fo.Setup = func(i int, dir string, h *sim.Host, link *nats.LinkOptions) error {
		link.From = sim.Addr(0, i).IP
		if o.Template == "" {
			return nil
		}
		for _, key := range o.Running {
			h.Launch(key)
		}
		return copyJournal(records, dir, sim.AgentID(i))
	}
	return sim.RunFleet(ctx, fo)
}

// readJournal reads the journal of an agent that does not run.
func readJournal(dir string) ([]journal.Record, error) {
	j, records, err := journal.Open(dir, journal.Options{NoSync: true, Reserve: -1})
	if err != nil {
		return nil, err
	}
	return records, j.Close()
}

// copyJournal gives an agent what the journal of the first one has, under its name.
func copyJournal(records []journal.Record, dir string, id gozzard.AgentID) error {
	j, known, err := journal.Open(dir, journal.Options{NoSync: true, Reserve: -1})
	if err != nil {
		return err
	}
	if len(known) == 0 {
		entries := make([]journal.Entry, len(records))
		first, own := fmt.Appendf(nil, "%q", sim.AgentID(0)), fmt.Appendf(nil, "%q", id)
		for i, r := range records {
			entries[i] = journal.Entry{Type: r.Type, Body: bytes.ReplaceAll(r.Body, first, own)}
		}
		_, err = j.Write(false, entries...)
	}
	return errors.Join(err, j.Close())
}
