package server

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// listServers lists all servers for callers. A server that is alone writes no row: it knows itself.
func (s *Server) listServers(ctx context.Context) ([]client.Server, error) {
	if s.leases == nil {
		return []client.Server{s.alone()}, nil
	}

	rows, err := s.store.Servers(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := s.store.Leases(ctx)
	if err != nil {
		return nil, err
	}

	list, lag := make([]client.Server, 0, len(rows)), s.plane.Lag()
	for i := range rows {
		v := s.shown(&rows[i])
		if l, ok := lag[v.ID]; ok {
			v.Lag = int(l / time.Second)
		} else if !v.Here { // it was gone when this server started
			v.Lag = v.Silent
		}
		for _, l := range leases {
			if l.Holder == v.ID && l.Left > 0 {
				v.Leases = append(v.Leases, l.Name)
			}
		}
		list = append(list, v)
	}
	return list, nil
}

// alone is this server as callers see it if no other one uses the record. It does all the work.
func (s *Server) alone() client.Server {
	row := s.row()
	row.Started, row.Seen = s.opened, time.Now()
	v := s.shown(&row)
	for _, w := range s.works() {
		v.Leases = append(v.Leases, w.lease)
	}
	slices.Sort(v.Leases)
	return v
}

// shown is a recorded server as callers see it, without its leases.
func (s *Server) shown(r *record.Server) client.Server {
	return client.Server{ID: r.ID, Name: r.Name, URL: r.URL, Version: r.Version, Here: r.ID == s.id,
		Started: client.At(r.Started), Seen: client.At(r.Seen), Silent: int(r.Ago / time.Second), Agents: r.Agents,
		Ahead: int(r.Ahead / time.Second), Leases: []string{}, Drained: r.Drained}
}
