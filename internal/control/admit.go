package control

import (
	"context"
	"errors"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/record"
)

// TopologyDoor is the door of operations that a change of a topology needs.
const TopologyDoor = "topology"

// Admission decides whether an operation may be recorded, by what it would do. It is asked after every target is
// resolved, so that only attempts count that will be made.
type Admission interface {
	// Spend counts an operation.
	Spend(op *gozzard.Operation, c Cost) (Admitted, error)
	// SpendDefinitions counts bytes of definitions that a caller brings with a business.
	SpendDefinitions(caller gozzard.Caller, bytes int) (Admitted, error)
	// Counts reports whether attempts with an action count.
	Counts(a gozzard.Action) bool
}

// Admitted is a request that may be recorded, as far as this server knows.
type Admitted struct {
	Undo func() // takes the count back if the request is not recorded; nil: nothing was counted

	// Charge is what the record counts together with the request, for all servers that share it. Above is the error of a request
	// for which too little is left.
	Charge []gozzard.Spending
	Above  func(*gozzard.OverQuota) error
}

// undo takes the count of a request back that was not recorded.
func (a *Admitted) undo() {
	if a.Undo != nil {
		a.Undo()
	}
}

// why is the error of a request that the record has rejected with an error.
func (a *Admitted) why(err error) error {
	var over *gozzard.OverQuota
	if a.Above != nil && errors.As(err, &over) {
		return a.Above(over)
	}
	return err
}

// Cost is what an operation counts against the quotas of its caller.
type Cost struct {
	Processes int // attempts with actions that Admission.Counts names
	Rejected  int // attempts that are recorded as rejected
	NewBytes  int // of definitions that are new or changed
}

// checkPermitted rejects a request of which the caller may do nothing on any host. It is not recorded: a caller without
// rights must not fill the record. If a part may be permitted, each entry gets its own verdict.
func (p *Plane) checkPermitted(op *gozzard.Operation) error {
	var first *gozzard.Item
	for i := range op.Items {
		it := &op.Items[i]
		if it.Refused != nil {
			continue
		}
		if op.Caller.Rights.MaySpace(it.Action, it.Key.Namespace) {
			return nil
		}
		if first == nil {
			first = it
		}
	}
	if first == nil {
		return nil
	}

	p.o.Observe.rejected("not_permitted")
	return nothingPermitted(&op.Caller, first)
}

// nothingPermitted says what a caller may not do, by the first entry of its request. No entry is permitted.
func nothingPermitted(caller *gozzard.Caller, first *gozzard.Item) error {
	switch {
	case first.Action.OnAgent() && caller.Alone():
		return gozzard.Errorf(gozzard.ErrAppForbidden, "not permitted: user %s may not restart agents: this needs the role "+
			"admin for all namespaces, or a grant for them that lists restart-agent", caller.User)
	case first.Action.OnAgent():
		return gozzard.Errorf(gozzard.ErrAppForbidden, "not permitted: app %s may not restart agents: this needs the role "+
			"admin for all namespaces, or a grant for them that lists restart-agent", caller.App)
	case caller.Alone():
		return gozzard.Errorf(gozzard.ErrAppForbidden, "not permitted: user %s may not %s processes of %s; an admin of "+
			"everything sees the reason with: gozzard grant check", caller.User, first.Action, first.Key.Namespace)
	}
	return gozzard.Errorf(gozzard.ErrAppForbidden, "not permitted: app %s with user %s may not %s processes of %s; an admin of "+
		"everything sees the reason with: gozzard grant check", caller.App, caller.User, first.Action, first.Key.Namespace)
}

// enqueue rejects a request whose attempts would wait longer than their deadlines allow, before it costs anything. Its
// targets are counted in the same step, until leave: a hundred callers that come together do not all find an empty queue.
// A repeated request is answered with its task. leave may be called more than once.
func (p *Plane) enqueue(ctx context.Context, op *gozzard.Operation) (q delivery.Queue, leave func(), err error) {
	app, n := op.Caller.App, 0
	for i := range op.Items {
		n += len(op.Items[i].Targets)
	}
	n = min(n, record.MaxTargets)

	q, err = p.delivery.Admit(app, n)
	switch {
	case err == nil:
		return q, sync.OnceFunc(func() { p.delivery.Leave(app, n) }), nil
	case p.repeated(ctx, op):
		return q, func() {}, nil
	}
	p.o.Observe.rejected("backlog")
	return q, nil, err
}

// admit asks whether a draft may be recorded. A repeated request is answered with its task, whatever the limits are.
func (p *Plane) admit(ctx context.Context, op *gozzard.Operation, d *draft) (Admitted, error) {
	if p.o.Admit == nil {
		return Admitted{}, nil
	}

	c := Cost{NewBytes: d.task.NewBytes}
	for i := range d.task.Attempts {
		switch a := &d.task.Attempts[i]; {
		case a.State.Final() && p.foreign(op.Caller, a):
			c.Rejected++
		case !a.State.Final() && p.o.Admit.Counts(a.Action):
			c.Processes++
		}
	}

	admitted, err := p.o.Admit.Spend(op, c)
	if err != nil && p.repeated(ctx, op) {
		return Admitted{}, nil
	}
	return admitted, err
}

// foreign reports whether an attempt with a verdict was rejected, is on a host that the caller does not know, or is about
// a process that the record does not know. A host that is offline is known.
func (p *Plane) foreign(caller gozzard.Caller, a *gozzard.Attempt) bool {
	if a.Outcome.Code != gozzard.CodeUnreachable {
		return a.Outcome.Code == gozzard.CodeRefused || a.Outcome.Code == gozzard.CodeNoDefinition
	}
	_, known := p.Resolve(caller, gozzard.Target{Agent: a.Agent, Addr: a.Addr})
	return !known
}
