package control

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Forget takes away everything that the server has about a host that left the fleet: its processes with their
// definitions, its groups, and itself. Operations that wait for it get their verdicts. Tasks, events and the audit stay.
//
// The caller of Forget has checked that the host may be forgotten: host is the agent with all addresses that it has or
// had. A host that is not excluded for ever and comes back is a new one.
func (p *Plane) Forget(ctx context.Context, caller gozzard.Caller, host gozzard.HostRef) (record.Forgotten, error) {
	// No operation is accepted and no session is opened meanwhile: both would add what is taken away.
	p.restorer.pause.Lock()
	defer p.restorer.pause.Unlock()
	unlock := p.delivery.LockAgent(host.Agent)
	defer unlock()
	p.restorer.drop(host.Agent)

	// Give verdicts before anything is removed: after a failure the host is still there, and can be forgotten again.
	var out record.Forgotten
	var err error
	if out.Operations, err = p.delivery.Forget(ctx, host.Agent); err != nil {
		return out, err
	}
	out.Processes, err = p.o.Store.Forget(ctx, host, gozzard.AuditRow{At: p.o.Now(), Caller: caller,
		Act: "forget:" + string(host.Agent)})
	if err != nil {
		return out, err
	}

	p.o.Live.Forget(host.Agent)
	p.queue.forget(host.Agent)
	p.o.Log.Info("host forgotten", "agent", host.Agent, "app", caller.App, "user", caller.User,
		"processes", out.Processes, "operations", out.Operations)
	return out, nil
}
