package server

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// Limits are the limits of a server. The zero value has none, as `gozzard dev`.
type Limits struct {
	ratelimit.Options
	InFlight  int         // attempts of one app without a verdict; 0: any number
	Agent     nats.Limits // what one agent may send
	HelloRate float64     // sessions of agents opened in a second; 0: any number

	AgentConnections int // open connections to the port of the agents; 0: any number
}

// DefaultLimits are the limits of `gozzard server`.
func DefaultLimits() Limits {
	return Limits{Options: ratelimit.Default(), InFlight: 100_000, Agent: nats.DefaultLimits(), HelloRate: 2000,
		AgentConnections: 50_000}
}

// ofAgents is what one agent may send, in the numbers of package nats.
func (l *Limits) ofAgents() nats.Limits {
	a := l.Agent
	a.Messages, a.Bytes = offBelowZero(a.Messages), offBelowZero(a.Bytes)
	return a
}

// silent is how many connections of one address to the port of the agents may not have authenticated. They are at most
// a quarter of all, so that one address cannot keep the agents out.
func (l *Limits) silent() int {
	if l.Connections <= 0 || l.AgentConnections <= 0 {
		return l.Connections
	}
	return min(l.Connections, max(1, l.AgentConnections/4))
}

// offBelowZero turns a rate of the options, where 0 is no limit, into one of the parts, where 0 is their default.
func offBelowZero(rate float64) float64 {
	if rate <= 0 {
		return -1
	}
	return rate
}

// Plane is the control plane of a server. Every operation passes the limits first, whatever door it came through.
type Plane struct {
	*control.Plane
	guard *ratelimit.Guard
}

// Operate accepts an operation that is within the limits, or asks the caller to confirm it.
func (p *Plane) Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	if op.Door == api.Door {
		err := p.guard.Operation(op, ratelimit.Visible{
			Processes: func() int {
				n, _ := p.Find(op.Caller, fleet.Filter{}, 0, 0)
				return n
			},
			Hosts: func() int { return len(p.Hosts(op.Caller)) },
		})
		if err != nil {
			return gozzard.Task{}, err
		}
	}
	return p.Plane.Operate(ctx, op)
}

// WriteFiles is Operate for files: they pass the same limits.
func (p *Plane) WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error) {
	whole, err := control.OperationOf(op)
	if err != nil {
		return gozzard.Task{}, err
	}
	return p.Operate(ctx, whole)
}

// admission counts operations against the quotas of their callers.
type admission struct {
	guard  *ratelimit.Guard
	shared bool // the record counts the quotas of an hour, for all servers
}

// Counts implements control.Admission.
func (a admission) Counts(act gozzard.Action) bool {
	return slices.Contains(ratelimit.DestructiveActions(), act)
}

// Spend implements control.Admission. Only callers of the native API can confirm. What follows from a topology was
// checked with its document, and what the server does by itself has no quota.
func (a admission) Spend(op *gozzard.Operation, c control.Cost) (control.Admitted, error) {
	above := ratelimit.AboveReject
	switch {
	case op.Caller.App == system().App:
		return control.Admitted{}, nil
	case op.Door == control.TopologyDoor:
		above = ratelimit.AboveCount
	case op.Door == api.Door:
		above = ratelimit.AboveConfirm
	}
	if a.shared {
		return charged(a.guard.Charge(op, c.Processes, c.Rejected, c.NewBytes, above)), nil
	}

	forget, err := a.guard.SpendDefinitions(op.Caller, c.NewBytes)
	if err != nil {
		return control.Admitted{}, err
	}
	giveBack, err := a.guard.Spend(op, c.Processes, c.Rejected, above)
	if err != nil {
		forget()
		return control.Admitted{}, err
	}
	return control.Admitted{Undo: func() {
		forget()
		giveBack()
	}}, nil
}

// charged is a request that the record counts.
func charged(c *ratelimit.Charge) control.Admitted {
	return control.Admitted{Charge: c.List, Above: c.Above}
}

// SpendDefinitions implements control.Admission.
func (a admission) SpendDefinitions(caller gozzard.Caller, bytes int) (control.Admitted, error) {
	switch {
	case caller.App == system().App:
		return control.Admitted{}, nil
	case a.shared:
		return charged(a.guard.ChargeDefinitions(caller, bytes)), nil
	}
	undo, err := a.guard.SpendDefinitions(caller, bytes)
	return control.Admitted{Undo: undo}, err
}

// rememberQuota counts what callers did before the server started. An hour fills a quota again; twice that time also
// has what was spent before. Quotas that the record counts need none of this.
func (s *Server) rememberQuota(ctx context.Context) error {
	if s.options.shared {
		return nil
	}
	since := time.Now().Add(-2 * time.Hour)
	list, err := s.store.Spent(ctx, since, ratelimit.DestructiveActions())
	if err != nil {
		return err
	}
	for _, t := range list {
		s.plane.guard.Remember(t.Caller, t.N, t.At)
	}

	list, err = s.store.DefinitionBytes(ctx, since)
	for _, t := range list {
		s.plane.guard.RememberDefinitions(t.Caller.App, t.N, t.At)
	}
	return err
}
