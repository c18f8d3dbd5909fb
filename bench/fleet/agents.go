//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/test/sim"
)

const namespace = "bench"

// maxAgents is how many agents one process has: each has a connection and a journal, and files are limited.
const maxAgents = 3000

func procKey(i int) gozzard.Key {
	return gozzard.Key{Namespace: namespace, Name: fmt.Sprintf("process-%02d", i)}
}

func machineOf(i int) string { return fmt.Sprintf("machine-%05d", i) }

// runAgents is a part: simulated hosts.
func runAgents(ctx context.Context, o order) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	fo := sim.FleetOptions{Hosts: o.N, First: o.First, Server: o.Server, Dir: o.Dir, Log: log,
		Fatal: func(err error) { log.Error("cannot go on", "err", err); os.Exit(1) }}

	// Find the key of the server.
	var err error
	if o.Way == wayTLS {
		var ring *signing.KeyRing
		if ring, err = signing.OpenKeyRing(filepath.Join(o.Dir, string(sim.AgentID(o.First))), nil); err == nil {
			fo.ServerKey = ring.Key()
		}
	} else {
		fo.Secret, fo.ServerKey, err = agentd.ReadJoinFile(filepath.Join(o.Data, backup.JoinFile))
	}
	if err != nil {
		return err
	}

	var records []journal.Record
	if o.Template != "" {
		if records, err = readJournal(o.Template); err != nil {
			return err
		}
	}

	// Every host has its own address, its processes, and its certificate.
	fo.Setup = func(i int, dir string, h *sim.Host, link *nats.LinkOptions) error {
		link.From = sim.Addr(0, i).IP
		if o.Template != "" {
			for p := range o.Processes {
				h.Launch(procKey(p))
			}
			if err := copyJournal(records, dir, sim.AgentID(i)); err != nil {
				return err
			}
		}
		if o.Way != wayTLS {
			return nil
		}
		m, err := enrol.LoadMembership(dir)
		if err != nil {
			return err
		}
		link.Secret, link.Machine, link.TLS = "", machineOf(i), enrol.NewRenewer(m, machineOf(i), log).TLS()
		return nil
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
