package control

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// applyTries bounds how often a change starts again because another server was faster.
const applyTries = 5

// ApplyTopology makes a business what the request says, in one transaction, and answers with what changed. Applying
// the same request again changes nothing. Running processes are not touched: a changed definition is used from the next
// operation on.
//
// Instances leave the business when their process is removed, gets another alias or host, or fewer instances. None of
// them may be supervised: its agent would restart a process that is in no business. A document is rejected with
// ErrConflict then. What comes from CMDB is taken without those processes: they stay as they were, and the answer names
// them, because nobody is there to correct it at once, and the rest of the business must not wait. With Prune those
// instances are unregistered after the change is recorded. Prune also unregisters what an earlier change left behind
// because its host was offline too long or the server stopped in between.
//
// A document does not replace a business from CMDB, or the other way round, unless TakeOver is set. What CMDB does not
// contain stays as it is recorded.
//
// A removal is a change to a business with nothing in it, under the same rules. It is recorded as one more version.
func (t *businesses) ApplyTopology(ctx context.Context, req record.ApplyRequest) (record.ApplyAnswer, error) {
	if t.o.Topology == nil {
		return record.ApplyAnswer{}, errNoTopology()
	}
	if biz := req.Business.ID; !req.Caller.Rights.MayBusiness(biz) {
		return record.ApplyAnswer{}, gozzard.Errorf(gozzard.ErrAppForbidden, req.Caller.Form("app %s may not change business %d",
			"user %s may not change business %d"), req.Caller.Named(), biz)
	}

	// Work out the change and record it. Start again when another server was faster.
	req.Business.Sort()
	t.applying.Lock()
	defer t.applying.Unlock()

	for try := 1; ; try++ {
		d, err := t.draftChange(ctx, &req)
		if err != nil || req.DryRun || !d.any {
			return d.answer, err
		}
		err = t.recordChange(ctx, &req, d)
		if err == nil {
			return d.answer, t.unregisterLeft(ctx, &req, d)
		}
		if gozzard.KindOf(err) != gozzard.ErrConflict || try == applyTries {
			return record.ApplyAnswer{}, fmt.Errorf("cannot record business %d: %w", req.Business.ID, err)
		}
	}
}

// change is a request worked out against the record.
type change struct {
	any     bool // there is something to do
	topo    topology.Change
	numbers []topology.Numbers
	leaving []leaving
	left    []string // what was left out before
	answer  record.ApplyAnswer
}

// draftChange works a request out. Its error says why the request is rejected. A dry run is not rejected for what its
// answer shows.
func (t *businesses) draftChange(ctx context.Context, req *record.ApplyRequest) (*change, error) {
	// Read what is recorded.
	d := &change{}
	b := req.Business
	old, err := t.read(ctx, b.ID)
	if err != nil {
		return d, err
	}

	var was *topology.Business
	if old.Version > 0 && !old.Removed() {
		was, d.answer.Version, d.left = &old.Business, old.Version, old.Business.Left
	}
	if v := d.answer.Version; req.Base != nil && *req.Base != v {
		return d, gozzard.Errorf(gozzard.ErrConflict,
			"business %d is at version %d, not %d: it was changed meanwhile", b.ID, v, *req.Base)
	}

	// Compare it with what is wanted.
	removing := req.Source == record.SourceRemoved
	switch {
	case was == nil && removing:
		return d, gozzard.Errorf(gozzard.ErrNotFound, "there is no business %d", b.ID)
	case removing:
		b.Name = was.Name
	case was != nil && req.Source == record.SourceCMDB:
		b.Keep(was)
	}
	if err := t.compare(ctx, d, req, &old, was); err != nil {
		return d, err
	}
	if err := t.keepHosted(ctx, d, req, &old, was); err != nil {
		return d, err
	}
	if req.Prune {
		strays := t.strays(b, d.leaving)
		d.leaving = append(d.leaving, strays...)
		d.any = d.any || len(strays) > 0
	}

	// Answer.
	d.answer.Hosted, d.answer.Named = nameHosted(d.leaving)
	d.answer.Left = b.Left

	switch {
	case removing:
		item := topology.Item{Kind: "business", ID: b.ID, Name: old.Name}
		d.answer.Plan.Removed = append([]topology.Item{item}, d.answer.Plan.Removed...)
	case was != nil && old.Source != req.Source:
		item := topology.Item{Kind: "business", ID: b.ID, Name: old.Name,
			Fields: []string{"source: " + old.Source + " -> " + req.Source}}
		d.answer.Plan.Changed = append([]topology.Item{item}, d.answer.Plan.Changed...)
	}

	if req.Source == record.SourceFile {
		d.answer.Warnings = t.warnings(ctx, b)
	}

	if err := t.rejectForeign(req, was); err != nil {
		return d, err
	}
	err = rejectChange(req, &old, d)
	if req.DryRun && err != nil {
		d.answer.Rejected, err = err.Error(), nil
	}
	return d, err
}

