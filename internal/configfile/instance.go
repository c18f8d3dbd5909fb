package configfile

import (
	"context"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxListed bounds the files of one list: it is answered as a whole.
const maxListed = 100_000

// Placed lists the files of the processes that a query finds: one for each instance and template that is bound to its process.
// With a template it lists only those of that one.
func (f *Files) Placed(ctx context.Context, caller gozzard.Caller, q topology.Query, template int64) ([]record.ConfigPlaced, error) {
	// Find the places.
	rec, err := f.business(ctx, caller, q.Biz)
	if err != nil {
		if gozzard.KindOf(err) == gozzard.ErrNotFound {
			return nil, nil
		}
		return nil, err
	}
	templates, err := f.templates(ctx, &rec, q.Biz)
	if err != nil {
		return nil, err
	}
	active, err := f.o.Store.ActiveConfigVersions(ctx, q.Biz)
	if err != nil {
		return nil, err
	}
	_, rows := f.o.Plane.FindProcesses(caller, q)
	list, err := f.places(ctx, q.Biz, rows, templates, template)
	if err != nil {
		return nil, err
	}

	// Find what was rendered for them.
	slots := make([]record.ConfigSlot, len(list))
	for i := range list {
		slots[i] = record.ConfigSlot{Template: list[i].Template.ID, Process: list[i].Row.Process, Inst: list[i].Inst.Inst}
	}
	files, err := f.o.Store.ConfigInstances(ctx, q.Biz, slots)
	if err != nil {
		return nil, err
	}
	latest, released := newestOf(files)
	for i := range list {
		list[i].Active, list[i].Latest, list[i].Released = active[list[i].Template.ID], latest[slots[i]], released[slots[i]]
	}
	return list, nil
}

// newestOf finds the newest file of each place, and the newest released one. The files are sorted by id.
func newestOf(files []record.ConfigInstance) (latest, released map[record.ConfigSlot]*record.ConfigInstance) {
	latest, released = map[record.ConfigSlot]*record.ConfigInstance{}, map[record.ConfigSlot]*record.ConfigInstance{}
	for i := range files {
		c := &files[i]
		if latest[c.Slot()] = c; c.Released {
			released[c.Slot()] = c
		}
	}
	return latest, released
}

// places are the places of files of some processes.
func (f *Files) places(ctx context.Context, biz int, rows []topology.Row, templates []record.ConfigListed, only int64) ([]record.ConfigPlaced, error) {
	bound, err := f.boundTo(ctx, biz, rows)
	if err != nil {
		return nil, err
	}
	var list []record.ConfigPlaced
	for i := range rows {
		row := &rows[i]
		for j := range templates {
			t := &templates[j]
			fixed := t.Fixed && slices.ContainsFunc(row.Configs, func(c topology.ConfigRef) bool { return int64(c.ID) == t.ID })
			if only != 0 && only != t.ID || !fixed && (t.Fixed || !bound[boundKey{t.ID, objectOf(row)}]) {
				continue
			}
			for _, in := range row.Instances {
				list = append(list, record.ConfigPlaced{Row: row, Inst: in, Template: t})
			}
		}
		if len(list) > maxListed {
			return nil, gozzard.Errorf(gozzard.ErrInvalid,
				"more than %d configuration files are in this scope: narrow it down", maxListed)
		}
	}
	return list, nil
}

// File is a rendered file with its content. A caller that may not see its process does not see it.
func (f *Files) File(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigInstance, error) {
	none := fault(record.ConfigNoInstance, "", gozzard.Errorf(gozzard.ErrNotFound, "business %d has no rendered configuration file %d", biz, id))
	if !caller.Rights.SeesBusiness(biz) {
		return record.ConfigInstance{}, none
	}
	c, err := f.o.Store.ConfigInstance(ctx, biz, id)
	if err != nil {
		return c, asFault(err, gozzard.ErrNotFound, record.ConfigNoInstance, "")
	}
	if !f.sees(caller, biz, c.Process) {
		return record.ConfigInstance{}, none
	}
	return c, f.fill(ctx, biz, &c)
}

// sees reports whether a caller may see a process. A process that is gone is seen by those that see the whole business.
func (f *Files) sees(caller gozzard.Caller, biz, process int) bool {
	if caller.Rights.SeesBusinessHosts(biz) {
		return true
	}
	n, _ := f.o.Plane.FindProcesses(caller, topology.Query{Biz: biz, Processes: []int{process}, Limit: 1})
	return n > 0
}

// fill reads the contents of files.
func (f *Files) fill(ctx context.Context, biz int, files ...*record.ConfigInstance) error {
	var hashes [][32]byte
	for _, c := range files {
		if c != nil && !slices.Contains(hashes, c.Hash) {
			hashes = append(hashes, c.Hash)
		}
	}
	texts, err := f.o.Store.ConfigTexts(ctx, biz, hashes)
	for _, c := range files {
		if c != nil {
			c.Content = texts[c.Hash]
		}
	}
	return err
}

// Newest is what there is of a file: of an instance of a process, or with inst 0 of the first one.
func (f *Files) Newest(ctx context.Context, caller gozzard.Caller, biz int, slot record.ConfigSlot) (record.ConfigNewest, error) {
	_, rows := f.o.Plane.FindProcesses(caller, topology.Query{Biz: biz, Processes: []int{slot.Process}, Limit: 1})
	if len(rows) == 0 {
		return record.ConfigNewest{}, noProcess(slot.Process)
	}
	if slot.Inst == 0 {
		if len(rows[0].Instances) == 0 {
			return record.ConfigNewest{}, fault(record.ConfigNoProcessInstance, strconv.Itoa(slot.Process),
				gozzard.Errorf(gozzard.ErrNotFound, "process %d has no instance", slot.Process))
		}
		slot.Inst = rows[0].Instances[0].Inst
	}
	if _, err := f.Template(ctx, caller, biz, slot.Template); err != nil {
		return record.ConfigNewest{}, err
	}

	files, err := f.o.Store.ConfigInstances(ctx, biz, []record.ConfigSlot{slot})
	if err != nil {
		return record.ConfigNewest{}, err
	}
	active, err := f.o.Store.ActiveConfigVersions(ctx, biz)
	if err != nil {
		return record.ConfigNewest{}, err
	}
	latest, released := newestOf(files)
	out := record.ConfigNewest{Latest: latest[slot], Released: released[slot]}
	out.Current = out.Latest != nil && out.Latest.Version == active[slot.Template]
	if out.Released != nil {
		if out.Live, err = f.o.Store.ConfigSnapshot(ctx, biz, out.Released.ID); err != nil {
			return out, err
		}
	}
	return out, f.fill(ctx, biz, out.Latest, out.Released)
}

// Snapshot is what a host had in place of a file when it was compared; nil if it was not.
func (f *Files) Snapshot(ctx context.Context, c *record.ConfigInstance) (*record.ConfigSnapshot, error) {
	return f.o.Store.ConfigSnapshot(ctx, c.Biz, c.ID)
}
