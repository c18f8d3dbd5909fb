package client

import (
	"context"
	"net/http"
	"net/url"
)

// ServerList is every server of an installation.
type ServerList struct {
	Servers []Server `json:"servers"`
}

// Server is one server of an installation. Its times are by the clock of the record's database, because the clocks of
// servers may differ.
type Server struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	URL     string   `json:"url"`     // of its API
	Version string   `json:"version"` // of its program
	Here    bool     `json:"here"`    // it has answered this request
	Started Time     `json:"started_at"`
	Seen    Time     `json:"seen_at"`             // when it last recorded that it runs, every few seconds
	Silent  int      `json:"silent_seconds"`      // since seen_at
	Lag     int      `json:"lag_seconds"`         // how old the knowledge of the answering server about this one is; 0 for itself
	Ahead   int      `json:"clock_ahead_seconds"` // of its clock to the database's, negative: behind; 0 if the difference is small
	Agents  int      `json:"agents"`              // that are connected to it
	Leases  []string `json:"leases"`              // work that only one server does, and that this one does now
	Drained bool     `json:"drained"`             // it takes no agents, for maintenance
}

// Servers lists the servers of the installation.
func (c *Client) Servers(ctx context.Context) (list ServerList, err error) {
	return list, c.get(ctx, "/api/v1/servers", nil, &list)
}

// Draining reports whether a drained server still has agents or work.
func (s *Server) Draining() bool { return s.Drained && (s.Agents > 0 || len(s.Leases) > 0) }

// ServerChange drains a server, or ends that.
type ServerChange struct {
	Drained bool `json:"drained"` // it takes no agents, for maintenance
}

// DrainServer makes a server take no agents, or take them again.
func (c *Client) DrainServer(ctx context.Context, id string, drained bool) (s Server, err error) {
	err = c.write(ctx, http.MethodPut, "/api/v1/servers/"+url.PathEscape(id), ServerChange{Drained: drained}, &s)
	return s, err
}
