package configfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

const (
	// maxTried is how many processes a document is rendered for when it is applied, and maxTrying how long that may take: a caller waits
	// for it. A release renders all of them.
	maxTried  = 200
	maxTrying = 2 * time.Second
	maxWarned = 5 // warnings of one document
)

// checkBound rejects a document that is bound to a process that the business does not have: its hosts would get no file, and nobody
// would see why.
func checkBound(b *topology.Business, template string, objects []record.ConfigObject) error {
	known, number := spotsOf(b), 0
	var faults []gozzard.Fault
	for _, o := range objects {
		if o.Kind != record.ConfigOfProcess {
			continue
		}
		if _, ok := known[o.ID]; !ok {
			faults = append(faults, gozzard.Fault{Path: fmt.Sprintf("bind.processes[%d]", number),
				Text: fmt.Sprintf("business %d has no process %d", b.ID, o.ID)})
		}
		number++
	}
	if len(faults) == 0 {
		return nil
	}
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: fmt.Sprintf("configuration template %q is bound to processes that are not there; "+
		"gozzard topology tree %d lists the ids of processes", template, b.ID), Faults: faults}
}

// warnings renders a document for one instance of each process that it is bound to, and says what a release would meet. What it
// includes may be applied after it.
func (f *Files) warnings(ctx context.Context, caller gozzard.Caller, want *record.ConfigWanted, template int64) ([]string, error) {
	// Read what it needs.
	rec, err := f.business(ctx, caller, want.Template.Biz)
	if err != nil {
		return nil, err
	}
	templates, err := f.templates(ctx, &rec, want.Template.Biz)
	if err != nil {
		return nil, err
	}
	active, err := f.o.Store.ActiveConfigVersions(ctx, want.Template.Biz)
	if err != nil {
		return nil, err
	}
	objects := want.Objects
	if objects == nil && template != 0 {
		bound, err := f.o.Store.ConfigBindings(ctx, want.Template.Biz, template)
		if err != nil {
			return nil, err
		}
		for i := range bound {
			objects = append(objects, bound[i].Object)
		}
	}

	// Render it.
	r := f.newRenderer(ctx, &rec, templates, active)
	v := record.ConfigVersion{Content: want.Content}
	var list []string
	for i, id := range r.boundTo(objects) {
		if i == maxTried || r.spent > maxTrying || len(list) == maxWarned {
			break
		}
		_, err := r.file(ctx, &want.Template, &v, r.spots[id], 1, r.instOf(id, 1))
		var wrong *record.ConfigFault
		switch {
		case errors.As(err, &wrong) && wrong.Kind == record.ConfigUnrendered:
			list = append(list, fmt.Sprintf("a release would fail for process %d: %v", id, wrong.Err))
		case err != nil && wrong == nil:
			return list, err
		}
	}
	return list, nil
}

// boundTo are the processes that belong to some objects, in the order of their ids.
func (r *renderer) boundTo(objects []record.ConfigObject) []int {
	var ids []int
	for id, at := range r.spots {
		if slices.Contains(objects, objectAt(at)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
