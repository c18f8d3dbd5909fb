package configfile

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// noTree is the error of a template that uses the tree of a business of which the caller sees a part.
func noTree() *mako.RenderError {
	return &mako.RenderError{Message: "the template uses cc or this, the tree of the business, and you may see only some hosts of it: the file " +
		"would differ from the one that a release writes. You need the right to see all hosts of the business, or to configure this one and " +
		"render the template as it is stored"}
}

// wholeBusiness reads a business with the hosts that a caller may not see. It is for rendering stored templates, which only callers
// with the right to configure on all hosts of the business can write: so every caller gets the same file.
func (f *Files) wholeBusiness(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error) {
	caller.Rights = gozzard.Everything()
	return f.o.Plane.Business(ctx, caller, biz)
}

// mayConfigure reports whether a caller may write files on a host for a business.
func (f *Files) mayConfigure(caller gozzard.Caller, biz int, host gozzard.Target) bool {
	return caller.Rights.MayBusinessHosts(gozzard.ActionConfigure, biz) ||
		f.o.Plane.May(caller, gozzard.ActionConfigure, gozzard.Key{Namespace: topology.Namespace(biz)}, host, nil)
}

// configuresNone reports whether a caller may write files on none of the hosts of some processes.
func (f *Files) configuresNone(ctx context.Context, caller gozzard.Caller, biz int, rows []topology.Row) (bool, error) {
	items, err := f.o.Plane.TopologyItems(ctx, biz, rows, gozzard.ActionQuery)
	if err != nil {
		return true, err
	}
	return !slices.ContainsFunc(items, func(it record.TopologyItem) bool {
		return len(it.Item.Targets) == 1 && f.mayConfigure(caller, biz, it.Item.Targets[0])
	}), nil
}

// only leaves the processes that a caller may see. The tree of the business stays whole.
func (r *renderer) only(seen *record.Business) {
	visible := spotsOf(&seen.Business)
	for id := range r.spots {
		if _, ok := visible[id]; !ok {
			delete(r.spots, id)
		}
	}
}
