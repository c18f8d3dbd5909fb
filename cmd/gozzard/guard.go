package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// guardConfig is the limits of a server. The zero value has none, which is what `gozzard dev` has.
type guardConfig struct {
	ratelimit.Options
	InFlight  int
	Agent     nats.Limits
	HelloRate float64
}

func (c *guardConfig) register(f *pflag.FlagSet) {
	d := ratelimit.Default()
	c.Options = d
	f.Float64Var(&c.AppRate, "rate-app", d.AppRate, "requests a second of one app; 0: any number")
	f.IntVar(&c.AppBurst, "rate-app-burst", d.AppBurst, "requests of one app at once, above its rate")
	f.IntVar(&c.Failures, "max-failed-logins", d.Failures,
		"requests with wrong credentials in a minute from one address, then it has to wait; 0: any number")
	f.IntVar(&c.Connections, "max-connections", d.Connections, "connections of one address to the API; 0: any number")
	f.BoolVar(&c.Proxy, "behind-proxy", false,
		"callers on this machine are a proxy: believe the last address of its X-Forwarded-For")
	f.IntVar(&c.InFlight, "max-in-flight", 100_000, "attempts of one app without a verdict; 0: any number")
	c.Agent = nats.DefaultLimits()
	f.Float64Var(&c.Agent.Messages, "rate-agent", c.Agent.Messages,
		"messages a second of one agent, above which they are dropped and it is muted; 0: any number")
	f.Float64Var(&c.Agent.Bytes, "rate-agent-bytes", c.Agent.Bytes, "and bytes a second; 0: any number")
	f.DurationVar(&c.Agent.Mute, "mute-agent", c.Agent.Mute,
		"how long an agent is not listened to that sends too much or what cannot be read, at first")
	f.Float64Var(&c.HelloRate, "rate-hello", 500,
		"sessions of agents opened in a second; others repeat their HELLO; 0: any number")
	f.IntVar(&c.Blast.Targets, "confirm-above", d.Blast.Targets,
		"stopping, killing or restarting more processes than that has to be confirmed; 0: never")
	f.IntVar(&c.Blast.Percent, "confirm-above-percent", d.Blast.Percent,
		"and so has more than this part of what the caller sees, from 50 on; 0: never")
	f.IntVar(&c.Blast.Quota, "destructive-quota", d.Blast.Quota,
		"processes that one app may stop, kill or restart in an hour by BlueKing's APIs, unless it may do everything; 0: any number")
	f.StringToIntVar(&c.Blast.Quotas, "destructive-quota-of", nil, "another quota for an `APP=NUMBER`; may be repeated")
}

// agentLimits is what one agent may send.
func (c *guardConfig) agentLimits() nats.Limits {
	l := c.Agent
	l.Messages, l.Bytes = offBelowZero(l.Messages), offBelowZero(l.Bytes)
	return l
}

// offBelowZero turns a rate of flags, where 0 is none, into one of the parts, where 0 is their default.
func offBelowZero(rate float64) float64 {
	if rate <= 0 {
		return -1
	}
	return rate
}

// guardedPlane has the guard look at every operation, whichever way it came.
type guardedPlane struct {
	*control.Plane
	guard *ratelimit.Guard
}

// Operate accepts an operation that is not too much.
func (p *guardedPlane) Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	err := p.guard.Operation(op, op.Door == api.Door, func() int {
		n, _ := p.Find(op.Caller, fleet.Filter{}, 0, 0)
		return n
	})
	if err != nil {
		return gozzard.Task{}, err
	}
	return p.Plane.Operate(ctx, op)
}
