package gse

import (
	"context"
	"math"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The values of status_code. Clients look for 2 only.
const (
	agentNotFound = -2
	agentUnknown  = -1 // the agent does not answer
	agentRunning  = 2
)

// runModeAgent is the run mode of an agent, as opposed to a proxy.
const runModeAgent = 1

type upgraded struct {
	Failed  []string `json:"failed"`
	Success []string `json:"success"`
}

// upgrade binds what is stored for the address of a host to an agent id. A host that this agent does not serve is
// listed as failed. An error of the server ends the call, which can be repeated.
func (s *server) upgrade(ctx context.Context, c *blueking.Call) (any, error) {
	type binding struct {
		place
		agent gozzard.AgentID
	}
	var list []binding
	seen := make(map[hostID]bool)
	hosts := c.Body.Get("hosts")
	before := c.Faults.Len()

	// Read the hosts, each once.
	n := hosts.List(s.maxHosts, func(e *strictjson.Value) {
		b := binding{place: readHost(e)}
		if id := e.Get("bk_agent_id"); e.IsObject() {
			b.agent = gozzard.AgentID(id.Str())
			if err := b.agent.Validate(); err != nil && b.agent != "" {
				id.Fault("is not an agent id (1 to 64 letters, digits, _ and -)")
			}
		}
		if id := b.hostID(); !seen[id] {
			seen[id] = true
			list = append(list, b)
		}
	})

	// Reject a request with faults.
	if n == 0 && c.Faults.Len() == before {
		hosts.Fault("at least one host is required")
	}
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	// Bind them one by one.
	out := upgraded{Failed: []string{}, Success: []string{}}
	for i := range list {
		b := &list[i]
		err := s.plane.Rebind(ctx, c.Caller, b.target.Addr, b.agent, c.Hash)
		if err == nil {
			out.Success = append(out.Success, b.name(formV2))
			continue
		}
		switch gozzard.KindOf(err) {
		case gozzard.ErrNotFound, gozzard.ErrConflict, gozzard.ErrInvalid, gozzard.ErrAppForbidden:
			out.Failed = append(out.Failed, b.name(formV2))
		default:
			return nil, err
		}
	}

	return out, nil
}

type agentAlive struct {
	IP    string `json:"ip"`
	Cloud int    `json:"bk_cloud_id"`
	Alive int    `json:"bk_agent_alive"`
}

func (s *server) agentStatus(_ context.Context, c *blueking.Call) (any, error) {
	places := s.readPlaces(&c.Body)

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	out := make(map[string]agentAlive, len(places))
	for i := range places {
		p := &places[i]
		host, known := s.plane.Resolve(c.Caller, p.target)
		at := p.shown(host)
		a := agentAlive{IP: at.IP, Cloud: at.Cloud}
		if known && host.Online {
			a.Alive = 1
		}
		out[p.name(formV2)] = a
	}

	return out, nil
}

// shown is the address of a host in answers: as the caller sent it, else as the agent reports it.
func (p *place) shown(h fleet.Host) hostData {
	if p.ip == "" && len(h.Info.Addrs) > 0 {
		return hostOf(h.Info.Addrs[0])
	}
	return hostData{IP: p.ip, Cloud: p.cloud, Supplier: p.supplier}
}

type agentVersion struct {
	IP         string `json:"ip"`
	Version    string `json:"version"`
	Cloud      int    `json:"bk_cloud_id"`
	ParentIP   string `json:"parent_ip"`
	ParentPort int    `json:"parent_port"`
}

func (s *server) agentInfo(_ context.Context, c *blueking.Call) (any, error) {
	places := s.readPlaces(&c.Body)
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	out := make(map[string]agentVersion, len(places))
	for i := range places {
		p := &places[i]
		host, _ := s.plane.Resolve(c.Caller, p.target)
		at := p.shown(host)
		out[p.name(formV2)] = agentVersion{IP: at.IP, Cloud: at.Cloud, Version: host.Info.Version}
	}
	return out, nil
}

type agentState struct {
	AgentID        string `json:"bk_agent_id"`
	Cloud          int    `json:"bk_cloud_id"`
	Version        string `json:"version"`
	RunMode        int    `json:"run_mode"`
	StatusCode     int    `json:"status_code"`
	LastStatusCode int    `json:"last_status_code"`
	ReportTime     int64  `json:"report_time"` // milliseconds
}

func stateOf(h fleet.Host, known bool) (code int, word string) {
	switch {
	case !known:
		return agentNotFound, "not found"
	case !h.Online:
		return agentUnknown, "unknown"
	}
	return agentRunning, "running"
}

// lastStateOf is the state before the present one: an agent that was heard once was running then.
func lastStateOf(h fleet.Host, known bool) (code int, word string) {
	if known && !h.LastSeen.IsZero() {
		return agentRunning, "running"
	}
	return stateOf(h, known)
}

// reportTime is when the agent was last heard, in milliseconds; 0 means never.
func reportTime(h fleet.Host) int64 {
	if h.LastSeen.IsZero() {
		return 0
	}
	return h.LastSeen.UnixMilli()
}

// listAgentState answers with a row for every agent in the request, also if none is known. GSE answers with a number
// that most clients take for an error.
func (s *server) listAgentState(_ context.Context, c *blueking.Call) (any, error) {
	places := s.readPlaces(&c.Body)

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	out := make([]agentState, len(places))
	for i := range places {
		p := &places[i]
		host, known := s.plane.Resolve(c.Caller, p.target)
		code, _ := stateOf(host, known)
		last, _ := lastStateOf(host, known)
		out[i] = agentState{AgentID: p.agentID(host), Cloud: p.shown(host).Cloud, Version: host.Info.Version,
			RunMode: runModeAgent, StatusCode: code, LastStatusCode: last, ReportTime: reportTime(host)}
	}

	return out, nil
}

// agentID is the agent id of a host in answers: as the caller sent it, else as the agent reports it.
func (p *place) agentID(h fleet.Host) string {
	if p.byID {
		return p.id
	}
	return string(h.Info.Agent)
}

type agentRow struct {
	Code           int     `json:"code"`
	Message        string  `json:"message"`
	AgentID        string  `json:"bk_agent_id"`
	Cloud          int     `json:"bk_cloud_id"`
	HostIP         string  `json:"bk_host_ip"`
	OSType         string  `json:"bk_os_type"`
	ReportTime     int64   `json:"report_time"` // milliseconds
	ParentIP       string  `json:"parent_ip"`
	ParentPort     int     `json:"parent_port"`
	Version        string  `json:"version"`
	CPURate        float64 `json:"cpu_rate"`
	MemRate        float64 `json:"mem_rate"`
	StartTime      int64   `json:"start_time"` // seconds
	RunMode        int     `json:"run_mode"`
	StatusCode     int     `json:"status_code"`
	Status         string  `json:"status"`
	LastStatusCode int     `json:"last_status_code"`
	LastStatus     string  `json:"last_status"`
	Remark         string  `json:"remark"`
	Architecture   string  `json:"bk_cpu_architecture"` // x86 or arm, as CMDB has it
	CPUs           int     `json:"cpu_num"`
	MemSize        int64   `json:"mem_size"`       // MiB
	LastWorkTime   int64   `json:"last_work_time"` // milliseconds
	// always 0: connections of agents are not opened in cycles
	ConnCycleTime int64 `json:"conn_cycle_time"`
}

// architecture is the kind of processor in the words of CMDB.
func architecture(arch string) string {
	switch arch {
	case "amd64", "386":
		return "x86"
	case "arm64", "arm":
		return "arm"
	}
	return arch
}

// machine adds what is known about the machine. Of a host that is offline, its use is not known.
func (r *agentRow) machine(h *fleet.Host) {
	r.Architecture, r.CPUs, r.MemSize = architecture(h.Info.Arch), h.Info.CPUs, h.Info.MemBytes>>20
	v := h.Vitals
	if !h.Online || !v.Known {
		return
	}
	if v.Load >= 0 && h.Info.CPUs > 0 { // the load of the last minute, as a share of the processors
		r.CPURate = percent(float64(v.Load) / 1000 / float64(h.Info.CPUs))
	}
	if v.MemFree >= 0 && h.Info.MemBytes > 0 {
		r.MemRate = percent(1 - float64(v.MemFree)/float64(h.Info.MemBytes))
	}
}

// percent is a share as a number from 0 to 100 with two places.
func percent(share float64) float64 {
	return math.Round(min(max(share, 0), 1)*1e4) / 1e2
}

func (s *server) listAgentInfo(_ context.Context, c *blueking.Call) (any, error) {
	places := s.readPlaces(&c.Body)

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	out := make([]agentRow, len(places))
	for i := range places {
		p := &places[i]
		host, known := s.plane.Resolve(c.Caller, p.target)
		at := p.shown(host)
		r := agentRow{
			Message: "OK", AgentID: p.agentID(host), Cloud: at.Cloud, HostIP: at.IP, OSType: host.Info.OS,
			Version:   host.Info.Version,
			StartTime: host.Info.StartedAt, RunMode: runModeAgent,
		}
		if !known {
			r.Code, r.Message = blueking.EntryAgentAbnormal, c.Words.Message("no such agent")
		}
		r.ReportTime, r.LastWorkTime = reportTime(host), reportTime(host)
		r.StatusCode, r.Status = stateOf(host, known)
		r.LastStatusCode, r.LastStatus = lastStateOf(host, known)
		r.machine(&host)
		out[i] = r
	}

	return out, nil
}
