package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/audit"
	"github.com/gozzard/gozzard/internal/record"
)

// SetGroups records pools for every known host of a request and answers for each host. It needs the right to change
// definitions of the namespace.
func (p *Plane) SetGroups(ctx context.Context, req record.GroupRequest) ([]record.GroupAnswer, error) {
	answers := make([]record.GroupAnswer, len(req.Targets))
	var rows []record.GroupLimits
	for i, t := range req.Targets {
		answers[i] = record.GroupAnswer{Target: t, Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}
		h, ok := p.Resolve(req.Caller, t)
		if !ok || t.Refused != nil {
			answers[i].Outcome = gozzard.Outcome{Code: gozzard.CodeUnreachable,
				Message: fmt.Sprintf("%s is not in the fleet: it never joined, or it has left", targetName(t))}
			continue
		}
		if !req.Caller.Rights.MayOn(gozzard.ActionUpdate, req.Namespace, h.Info.Ref()) {
			answers[i].Outcome = *p.notPermitted(req.Caller, gozzard.ActionUpdate, req.Namespace)
			audit.Note(ctx, req.Caller, audit.ActRight, "set_groups:"+req.Namespace)
			continue
		}
		for _, g := range req.Groups {
			rows = append(rows, record.GroupLimits{
				Agent: h.Info.Agent, Addr: t.Addr, Namespace: req.Namespace, Group: g.ID, Labels: req.Labels,
				CPULimit: g.CPULimit, MemLimit: g.MemLimit, CPUWeight: g.CPUWeight, MemWeight: g.MemWeight,
			})
		}
	}

	if len(rows) == 0 {
		return answers, nil
	}

	row, err := groupsRow(&req, rows, p.o.Now())
	if err != nil {
		return nil, err
	}
	if err := p.o.Store.SetGroups(ctx, rows, row); err != nil {
		return nil, err
	}

	var agents []gozzard.AgentID
	for i := range rows {
		agents = append(agents, rows[i].Agent)
	}

	p.sendGroups(ctx, agents)
	return answers, nil
}

// groupsRow is the audit row of pools: which limits on which hosts.
func groupsRow(req *record.GroupRequest, rows []record.GroupLimits, now time.Time) (gozzard.AuditRow, error) {
	row := gozzard.AuditRow{At: now, Caller: req.Caller, Act: "set_groups:" + req.Namespace,
		RequestHash: req.RequestHash, Targets: len(req.Targets)}

	hosts := make([]gozzard.Attempt, 0, len(rows))
	for i := range rows {
		at := gozzard.Attempt{Agent: rows[i].Agent, Addr: rows[i].Addr}
		if n := len(hosts); n == 0 || hosts[n-1].Agent != at.Agent || hosts[n-1].Addr != at.Addr {
			hosts = append(hosts, at)
		}
	}
	row.SetHosts(gozzard.HostLines(hosts))

	var text strings.Builder
	for _, g := range req.Groups {
		fmt.Fprintf(&text, "group %s: cpu %g %%, memory %g %%, weights %d and %d\n", g.ID, g.CPULimit, g.MemLimit, g.CPUWeight,
			g.MemWeight)
	}
	return row, row.SetText(text.String())
}

// Groups lists the pools of a namespace on the hosts named, where the caller may see it.
func (p *Plane) Groups(ctx context.Context, caller gozzard.Caller, namespace string,
	targets []gozzard.Target) ([]record.GroupLimits, error) {
	var agents []gozzard.AgentID
	for _, t := range targets {
		if h, ok := p.Resolve(caller, t); ok && caller.Rights.Sees(namespace, h.Info.Ref()) {
			agents = append(agents, h.Info.Agent)
		}
	}
	if len(agents) == 0 {
		return nil, nil
	}
	return p.o.Store.Groups(ctx, namespace, agents)
}

// Rebind gives what is recorded for other agents at an address to the agent that is there now. That may be of any
// namespace, so it needs a right to the host as a whole.
func (p *Plane) Rebind(ctx context.Context, caller gozzard.Caller, addr gozzard.HostAddr, agent gozzard.AgentID,
	requestHash [32]byte) error {
	h, ok := p.o.Live.HostByAddr(addr)
	ref := gozzard.HostRef{Agent: h.Info.Agent, Addrs: []gozzard.HostAddr{addr}}
	if !ok || !caller.Rights.SeesHost(ref) {
		return gozzard.Errorf(gozzard.ErrNotFound, "host %s is not in the fleet: it never joined, or it has left", addr)
	}
	if !caller.Rights.MayHost(ref) {
		err := gozzard.Errorf(gozzard.ErrAppForbidden, caller.Form("app %s may not rebind host %s",
			"user %s may not rebind host %s"), caller.Named(), addr)
		audit.Refused(ctx, caller, err) // the answer says so for each host, and is no error
		return err
	}
	if h.Info.Agent != agent {
		return gozzard.Errorf(gozzard.ErrConflict, "host %s is served by agent %s, not %s", addr, h.Info.Agent, agent)
	}
	row := gozzard.AuditRow{At: p.o.Now(), Caller: caller, Act: fmt.Sprintf("rebind:%s:%s", addr, agent),
		RequestHash: requestHash}
	if err := p.o.Store.Rebind(ctx, addr, agent, row); err != nil {
		return err
	}

	for _, old := range p.o.Live.Hosts(gozzard.Everything()) {
		if old.Info.Agent == agent {
			continue
		}
		for _, a := range old.Info.Addrs {
			if a == addr {
				p.o.Live.Rebind(old.Info.Agent, agent)
			}
		}
	}

	p.sendGroups(ctx, []gozzard.AgentID{agent})
	p.o.Log.Info("processes rebound", "addr", addr, "agent", agent, "app", caller.App, "user", caller.User, "request",
		fmt.Sprintf("%x", requestHash[:8]))
	return nil
}
