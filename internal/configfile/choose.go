package configfile

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Choose implements waves.Worker. A job that names no template is about all processes of its scope: those without a file have a task
// too, which says so.
func (f *Files) Choose(ctx context.Context, biz int, c record.ConfigChoice, rows []topology.Row) ([]topology.Row, error) {
	if err := f.checkBack(ctx, biz, c); err != nil {
		return nil, err
	}
	if len(c.Templates) == 0 || len(rows) == 0 {
		return rows, nil
	}
	bound, err := f.boundTo(ctx, biz, rows)
	if err != nil {
		return nil, err
	}

	// Choose by bindings.
	var chosen []topology.Row
	for i := range rows {
		row := &rows[i]
		has := func(id int64) bool {
			return bound[boundKey{id, objectOf(row)}] ||
				slices.ContainsFunc(row.Configs, func(r topology.ConfigRef) bool { return int64(r.ID) == id })
		}
		if slices.ContainsFunc(c.Templates, has) && (!c.Every || !slices.ContainsFunc(c.Templates, func(id int64) bool { return !has(id) })) {
			chosen = append(chosen, *row)
		}
	}
	return f.withVersions(ctx, biz, c, chosen)
}

// withVersions leaves the processes that have the released versions of a choice.
func (f *Files) withVersions(ctx context.Context, biz int, c record.ConfigChoice, rows []topology.Row) ([]topology.Row, error) {
	// Read what was rendered for the named templates.
	var slots []record.ConfigSlot
	for i := range rows {
		for _, id := range c.Templates {
			for _, in := range rows[i].Instances {
				if len(c.Versions[id]) > 0 {
					slots = append(slots, record.ConfigSlot{Template: id, Process: rows[i].Process, Inst: in.Inst})
				}
			}
		}
	}
	if len(slots) == 0 {
		return rows, nil
	}
	files, err := f.o.Store.ConfigInstances(ctx, biz, slots)
	if err != nil {
		return nil, err
	}

	// A process has a version if one of its instances has it.
	latest, released := newestOf(files)
	type pair struct {
		template int64
		process  int
	}
	fits := map[pair]bool{}
	for _, at := range slots {
		version := int64(record.ConfigUnreleased)
		if r := released[at]; r != nil {
			version = r.Version
		} else if latest[at] == nil {
			continue
		}
		if slices.Contains(c.Versions[at.Template], version) {
			fits[pair{at.Template, at.Process}] = true
		}
	}
	return slices.DeleteFunc(rows, func(r topology.Row) bool {
		return slices.ContainsFunc(c.Templates, func(id int64) bool { return len(c.Versions[id]) > 0 && !fits[pair{id, r.Process}] })
	}), nil
}
