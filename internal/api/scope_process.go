package api

import (
	"math"
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxRows bounds the instances of one page: a process may have thousands.
const maxRows = 10 * maxPage

// placeBody is where in its business an instance is.
type placeBody struct {
	Biz         int    `json:"biz"`
	Set         int    `json:"set"`
	SetName     string `json:"set_name"`
	Env         int    `json:"env"`
	Module      int    `json:"module"`
	ModuleName  string `json:"module_name"`
	Service     int    `json:"service"`
	ServiceName string `json:"service_name"`
	Process     int    `json:"process"`
	Alias       string `json:"alias"`
	Local       int    `json:"local_inst_id"`
	Inst        int    `json:"inst_id"`
	Priority    int    `json:"priority"`
}

// getScope lists processes of a business by their ids, a row for each instance. Start, limit and count are in
// processes.
func (a *api) getScope(w http.ResponseWriter, caller gozzard.Caller, q *query, s *scope) error {
	if q.values.Has("namespace") {
		q.faults.Add("namespace", "is not for a business: its processes are in one of their own")
	}
	if q.values.Has("cloud") && len(s.Clouds) == 0 {
		q.each("cloud", numbers(&s.Clouds))
	}

	s.States = q.states()

	if hosted := q.hosted(); hosted != nil {
		s.Hosted = []bool{*hosted}
	}

	s.Start, s.Limit = q.number("start", 0, 0, math.MaxInt32), q.number("limit", defaultPage, 1, maxPage)

	if err := q.faults.Err(); err != nil {
		return err
	}

	count, rows := a.Plane.FindProcesses(caller, s.Query)
	body := processesBody{Count: count, Processes: []processBody{}}
	shown := 0
	for i := range rows {
		if len(body.Processes)+len(rows[i].Instances) > maxRows && shown > 0 {
			break
		}
		for j := range rows[i].Instances {
			body.Processes = append(body.Processes, a.renderInstance(caller, &rows[i], j))
		}
		shown++
	}

	body.turn(s.Start, shown)
	return answer(w, http.StatusOK, body)
}

// renderInstance is one instance as it was found, with the rest of what is known of it.
func (a *api) renderInstance(caller gozzard.Caller, r *topology.Row, i int) processBody {
	in := &r.Instances[i]
	key := topology.Key(r.Biz, r.Name, in.Local)
	b := processBody{Agent: r.Host.Agent, Namespace: key.Namespace, Name: key.Name,
		Wanted: gozzard.StateUnregistered.String()}

	if row := a.Plane.Status(caller, key, []gozzard.Target{a.hostOf(caller, r.Host)})[0]; row.ProcKnown {
		b = renderProcess(&row.Row)
	} else if row.HostKnown {
		b.Agent = row.Host.Info.Agent
	}

	addr := r.Host.Addr()
	b.Cloud, b.IP = addr.Cloud, ""
	if addr.IP.IsValid() {
		b.IP = addr.IP.String()
	}

	b.State, b.Hosted, b.PID, b.ReportedAt, b.Stale = in.Status.State.String(), in.Status.Hosted, in.Status.PID,
		in.Status.ReportedAt, in.Status.Stale
	b.Topology = &placeBody{
		Biz: r.Biz, Set: r.Set, SetName: r.SetName, Env: int(r.Env), Module: r.Module, ModuleName: r.ModuleName,
		Service: r.Service, ServiceName: r.ServiceName, Process: r.Process, Alias: r.Name, Local: in.Local,
		Inst: in.Inst, Priority: r.Priority,
	}
	return b
}

// hostOf names a host of a business: by its agent where that is known here.
func (a *api) hostOf(caller gozzard.Caller, h topology.Host) gozzard.Target {
	if h.Agent != "" {
		if _, ok := a.Plane.Resolve(caller, gozzard.Target{Agent: h.Agent}); ok {
			return gozzard.Target{Agent: h.Agent}
		}
	}
	return gozzard.Target{Addr: h.Addr()}
}
