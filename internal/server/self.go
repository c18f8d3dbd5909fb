package server

import (
	"context"
	"sync"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/api"
)

// How the server checks itself for callers.
const (
	selfCheckEvery = time.Minute // the checks read the whole record
	selfCheckMax   = 30 * time.Second
)

// selfChecks makes the checks of Options.Check at most once in selfCheckEvery in total.
type selfChecks struct {
	check func(ctx context.Context, data string) []client.Finding
	data  string

	mu       sync.Mutex
	findings []client.Finding
	at       time.Time
}

// Findings returns findings that are at most selfCheckEvery old.
func (c *selfChecks) Findings(ctx context.Context) ([]client.Finding, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < selfCheckEvery {
		return c.findings, c.at
	}

	// A caller that goes away does not make the checks fail for the next one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selfCheckMax)
	defer cancel()
	c.findings = c.check(ctx, c.data)
	c.at = time.Now()
	return c.findings, c.at
}

// self is what the API says about this server.
func (s *Server) self() api.Self {
	self := api.Self{Version: s.options.Version, Started: time.Now(), Servers: s.listServers, Drain: s.drainServer}
	if s.options.Check != nil {
		checks := &selfChecks{check: s.options.Check, data: s.options.Data}
		self.Findings = checks.Findings
	}
	return self
}
