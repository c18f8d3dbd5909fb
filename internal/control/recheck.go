package control

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// recheck asks again for the rights behind operations that waited for a host, because days may have passed: an operation
// that has not begun does not outlive the rights of its caller. What the server does by itself, and what a change of a
// topology needs, was decided when it was requested.
func (p *Plane) recheck(ctx context.Context, agent gozzard.AgentID, list []delivery.Waited) ([]*gozzard.Outcome,
	error) {
	out := make([]*gozzard.Outcome, len(list))
	host, known := p.o.Live.Host(agent)
	if p.o.Rights == nil || !known {
		return out, nil
	}

	callers := map[gozzard.TaskSeq]*gozzard.Caller{}
	for i := range list {
		w := &list[i]
		caller, ok := callers[w.Ref.Task]
		if !ok {
			var err error
			if caller, err = p.presentCaller(ctx, w.Ref.Task); err != nil {
				return nil, err
			}
			callers[w.Ref.Task] = caller
		}
		if caller != nil && !p.stillMay(caller, w, &host.Info) {
			p.o.Observe.rejected("not_permitted")
			out[i] = &gozzard.Outcome{Code: gozzard.CodeRefused, Message: fmt.Sprintf(
				"not executed: while this waited for the host, app %s lost the right to %s processes of %s here",
				caller.App, w.Action, w.Key.Namespace)}
		}
	}

	return out, nil
}

// presentCaller is the caller of a task with its present rights, nil for a task that needs none.
func (p *Plane) presentCaller(ctx context.Context, seq gozzard.TaskSeq) (*gozzard.Caller, error) {
	task, err := p.o.Store.Task(ctx, seq)
	if err != nil {
		return nil, err
	}
	if task.Door == restoreDoor || task.Door == TopologyDoor {
		return nil, nil
	}
	caller := task.Caller
	caller.Rights = p.o.Rights(caller)
	return &caller, nil
}

// stillMay reports whether a caller may do what waited, on the host as it is now.
func (p *Plane) stillMay(caller *gozzard.Caller, w *delivery.Waited, info *gozzard.HostInfo) bool {
	host := info.Ref()
	if caller.Rights.All() {
		return true
	}
	if !caller.Rights.SeesHost(host) || !caller.Rights.MayOn(w.Action, w.Key.Namespace, host) {
		return false
	}
	if w.Action.ReadOnly() || w.Action.OnAgent() {
		return true
	}

	account := w.Account
	if spec, err := gozzard.DecodeSpec(w.Spec); account == "" && err == nil {
		account = spec.AccountOn(info.DefaultAccount)
	}
	return account == "" || caller.Rights.May(w.Action, w.Key.Namespace, host, account)
}
