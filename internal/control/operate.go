package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// Operate accepts an operation: when it returns, the task with one attempt per target and its audit row are
// durable, and every attempt will reach a verdict. Hosts that are unknown or offline have theirs already.
func (p *Plane) Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	d, err := p.draft(ctx, op)
	if err != nil {
		return gozzard.Task{}, err
	}

	if d.registers { // looking whether it exists and recording it must not interleave with another register
		p.registering.Lock()
		defer p.registering.Unlock()
		if err := p.refuseRegistered(ctx, d); err != nil {
			return gozzard.Task{}, err
		}
	}

	seats, err := p.reserve(d.task)
	if err != nil {
		return gozzard.Task{}, err
	}

	acc, err := p.accept(ctx, d.task)
	if err != nil || acc.Known {
		p.giveBack(op.Caller.App, seats)
	}
	if err != nil {
		return gozzard.Task{}, err
	}
	if !acc.Known && p.o.Observe.Accepted != nil {
		p.o.Observe.Accepted(len(d.task.Attempts))
	}

	return acc.Task, nil
}

// draft is an operation on its way into the record.
type draft struct {
	task      *record.NewTask
	registers bool
	missing   []gozzard.ProcID // processes whose recorded definition is needed
}

// draft resolves every target and gives each attempt the state it is recorded with.
func (p *Plane) draft(ctx context.Context, op *gozzard.Operation) (*draft, error) {
	n, acts := 0, []string{}
	for i := range op.Items {
		it := &op.Items[i]
		n += len(it.Targets)
		if it.Action == gozzard.ActionNone && it.Refused == nil {
			return nil, gozzard.Errorf(gozzard.ErrInvalid, "no action given for %s", it.Key)
		}
		if a := it.Action.String(); !slices.Contains(acts, a) {
			acts = append(acts, a)
		}
	}

	if n == 0 || n > record.MaxTargets {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "an operation needs 1 to %d targets, this one has %d",
			record.MaxTargets, n)
	}

	now := p.o.Now()
	d := &draft{task: &record.NewTask{
		Task:     gozzard.Task{Caller: op.Caller, Door: op.Door, At: now, Targets: n},
		Attempts: make([]gozzard.Attempt, 0, n), IdempotencyKey: op.IdempotencyKey, RequestHash: op.RequestHash,
		Audit: gozzard.AuditRow{At: now, Caller: op.Caller, Act: "operate:" + strings.Join(acts, ","),
			RequestHash: op.RequestHash, Targets: n},
	}}
	seen := make(map[gozzard.ProcID]string, n)
	for i := range op.Items {
		p.draftItem(d, op, &op.Items[i], now, seen)
	}

	d.task.Audit.HostsHash = gozzard.HashHosts(d.task.Attempts)
	return d, p.fillDefinitions(ctx, d)
}

func (p *Plane) draftItem(d *draft, op *gozzard.Operation, it *gozzard.Item, now time.Time,
	seen map[gozzard.ProcID]string) {
	var spec []byte
	budget := p.budgetOf(it.Action, it.Spec)

	if it.Spec != nil {
		spec = gozzard.EncodeSpec(it.Spec)
	}

	d.registers = d.registers || it.Action == gozzard.ActionRegister
	for _, t := range it.Targets {
		a := gozzard.Attempt{
			Op: gozzard.NewOpID(), Agent: t.Agent, Addr: t.Addr, Key: it.Key, Action: it.Action,
			ResultKey: t.ResultKey, Labels: it.Labels,
			Spec: spec, Deadline: now.Add(budget), Expires: now.Add(budget),
		}
		out, host := p.admit(&a, op, it, t, now)
		if out == nil {
			id := gozzard.ProcID{Agent: a.Agent, Key: a.Key}
			if first, twice := seen[id]; twice {
				out = &gozzard.Outcome{Code: gozzard.CodeRefused,
					Message: fmt.Sprintf("this host and process is in the request twice: see %s", first)}
			}
			seen[id] = t.ResultKey
		}
		if out != nil {
			a.State, a.Outcome = gozzard.AttemptNotExecuted, *out
		} else {
			if (spec == nil || it.Action == gozzard.ActionUnhost) && it.Action != gozzard.ActionUnregister {
				d.missing = append(d.missing, gozzard.ProcID{Agent: a.Agent, Key: a.Key})
			}
			if spec != nil && registers(it.Action) {
				d.task.Register = append(d.task.Register, record.Process{
					ID: gozzard.ProcID{Agent: host.Info.Agent, Key: it.Key}, Labels: it.Labels, Spec: spec,
					Wanted: gozzard.StateStopped, RegisteredAt: now,
				})
			}
		}
		d.task.Attempts = append(d.task.Attempts, a)
	}
}

// registers: the first operation that carries a definition records it. A query changes nothing, and callers send
// unhost with half a definition.
func registers(a gozzard.Action) bool {
	return !a.ReadOnly() && a != gozzard.ActionUnregister && a != gozzard.ActionUnhost
}

