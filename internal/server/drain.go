package server

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

// A drained server names the others to its agents, which go there by themselves. It cuts those that stay: an agent that came
// by an address that was never on its list does not leave it.
const (
	drainPatience = 30 * time.Second // agents learn the list within 10 s and go within another 10 s
	cutAgain      = 5 * time.Minute  // an agent that came back reaches no other server, and must not be cut all the time
	cutShare      = 5                // a look cuts at most one in so many, so that they do not all come at once
)

// drainServer records that a server takes no agents, or that it does again.
func (s *Server) drainServer(ctx context.Context, caller gozzard.Caller, id string, drained bool) (v client.Server, err error) {
	if s.cluster == nil {
		return v, gozzard.Errorf(gozzard.ErrConflict, "this server is alone, so there is no other one that its agents could go to: "+
			"stop it for maintenance, processes go on meanwhile")
	}

	act := "server:drain:"
	if !drained {
		act = "server:undrain:"
	}
	err = s.store.DrainServer(ctx, id, drained, clusterGone, enrol.AuditEntry{At: time.Now(), Caller: caller, What: act + id})
	if err != nil {
		return v, err
	}
	s.cluster.look()

	list, err := s.listServers(ctx)
	for i := range list {
		if list[i].ID == id {
			return list[i], err
		}
	}
	return v, err
}

// drain is what a server that was drained does.
type drain struct {
	s     *Server
	since time.Time // zero: it is not drained
	cut   cutter

	on atomic.Bool // since is not zero, for others
}

// cutter disconnects agents, each of them now and then. It has the time of each.
type cutter map[gozzard.AgentID]time.Time

// tick disconnects some agents.
func (c cutter) tick(s *Server, now time.Time) {
	here := s.plane.Here()
	maps.DeleteFunc(c, func(_ gozzard.AgentID, at time.Time) bool { return now.Sub(at) > cutAgain })
	left := max(10, len(here)/cutShare)
	for agent, cloud := range here {
		if _, done := c[agent]; done || left == 0 || s.isRelayed(cloud) {
			continue
		}
		left--
		c[agent] = now
		s.fabric.Cut(agent, cloud)
	}
}

// set notes whether this server is drained.
func (d *drain) set(drained bool, now time.Time) {
	if drained == !d.since.IsZero() {
		return
	}
	d.on.Store(drained)
	d.s.leases.Rest(drained)
	d.cut = cutter{}
	if !drained {
		d.since = time.Time{}
		d.s.options.Log.Info("this server takes agents again")
		return
	}
	d.since = now
	d.s.options.Log.Info("this server is drained: its agents go to other servers, and it gives up its leases")
}

// tick cuts agents that stay although they learned where to go.
func (d *drain) tick(now time.Time) {
	if d.since.IsZero() || now.Sub(d.since) < drainPatience || len(d.s.agentServers(0)) == 0 {
		return
	}
	d.cut.tick(d.s, now)
}

// isRelayed reports whether the hosts of a cloud area reach servers through relays only. The relay chooses the server.
func (s *Server) isRelayed(cloud int) bool {
	if s.relays.desk == nil {
		return false
	}
	_, has := s.relays.desk.ServersOf(cloud)
	return has
}

// ownRow is the row of a server in the list.
func ownRow(list []record.Server, id string) (v record.Server, ok bool) {
	i := slices.IndexFunc(list, func(v record.Server) bool { return v.ID == id })
	if i < 0 {
		return v, false
	}
	return list[i], true
}
