package control

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// draft is an operation on its way into the record.
type draft struct {
	task      *record.NewTask
	registers bool
	given     []givenSpec      // for each attempt
	missing   []gozzard.ProcID // processes whose recorded definition is needed
	seen      map[gozzard.ProcID]string
	queue     delivery.Queue // of the caller's app
}

// givenSpec is the definition that came with an attempt, and the host of the attempt.
type givenSpec struct {
	spec    *gozzard.Spec // nil: none
	encoded []byte
	host    gozzard.HostRef
	account string // of definitions without one, on this host
}

// open counts the attempts without a verdict.
func (d *draft) open() (n int) {
	for i := range d.task.Attempts {
		if !d.task.Attempts[i].State.Final() {
			n++
		}
	}
	return n
}

// defined lists the processes whose definition the operation brings.
func (d *draft) defined() []gozzard.ProcID {
	ids := make([]gozzard.ProcID, len(d.task.Register))
	for i := range d.task.Register {
		ids[i] = d.task.Register[i].ID
	}
	return ids
}

// draft resolves every target and gives each attempt the state with which it is recorded. queue is what waits before it.
func (p *Plane) draft(ctx context.Context, op *gozzard.Operation, queue delivery.Queue) (*draft, error) {
	// Check the request as a whole.
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

	// Draft its attempts.
	now := p.o.Now()
	d := &draft{
		seen:  make(map[gozzard.ProcID]string, n),
		queue: queue,
		task: &record.NewTask{
			Task:     gozzard.Task{Caller: op.Caller, Door: op.Door, At: now, Targets: n},
			Attempts: make([]gozzard.Attempt, 0, n), IdempotencyKey: op.IdempotencyKey, RequestHash: op.RequestHash,
			Audit: gozzard.AuditRow{At: now, Caller: op.Caller, Act: "operate:" + strings.Join(acts, ","),
				RequestHash: op.RequestHash, Targets: n},
		},
	}
	for i := range op.Items {
		p.draftItem(d, op, &op.Items[i], now)
	}

	// Complete them.
	d.task.Audit.SetHosts(gozzard.HostLines(d.task.Attempts))
	recs, err := recorded(ctx, p.o.Store, d.missing)
	if err != nil {
		return d, err
	}
	p.permit(d, op.Caller, recs)
	p.fillDefinitions(d, recs)
	if p.o.Admit != nil && !op.Caller.Rights.All() {
		d.task.NewBytes = d.newBytes(recs)
		for _, content := range op.Contents {
			d.task.NewBytes += len(content)
		}
	}
	d.noteRegistered(now)
	return d, nil
}

// draftItem drafts the attempts of one item.
func (p *Plane) draftItem(d *draft, op *gozzard.Operation, it *gozzard.Item, now time.Time) {
	var spec []byte
	budget := p.delivery.Budget(it.Action, it.Spec)
	if it.Spec != nil {
		spec = gozzard.EncodeSpec(it.Spec)
	}
	d.registers = d.registers || it.Action == gozzard.ActionRegister

	for _, t := range it.Targets {
		a := gozzard.Attempt{
			Op: gozzard.NewOpID(), Agent: t.Agent, Addr: t.Addr, Key: it.Key, Action: it.Action,
			ResultKey: t.ResultKey, Labels: it.Labels, Adopt: op.Adopt && it.Action == gozzard.ActionStart,
			Spec: spec, Deadline: now.Add(budget + d.queue.Allowance(len(d.task.Attempts))), Expires: now.Add(budget),
		}

		out, host := p.begin(&a, op, it, t, now)
		if out == nil {
			out = d.rejectTwice(&a)
		}
		if out != nil {
			a.State, a.Outcome = gozzard.AttemptNotExecuted, *out
		}
		if out == nil || spec != nil && host.Info.Agent != "" {
			d.noteDefinition(&a, op.Caller.Rights.All())
		}

		d.task.Attempts = append(d.task.Attempts, a)
		d.given = append(d.given, givenSpec{it.Spec, spec, host.Info.Ref(), host.Info.DefaultAccount})
	}
}

