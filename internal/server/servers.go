package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
)

// serverFile has the id of the server with a data folder.
const serverFile = "server.json"

// How often a server writes its row, and how long a server that is gone is listed.
const (
	serverEvery  = 3 * time.Second
	serverAbsent = 7 * 24 * time.Hour
	removeEvery  = time.Hour
)

// openServer finds the id of this server, and makes what gives it the work that one of all servers does. A server that
// is alone does all of it, and needs no lease.
func (s *Server) openServer(context.Context) (err error) {
	s.opened = time.Now()
	if s.id, err = keptID(s.options.Data); err != nil {
		return err
	}
	if s.options.shared {
		s.leases = lease.New(lease.Options{Store: s.store, Holder: s.id, Log: s.options.Log})
	}
	return nil
}

// keptID is the id of the server with a data folder. It is made once.
func keptID(data string) (id string, err error) {
	path := filepath.Join(data, serverFile)
	var kept struct {
		ID string `json:"id"`
	}

	// Read it.
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &kept)
		if err == nil && (kept.ID == "" || len(kept.ID) > 64) {
			err = errors.New("it has no id")
		}
		if err != nil {
			return "", fmt.Errorf("cannot read the id of this server from %s: %w; remove the file to get a new id", path, err)
		}
		return kept.ID, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the id of this server: %w", err)
	}

	// Make it.
	kept.ID = strings.ToLower(rand.Text())
	if b, err = json.MarshalIndent(kept, "", "  "); err != nil {
		return "", err
	}
	if err := atomicfile.Write(path, append(b, '\n')); err != nil {
		return "", fmt.Errorf("cannot store the id of this server: %w", err)
	}
	return kept.ID, nil
}

// row is this server as the record has it, without times.
func (s *Server) row() record.Server {
	name, err := os.Hostname()
	if err != nil {
		name = s.id
	}
	row := record.Server{ID: s.id, Name: name, URL: s.URL(), Version: s.options.Version, Agents: s.plane.Connected(),
		RelayAddress: s.relayAddress()}
	if s.cluster != nil {
		row.Address, row.AgentAddress = s.cluster.fabric.ClusterAddr(), s.cluster.agentAddress()
		row.Authority, row.Seal = s.trust.authority.Newest(), s.keySync.public()
	}
	return row
}

// keepServer writes the row of this server until ctx ends.
func (s *Server) keepServer(ctx context.Context) error {
	registered := false
	for failed := 0; ; {
		err := s.writeRow(ctx, &registered)
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() == nil:
			if failed++; failed&(failed-1) == 0 { // the log does not repeat every try
				s.options.Log.Error("cannot record that this server runs, trying again", "tries", failed, "err", err)
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(serverEvery):
		}
	}
}

// writeRow records this server, or that it still runs.
func (s *Server) writeRow(ctx context.Context, registered *bool) error {
	if *registered {
		_, err := s.store.RefreshServer(ctx, s.id, s.plane.Connected())
		if gozzard.KindOf(err) != gozzard.ErrNotFound {
			return err
		}
	}
	err := s.store.RegisterServer(ctx, s.row())
	*registered = err == nil
	if err == nil && s.keySync != nil {
		s.keySync.isListed()
	}
	return err
}

// removeServers forgets servers that are gone, until ctx ends.
func (s *Server) removeServers(ctx context.Context) error {
	for {
		n, err := s.store.RemoveServers(ctx, serverAbsent)
		if err != nil && ctx.Err() == nil {
			s.options.Log.Error("cannot remove servers that are gone, trying again later", "err", err)
		}
		if n > 0 {
			s.options.Log.Info("removed servers that are gone", "servers", n, "absent", serverAbsent)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(removeEvery):
		}
	}
}