// admit decides how an attempt begins: with a verdict (the outcome), waiting, or dispatched in the host's session.
// An attempt on a host that is online is recorded as dispatched from the start: nobody can have seen it as pending,
// so the compare-and-set would be a second commit for nothing.
//
// A host that the caller may not see is answered for like one that nobody knows. What he may do is decided by
// names, so a refusal tells nothing of what is there.
func (p *Plane) admit(a *gozzard.Attempt, op *gozzard.Operation, it *gozzard.Item, t gozzard.Target,
	now time.Time) (*gozzard.Outcome, fleet.Host) {
	switch {
	case t.Refused != nil:
		return t.Refused, fleet.Host{}
	case it.Refused != nil:
		return it.Refused, fleet.Host{}
	}

	host, known := p.Resolve(op.Caller, t)
	if !known {
		return &gozzard.Outcome{Code: gozzard.CodeUnreachable,
			Message: fmt.Sprintf("no agent has ever reported from %s", targetName(t))}, fleet.Host{}
	}

	if !op.Caller.Rights.May(it.Action, it.Key.Namespace, host.Info.Addrs) {
		return p.notPermitted(op.Caller, it.Action, it.Key.Namespace), fleet.Host{}
	}

	a.Agent = host.Info.Agent
	if len(host.Info.Addrs) > 0 && !a.Addr.IP.IsValid() {
		a.Addr = host.Info.Addrs[0]
	}

	s := p.onlineSession(a.Agent)
	if s.id != 0 && s.ready {
		a.State, a.Session = gozzard.AttemptDispatched, s.id
		return nil, host
	}

	// A session that is being reconciled sends older operations first; and when this server has just started, hosts
	// are on their way back.
	wait := op.WaitOffline
	if wait == 0 && (s.id != 0 || now.Sub(p.started) < p.o.Lease) {
		wait = p.o.Lease
	}
	if wait > 0 {
		a.State, a.Expires = gozzard.AttemptPending, now.Add(wait)
		return nil, host
	}

	return &gozzard.Outcome{Code: gozzard.CodeUnreachable,
		Message: fmt.Sprintf("the agent of %s is offline, last heard %s", targetName(t),
			host.LastSeen.UTC().Format(time.RFC3339))}, fleet.Host{}
}

// notPermitted is the verdict on what a caller sees and may not do.
func (p *Plane) notPermitted(caller gozzard.Caller, a gozzard.Action, namespace string) *gozzard.Outcome {
	if p.o.Observe.Refused != nil {
		p.o.Observe.Refused("not_permitted")
	}
	return &gozzard.Outcome{Code: gozzard.CodeRefused,
		Message: fmt.Sprintf("not permitted: app %s may not %s processes of %s here", caller.App, a, namespace)}
}

func targetName(t gozzard.Target) string {
	if t.Agent != "" {
		return "agent " + string(t.Agent)
	}
	return "host " + t.Addr.String()
}

// fillDefinitions gives attempts without a definition the recorded one; without one the agent uses what it has, or
// says that there is none.
func (p *Plane) fillDefinitions(ctx context.Context, d *draft) error {
	if len(d.missing) == 0 {
		return nil
	}

	recs, err := p.records(ctx, d.missing)
	if err != nil {
		return err
	}

	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		rec, ok := recs[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]
		if !ok || len(a.Spec) > 0 && a.Action != gozzard.ActionUnhost || a.State.Final() {
			continue
		}
		a.Spec = rec.Spec
		if len(a.Labels) == 0 {
			a.Labels = rec.Labels
		}
		a.Deadline = d.task.Task.At.Add(p.budget(a.Action, a.Spec))
	}

	return nil
}

// refuseRegistered turns register into "already registered" where the record has the process.
func (p *Plane) refuseRegistered(ctx context.Context, d *draft) error {
	var ids []gozzard.ProcID
	for i := range d.task.Attempts {
		if a := &d.task.Attempts[i]; a.Action == gozzard.ActionRegister && !a.State.Final() {
			ids = append(ids, gozzard.ProcID{Agent: a.Agent, Key: a.Key})
		}
	}

	recs, err := p.records(ctx, ids)
	if err != nil {
		return err
	}

	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		if _, ok := recs[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]; ok && a.Action == gozzard.ActionRegister &&
			!a.State.Final() {
			a.State = gozzard.AttemptNotExecuted
			a.Outcome = gozzard.Outcome{Code: gozzard.CodeAlreadyRegistered,
				Message: "Fail to register, for the process info already exists."}
		}
	}

	d.task.Register = slices.DeleteFunc(d.task.Register, func(r record.Process) bool {
		_, ok := recs[r.ID]
		return ok
	})

	return nil
}

func (p *Plane) records(ctx context.Context, ids []gozzard.ProcID) (map[gozzard.ProcID]record.Process, error) {
	out := make(map[gozzard.ProcID]record.Process, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	for rec, err := range p.o.Store.Processes(ctx, ids) {
		if err != nil {
			return nil, err
		}
		out[rec.ID] = rec
	}
	return out, nil
}

// launch takes the open attempts of an accepted task up in memory.
func (p *Plane) launch(t *record.NewTask) {
	for i := range t.Register {
		r := &t.Register[i]
		if _, ok := p.o.Live.Get(r.ID.Agent, r.ID.Key); !ok {
			p.o.Live.Seed(r.ID.Agent, seedStatus(r))
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	for i := range t.Attempts {
		a := &t.Attempts[i]
		if a.State.Final() {
			continue
		}
		f := p.newFlight(a, t.Task.Caller.App)
		p.track(f)
		if a.State == gozzard.AttemptDispatched {
			p.enqueue(f)
			continue
		}
		due := a.Expires
		// it is being made ready, or came back meanwhile: the timer sends it
		if s := p.sessions[a.Agent]; s != nil && s.online {
			due = p.o.Now()
		}
		p.hold(f, due)
	}
}

// budget is the time an attempt may stay dispatched.
func (p *Plane) budget(a gozzard.Action, spec []byte) time.Duration {
	if len(spec) == 0 {
		return p.budgetOf(a, nil)
	}
	s, err := gozzard.DecodeSpec(spec)
	if err != nil { // written by us; the agent will refuse it in words
		return p.o.Slack
	}
	return p.budgetOf(a, s)
}

func (p *Plane) budgetOf(a gozzard.Action, s *gozzard.Spec) time.Duration {
	if s == nil {
		s = &gozzard.Spec{Policy: gozzard.DefaultPolicy()}
	}
	return s.Budget(a) + p.o.Slack
}