// rejectTwice rejects an attempt on a process of a host that is in the request before.
func (d *draft) rejectTwice(a *gozzard.Attempt) *gozzard.Outcome {
	id := gozzard.ProcID{Agent: a.Agent, Key: a.Key}
	first, twice := d.seen[id]
	d.seen[id] = a.ResultKey
	if !twice {
		return nil
	}
	return &gozzard.Outcome{Code: gozzard.CodeRefused,
		Message: fmt.Sprintf("this host and process is in the request twice: see %s", first)}
}

// noteDefinition notes the definition that an attempt needs from the record. The rights of a caller that may not do
// everything depend on the recorded definition, so it is needed in any case.
func (d *draft) noteDefinition(a *gozzard.Attempt, all bool) {
	if !a.Action.OnProcess() { // no process has its definition
		return
	}
	if !all || (a.Spec == nil || a.Action == gozzard.ActionUnhost) && a.Action != gozzard.ActionUnregister {
		d.missing = append(d.missing, gozzard.ProcID{Agent: a.Agent, Key: a.Key})
	}
}

// newBytes counts the bytes of the definitions of a draft that the record does not have for their processes: each
// definition once, however many processes have it. Attempts with a verdict count too, because their definitions are
// recorded with them.
//
// Only the processes of the request are compared. A look at all definitions of the record would show callers whether
// other tenants have a certain definition.
func (d *draft) newBytes(recs map[gozzard.ProcID]record.Process) (n int) {
	known, counted := definitions{}, map[string]bool{}
	var last *byte // attempts of one item share their definition
	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		if len(a.Spec) == 0 || &a.Spec[0] == last || counted[string(a.Spec)] {
			continue
		}
		if rec, ok := recs[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]; ok &&
			(bytes.Equal(a.Spec, rec.Spec) || bytes.Equal(a.Spec, known.read(rec.Spec).encoded)) {
			continue
		}
		counted[string(a.Spec)], last = true, &a.Spec[0]
		n += len(a.Spec)
	}
	return n
}

// noteRegistered notes the definitions that attempts bring to the record.
func (d *draft) noteRegistered(now time.Time) {
	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		if d.given[i].spec == nil || !registers(a.Action) || a.State.Final() {
			continue
		}
		d.task.Register = append(d.task.Register, record.Process{
			ID: gozzard.ProcID{Agent: a.Agent, Key: a.Key}, Labels: a.Labels, Spec: a.Spec,
			Wanted: gozzard.StateStopped, RegisteredAt: now, Attempt: int32(i),
		})
	}
}

// registers: the first operation with a definition records it. A query changes nothing, and callers send unhost with
// half a definition. Files, scripts and agents are no processes.
func registers(a gozzard.Action) bool {
	return !a.ReadOnly() && a.OnProcess() && a != gozzard.ActionUnregister && a != gozzard.ActionUnhost
}

// begin decides how an attempt begins: with a verdict (the outcome), waiting, or dispatched in the host's session. An
// attempt on a host that is online is recorded as dispatched from the start: no other server can have seen it as
// pending, so the compare-and-set would be a second commit for nothing.
//
// A host that the caller may not see is answered for like one that is not known. What a caller may do is decided by
// names, so a rejection says nothing about what is there.
func (p *Plane) begin(a *gozzard.Attempt, op *gozzard.Operation, it *gozzard.Item, t gozzard.Target,
	now time.Time) (*gozzard.Outcome, fleet.Host) {
	switch {
	case t.Refused != nil:
		return t.Refused, fleet.Host{}
	case it.Refused != nil:
		return it.Refused, fleet.Host{}
	}

	// Reject what the caller may not see or do.
	host, known := p.Resolve(op.Caller, t)
	if !known {
		return &gozzard.Outcome{Code: gozzard.CodeUnreachable,
			Message: fmt.Sprintf("%s is not in the fleet: it never joined, or it has left", targetName(t))}, fleet.Host{}
	}
	if !op.Caller.Rights.MayOn(it.Action, it.Key.Namespace, host.Info.Ref()) {
		return p.notPermitted(op.Caller, it.Action, it.Key.Namespace), fleet.Host{}
	}

	if out := tooOld(it, host); out != nil {
		return out, fleet.Host{}
	}

	// Send it at once when the host is ready.
	a.Agent = host.Info.Agent
	if len(host.Info.Addrs) > 0 && !a.Addr.IP.IsValid() {
		a.Addr = host.Info.Addrs[0]
	}

	s, online, ready := p.delivery.Session(a.Agent)
	if state, session := gozzard.Birth(s.ID, ready); state == gozzard.AttemptDispatched {
		a.State, a.Session = state, session
		return nil, host
	}

	// Let it wait when the caller says so. Without that it waits a short time while older operations of the host are
	// sent first, until the server that is the host's home takes it, after a start of this server, when hosts are about to
	// come back, and while this server does not know which hosts another one has.
	wait := op.WaitOffline
	server, _ := p.peers.homeOf(a.Agent)
	if wait == 0 && (online || server != "" || now.Sub(p.started) < p.o.Lease || p.peers.unsure(now)) {
		wait = p.o.Lease
	}
	if wait > 0 {
		a.State, a.Expires = gozzard.AttemptPending, now.Add(wait)
		return nil, host
	}

	return &gozzard.Outcome{Code: gozzard.CodeUnreachable,
		Message: fmt.Sprintf("host %s is offline, and nothing was done there: its agent was last heard at %s. Start the agent, "+
			"or send the operation again when the host is back", offlineName(t, host), lastHeard(host))}, host
}

