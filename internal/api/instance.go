package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxInstances is the largest number of instances on one page: a process may have thousands.
const maxInstances = 10 * maxPage

// getInstances lists processes of a business, ordered by id, with a row for each instance. Start, limit and count are
// in processes.
func (a *api) getInstances(w http.ResponseWriter, caller gozzard.Caller, q *query, s *businessSelection) error {
	// Read the rest of the query.
	if q.values.Has("namespace") {
		q.faults.Add("namespace", "is not allowed with a business: its processes have their own")
	}
	if q.values.Has("label") {
		q.faults.Add("label", "is not allowed with a business: its processes are chosen by set, module, env and expression")
	}
	if q.values.Has("cloud") && len(s.Clouds) == 0 {
		s.Clouds = q.clouds()
	}
	s.Conditions = q.states()
	if managed := q.managed(); managed != nil {
		s.Hosted = []bool{*managed}
	}
	s.Start, s.Limit = q.page()
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Find the processes and render their instances, but never a part of a process.
	count, rows := a.Plane.FindProcesses(caller, s.Query)
	page := client.ProcessPage{Count: count, Processes: []client.Process{}}
	shown := 0
	for i := range rows {
		if len(page.Processes)+len(rows[i].Instances) > maxInstances && shown > 0 {
			break
		}
		host := a.hostOf(caller, rows[i].Host)
		for j := range rows[i].Instances {
			if p := a.renderInstance(caller, &rows[i], host, j); hasState(s.Conditions, p.State) {
				page.Processes = append(page.Processes, p)
			}
		}
		shown++
	}

	page.Next = nextPage(s.Start, shown, count)
	return answer(w, http.StatusOK, page)
}

// renderInstance renders one instance: its row in the business, and the rest of its live status.
func (a *api) renderInstance(caller gozzard.Caller, r *topology.Row, host gozzard.Target, i int) client.Process {
	in := &r.Instances[i]
	key := topology.Key(r.Biz, r.Name, in.Local)
	p := client.Process{Host: client.HostRef{Agent: r.Host.Agent}, Namespace: key.Namespace, Name: key.Name,
		Wanted: gozzard.StateUnregistered.String()}

	if row := a.Plane.Status(caller, key, []gozzard.Target{host})[0]; row.ProcKnown {
		p = renderProcess(&row.Row)
	} else {
		if row.HostKnown {
			p.Host.Agent = row.Host.Info.Agent
		}
		p.State = in.Status.Condition.String()
		p.Managed, p.PID, p.Stale = in.Status.Hosted, in.Status.PID, in.Status.Stale
		p.ReportedAt = client.UnixTime(in.Status.ReportedAt)
	}

	p.Host = hostRef(p.Host.Agent, r.Host.Addr())
	p.Topology = &client.Place{
		Biz: r.Biz, Set: r.Set, SetName: r.SetName, Env: int(r.Env), Module: r.Module, ModuleName: r.ModuleName,
		Service: r.Service, ServiceName: r.ServiceName, Process: r.Process, Alias: r.Name, Local: in.Local,
		Inst: in.Inst, Priority: r.Priority,
	}
	return p
}

// hasState reports whether a state is one of the conditions; no condition means all.
func hasState(conditions []gozzard.Condition, state string) bool {
	return len(conditions) == 0 ||
		slices.ContainsFunc(conditions, func(c gozzard.Condition) bool { return c.String() == state })
}

// hostOf names a host of a business: by its agent if the fleet has it, else by its address.
func (a *api) hostOf(caller gozzard.Caller, h topology.Host) gozzard.Target {
	if h.Agent != "" {
		if _, ok := a.Plane.Resolve(caller, gozzard.Target{Agent: h.Agent}); ok {
			return gozzard.Target{Agent: h.Agent}
		}
	}
	return gozzard.Target{Addr: h.Addr()}
}

// businessItems makes the items of an operation on processes of a business. What an action does without a command of
// its own is the same as for a process that is chosen by name: restart is stop and start, stop and kill send signals,
// and the agent rejects the others. GSEKit's rule, which needs every command, is for its own door.
func (a *api) businessItems(ctx context.Context, caller gozzard.Caller, s *businessSelection,
	action gozzard.Action) ([]gozzard.Item, error) {
	// Find the processes.
	s.Limit = record.MaxTargets
	total, rows := a.Plane.FindProcesses(caller, s.Query)
	switch {
	case total == 0:
		return nil, a.noMatch(caller, s.Biz)
	case total > record.MaxTargets:
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%d processes match, at most %d are allowed in one operation",
			total, record.MaxTargets)
	}

	// Make their items.
	found, err := a.Plane.TopologyItems(ctx, s.Biz, rows, action)
	if err != nil {
		return nil, err
	}
	items := make([]gozzard.Item, len(found))
	for i := range found {
		items[i] = found[i].Item
	}

	return items, nil
}

// noMatch is the error of a business selection that selects nothing.
func (a *api) noMatch(caller gozzard.Caller, biz int) error {
	if !slices.ContainsFunc(a.Plane.Businesses(caller), func(h record.BusinessHead) bool { return h.ID == biz }) {
		return unknownBusiness(biz)
	}
	return gozzard.Errorf(gozzard.ErrNotFound, "no process of business %d matches", biz)
}
