package gse

import (
	"context"

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
	AgentID    string `json:"bk_agent_id"`
	Cloud      int    `json:"bk_cloud_id"`
	Version    string `json:"version"`
	RunMode    int    `json:"run_mode"`
	StatusCode int    `json:"status_code"`
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
		out[i] = agentState{AgentID: p.agentID(host), Cloud: p.shown(host).Cloud, Version: host.Info.Version,
			RunMode: runModeAgent, StatusCode: code}
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
		if !host.LastSeen.IsZero() {
			r.ReportTime = host.LastSeen.UnixMilli()
		}
		r.StatusCode, r.Status = stateOf(host, known)
		r.LastStatusCode, r.LastStatus = r.StatusCode, r.Status
		out[i] = r
	}

	return out, nil
}