// offlineName is the name of a known host for people: the address in the request, or else the first of its addresses. An
// agent id says nothing to a person that looks for the machine.
func offlineName(t gozzard.Target, host fleet.Host) string {
	switch {
	case t.Addr.IP.IsValid():
		return t.Addr.String()
	case len(host.Info.Addrs) > 0:
		return host.Info.Addrs[0].String()
	}
	return string(host.Info.Agent)
}

// lastHeard is when the agent of a host was last heard, as text.
func lastHeard(host fleet.Host) string { return host.LastSeen.UTC().Format(time.RFC3339) }

// tooOld rejects a definition that the agent of a host would carry out in part only. A host that is offline may come back
// with a newer agent.
func tooOld(it *gozzard.Item, host fleet.Host) *gozzard.Outcome {
	if it.Action.OnFile() && host.Online && !host.Info.Files {
		return &gozzard.Outcome{Code: gozzard.CodeRefused, Message: noFiles(host.Info.Version)}
	}
	if it.Spec == nil || !host.Online || host.Info.Form >= gozzard.DefinitionForm {
		return nil
	}
	newer := it.Spec.Newer()
	if len(newer) == 0 {
		return nil
	}
	return &gozzard.Outcome{Code: gozzard.CodeRefused,
		Message: fmt.Sprintf("the agent of this host has version %s and does not know %s: upgrade the agent, or leave that out "+
			"of the definition", cmp.Or(host.Info.Version, "unknown"), strings.Join(newer, ", "))}
}

// notPermitted is the verdict on what a caller sees and may not do.
func (p *Plane) notPermitted(caller gozzard.Caller, a gozzard.Action, namespace string) *gozzard.Outcome {
	p.o.Observe.rejected("not_permitted")
	if a.OnAgent() {
		return &gozzard.Outcome{Code: gozzard.CodeRefused,
			Message: fmt.Sprintf("not permitted: app %s may not restart the agent of this host", caller.App)}
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

// fillDefinitions gives attempts without a definition the recorded one. Where there is none the agent uses its own, or
// answers that it has none.
func (p *Plane) fillDefinitions(d *draft, recs map[gozzard.ProcID]record.Process) {
	budgets := map[actionOn]time.Duration{} // thousands of hosts have one definition, which is decoded once
	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		rec, ok := recs[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]
		if !ok || len(a.Spec) > 0 && a.Action != gozzard.ActionUnhost || a.State.Final() ||
			a.Action == gozzard.ActionUnregister {
			continue
		}
		a.Spec = rec.Spec
		if len(a.Labels) == 0 {
			a.Labels = rec.Labels
		}

		budget, known := budgets[actionOn{a.Action, string(a.Spec)}]
		if !known {
			budget = p.delivery.BudgetOf(a.Action, a.Spec)
			budgets[actionOn{a.Action, string(a.Spec)}] = budget
		}
		a.Deadline = d.task.Task.At.Add(budget + d.queue.Allowance(i))
	}
}

// actionOn is an action on processes with an encoded definition.
type actionOn struct {
	action gozzard.Action
	spec   string
}