// compare compares what is wanted with what is recorded, and finds the instances that leave.
func (t *businesses) compare(ctx context.Context, d *change, req *record.ApplyRequest, old *record.Business,
	was *topology.Business) (err error) {
	if d.numbers, err = topology.Number(old.Numbers, req.Business); err != nil {
		return err
	}

	d.topo, d.answer.Plan = topology.Compare(was, old.Numbers, req.Business, d.numbers)
	d.topo.Base = old.Version
	d.any = was == nil || old.Source != req.Source || changes(&d.topo, was)

	d.leaving, err = t.leavingRegistered(ctx, was, &d.topo)
	return err
}

// keepTries bounds how often supervised processes are put back: each time the others may lose their places to them.
const keepTries = 3

// keepHosted puts the processes back that are supervised and would leave a business from CMDB.
func (t *businesses) keepHosted(ctx context.Context, d *change, req *record.ApplyRequest, old *record.Business,
	was *topology.Business) error {
	if was == nil || req.Source != record.SourceCMDB || req.Prune {
		return nil
	}

	b := req.Business
	for range keepTries {
		ids := hostedProcesses(d.leaving)
		if len(ids) == 0 {
			return nil
		}
		b.AddLeft(b.KeepProcesses(was, ids)...)
		b.Keep(was)
		if err := t.compare(ctx, d, req, old, was); err != nil {
			return err
		}
	}
	return nil
}

// read reads a business; one that is not recorded has version 0.
func (t *businesses) read(ctx context.Context, biz int) (record.Business, error) {
	old, err := t.o.Topology.Business(ctx, biz)
	if err != nil && gozzard.KindOf(err) == gozzard.ErrNotFound {
		return record.Business{}, nil
	}
	if err != nil {
		return record.Business{}, fmt.Errorf("cannot read business %d: %w", biz, err)
	}
	return old, nil
}

// changes reports whether a change contains anything new.
func changes(c *topology.Change, was *topology.Business) bool {
	lists := len(c.PutSets) + len(c.PutModules) + len(c.PutServices) + len(c.DropSets) + len(c.DropModules) +
		len(c.DropServices) +
		len(c.PutNumbers) + len(c.DropNumbers)
	return lists > 0 || c.Name != was.Name || !sameList(c.Clouds, was.Clouds) || !sameList(c.Templates, was.Templates) ||
		!sameList(c.Left, was.Left)
}

func sameList[T any](a, b []T) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

// rejectChange says why a change is not made as it was requested.
func rejectChange(req *record.ApplyRequest, old *record.Business, d *change) error {
	if req.Source == record.SourceRemoved && old.Source == record.SourceCMDB {
		return gozzard.Errorf(gozzard.ErrConflict,
			"business %d comes from %s, which would add it again: remove it from the settings of the server, "+
				"apply a document with take_over, and remove it then", req.Business.ID, old.Source)
	}
	if d.answer.Version > 0 && req.Source != record.SourceRemoved && old.Source != req.Source && !req.TakeOver {
		return gozzard.Errorf(gozzard.ErrConflict,
			"business %d comes from %s, not from %s: set take_over to replace it",
			req.Business.ID, old.Source, req.Source)
	}

	if d.answer.Hosted > 0 && !req.Prune {
		words := fmt.Sprintf("%d of the instances to be removed are managed: "+
			"stop them or stop supervising them first, or prune them (they keep running)", d.answer.Hosted)
		if n := len(d.answer.Named); n < d.answer.Hosted {
			words += fmt.Sprintf("; the first %d are", n)
		}
		return &gozzard.Error{Kind: gozzard.ErrConflict, Message: words, Faults: d.answer.Named}
	}

	if n := len(d.leaving); n > record.MaxTargets && req.Prune {
		return gozzard.Errorf(gozzard.ErrConflict,
			"%d instances would be unregistered, at most %d are allowed at a time: remove them in several steps", n, record.MaxTargets)
	}

	return nil
}

