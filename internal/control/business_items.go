package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// The labels of every instance of a process of a business.
const (
	processNameLabel = "bk_process_name"
	processLabel     = "bk_process_id"
)

// TopologyItems makes an item of an operation for every instance of the rows, in their order: with the definition that
// the record has now, and the key and labels that all doors use for it.
func (t *businesses) TopologyItems(ctx context.Context, biz int, rows []topology.Row,
	a gozzard.Action) ([]record.TopologyItem, error) {
	if t.o.Topology == nil {
		return nil, errNoTopology()
	}

	defs, err := t.definitions(ctx, biz, rows)
	if err != nil {
		return nil, err
	}

	n := 0
	for i := range rows {
		n += len(rows[i].Instances)
	}

	items := make([]record.TopologyItem, 0, n)
	var definer topology.Definer
	for i := range rows {
		r := &rows[i]
		def := defs[r.Process]
		var missing []string
		if def != nil {
			missing = topology.Missing(def, a)
		}
		labels := labelsOf(biz, r)
		for j, in := range r.Instances {
			it := record.TopologyItem{Row: r, Instance: j, Process: def, Missing: missing,
				Item: gozzard.Item{Action: a, Key: topology.Key(biz, r.Name, in.Local), Labels: labels}}
			it.Item.Targets = []gozzard.Target{t.targetOn(r.Host, it.Item.Key)}
			switch {
			case a == gozzard.ActionUnregister:
			case def == nil: // gone since it was found
				it.Item.Refused = &gozzard.Outcome{Code: gozzard.CodeNoDefinition,
					Message: fmt.Sprintf("process %d is not in business %d any more", r.Process, biz)}
			default:
				define(ctx, &definer, def, r, in, &it)
			}
			items = append(items, it)
		}
	}

	return items, nil
}

// labelsOf are the labels of all instances of a row. A name that cannot be the value of a label is left out.
func labelsOf(biz int, r *topology.Row) map[string]string {
	labels := map[string]string{processNameLabel: r.Name, processLabel: strconv.Itoa(r.Process),
		gozzard.LabelBusiness: strconv.Itoa(biz)}
	for label, name := range map[string]string{gozzard.LabelSet: r.SetName, gozzard.LabelModule: r.ModuleName} {
		if name != "" && len(name) <= gozzard.MaxProcessNameBytes {
			labels[label] = name
		}
	}
	return labels
}

// define gives an item the definition of its instance. If a template in it cannot be rendered, an action that brings a
// definition to the host is not possible; any other action takes the one that the host has.
func define(ctx context.Context, d *topology.Definer, def *topology.Process, r *topology.Row,
	in topology.RowInstance, it *record.TopologyItem) {
	spec, err := d.Define(ctx, def, topology.Naming{SetName: r.SetName, ModuleName: r.ModuleName, Alias: r.Name,
		Local: in.Local, Inst: in.Inst})
	if err == nil {
		it.Item.Spec = spec
		return
	}

	switch it.Item.Action {
	case gozzard.ActionStart, gozzard.ActionRestart, gozzard.ActionReload, gozzard.ActionHost:
		it.Template = err.Error()
		it.Item.Refused = &gozzard.Outcome{Code: gozzard.CodeRefused, Message: it.Template}
	}
}

// definitions reads the processes of rows, by id. A process whose alias changed since it was found is missing: for the
// fleet it is another process.
func (t *businesses) definitions(ctx context.Context, biz int, rows []topology.Row) (map[int]*topology.Process, error) {
	alias := make(map[int]string, len(rows))
	ids := make([]int, 0, len(rows))
	for i := range rows {
		alias[rows[i].Process] = rows[i].Name
		ids = append(ids, rows[i].Service)
	}

	slices.Sort(ids)
	services, err := t.o.Topology.Services(ctx, biz, slices.Compact(ids))
	if err != nil {
		return nil, fmt.Errorf("cannot read the definitions of business %d: %w", biz, err)
	}

	defs := make(map[int]*topology.Process, len(rows))
	for i := range services {
		for j := range services[i].Processes {
			def := &services[i].Processes[j]
			if name, asked := alias[def.ID]; asked && name == def.Name {
				defs[def.ID] = def
			}
		}
	}

	return defs, nil
}

// targetOn is the target for a host of a business: by its agent if the fleet knows that agent, else by its address.
// CMDB may have the agent of another fleet manager.
func (t *businesses) targetOn(h topology.Host, key gozzard.Key) gozzard.Target {
	addr := h.Addr()
	target := gozzard.Target{Addr: addr, ResultKey: addr.String() + ":" + key.String()}
	if _, ours := t.o.Live.Host(h.Agent); h.Agent != "" && (ours || !addr.IP.IsValid()) {
		target.Addr, target.Agent = gozzard.HostAddr{}, h.Agent
		if !addr.IP.IsValid() {
			target.ResultKey = string(h.Agent) + ":" + key.String()
		}
	}
	return target
}