// recordChange writes a change and takes it into memory.
func (t *businesses) recordChange(ctx context.Context, req *record.ApplyRequest, d *change) error {
	b, now := req.Business, t.o.Now()
	plan := &d.answer.Plan
	admitted, err := t.admitChange(req, d)
	if err != nil {
		return err
	}
	act := "topology:apply:"
	if req.Source == record.SourceRemoved {
		act = "topology:remove:"
	}
	audit := gozzard.AuditRow{
		At: now, Caller: req.Caller, Act: act + strconv.Itoa(b.ID), RequestHash: req.Hash,
		Targets: len(plan.Added) + len(plan.Changed) + len(plan.Removed),
	}
	if err := audit.SetText(planText(plan)); err != nil {
		admitted.undo()
		return err
	}
	version, err := t.o.Topology.SaveBusiness(ctx, d.topo, req.Source, audit)
	if err != nil {
		admitted.undo()
		return admitted.why(err)
	}

	d.answer.Version, d.answer.Applied = version, true
	t.put(record.BusinessHead{ID: b.ID, Name: b.Name, Version: version, Source: req.Source, At: now, Left: b.Left}, b,
		d.numbers)
	if !sameList(d.left, b.Left) {
		t.noteLeft(b, now)
	}
	return nil
}

// noteLeft makes an event of what a new version of a business has left out.
func (t *businesses) noteLeft(b *topology.Business, now time.Time) {
	n := len(b.Left)
	if n == 0 || t.note == nil {
		return
	}
	t.note("", gozzard.HostAddr{}, gozzard.Event{
		Kind: gozzard.EventLeftOut, At: now.UnixMilli(), Key: gozzard.Key{Namespace: topology.Namespace(b.ID)},
		Message: gozzard.Clip(fmt.Sprintf("business %d is taken from CMDB except for this (%d): %s", b.ID, n,
			strings.Join(b.Left[:min(n, maxLeftNamed)], "; ")), maxEventText),
	})
}

// maxLeftNamed bounds how many parts that were left out an event names.
const maxLeftNamed = 5

// admitChange counts the document against the quota of definitions of its caller.
func (t *businesses) admitChange(req *record.ApplyRequest, d *change) (Admitted, error) {
	if t.o.Admit == nil || req.Caller.Rights.All() {
		return Admitted{}, nil
	}
	admitted, err := t.o.Admit.SpendDefinitions(req.Caller, req.Size)
	d.topo.NewBytes, d.topo.Charge = req.Size, admitted.Charge
	return admitted, err
}

// planText lists what a change adds, changes and removes, for the audit.
func planText(p *topology.Plan) string {
	var text strings.Builder
	for _, part := range []struct {
		word  string
		items []topology.Item
	}{{"added", p.Added}, {"changed", p.Changed}, {"removed", p.Removed}} {
		for _, it := range part.items {
			fmt.Fprintf(&text, "%s %s %d %s %s\n", part.word, it.Kind, it.ID, it.Name, strings.Join(it.Fields, ", "))
		}
	}
	return text.String()
}

// unregisterLeft unregisters the instances that left. It comes after the change is recorded: what is not in a business
// can be unregistered again, what is in one must not be.
func (t *businesses) unregisterLeft(ctx context.Context, req *record.ApplyRequest, d *change) error {
	if !req.Prune || len(d.leaving) == 0 {
		return nil
	}

	op := &gozzard.Operation{
		Caller: req.Caller, Door: TopologyDoor, RequestHash: req.Hash,
		IdempotencyKey: fmt.Sprintf("topology·%d:%d", req.Business.ID, d.answer.Version),
		WaitOffline:    t.o.Keep, // a host that is offline would come back with it
	}
	for i := range d.leaving {
		l := &d.leaving[i]
		op.Items = append(op.Items, gozzard.Item{Action: gozzard.ActionUnregister, Key: l.id.Key,
			Targets: []gozzard.Target{{Agent: l.id.Agent, ResultKey: string(l.id.Agent) + ":" + l.id.Key.String()}}})
	}

	task, err := t.operate(ctx, op)
	if err != nil {
		return fmt.Errorf("business %d is at version %d now, but %d processes that left it could not be unregistered: %w",
			req.Business.ID, d.answer.Version, len(d.leaving), err)
	}

	d.answer.Pruned = task.ID
	return nil
}
