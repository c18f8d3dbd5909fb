package gse

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

const maxPage = 1000

type procInfos struct {
	Infos []procInfo `json:"proc_infos"`
}

type procPage struct {
	Count int        `json:"count"`
	Infos []procInfo `json:"proc_infos"`
}

// procInfo is one row. Every field is always present, because clients fail without host, id, isauto or status.
type procInfo struct {
	Meta          procMeta `json:"meta"`
	Host          hostData `json:"host"`
	AgentID       string   `json:"bk_agent_id"`
	Flag          int      `json:"flag"`
	Status        int      `json:"status"`
	IsAuto        bool     `json:"isauto"`
	Message       string   `json:"message"`
	PID           int32    `json:"pid"`
	Version       string   `json:"version"`
	RegisterTime  int64    `json:"register_time"`
	LastStartTime int64    `json:"last_start_time"`
	ReportTime    int64    `json:"report_time"`
	CPUUsage      float64  `json:"cpu_usage"`
	MemUsage      float64  `json:"mem_usage"`
	FD            int32    `json:"fd"`
	Disk          int64    `json:"disk"`
	Net           int64    `json:"net"`
}

type procMeta struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
}

type hostData struct {
	IP       string `json:"ip"`
	Cloud    int    `json:"bk_cloud_id"`
	Supplier int    `json:"bk_supplier_id"`
}

// status answers from the last reports of the agents, without asking them. It has a row for every host in the request.
// Labels do not filter.
func (s *server) status(_ context.Context, c *blueking.Call) (any, error) {
	m := readMeta(c.Body.Get("meta"), true)
	places := s.readPlaces(&c.Body)
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	rows := s.plane.Status(c.Caller, m.key, targets(places, formV1, m.key))
	out := procInfos{Infos: make([]procInfo, len(rows))}
	for i := range rows {
		out.Infos[i] = askedRow(c.Words, &rows[i], &places[i], m.key)
	}
	return out, nil
}

// askedRow is the row of one host in the request, under the name in the request.
func askedRow(w blueking.Words, r *record.StatusRow, p *place, key gozzard.Key) procInfo {
	var info procInfo
	switch {
	case r.ProcKnown:
		info = liveRow(w, &r.Row)
	case !r.HostKnown:
		info = blankRow(key, w.Message("no agent of this host is known"))
	case !r.Host.Online:
		info = blankRow(key, w.Message("not registered on this host, whose agent is offline"))
	default:
		info = blankRow(key, w.Message("not registered on this host"))
	}

	if r.HostKnown {
		info.AgentID = string(r.Host.Info.Agent)
		if addrs := r.Host.Info.Addrs; len(addrs) > 0 {
			info.Host = hostOf(addrs[0])
		}
	}

	if p.byID {
		info.AgentID = p.id
	}
	if p.ip != "" {
		info.Host = hostData{IP: p.ip, Cloud: p.cloud, Supplier: p.supplier}
	}

	return info
}

func hostOf(a gozzard.HostAddr) hostData {
	h := hostData{Cloud: a.Cloud}
	if a.IP.IsValid() {
		h.IP = a.IP.String()
	}
	return h
}

func blankRow(key gozzard.Key, message string) procInfo {
	return procInfo{Meta: procMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{}}, PID: -1,
		Message: message}
}

// liveRow is a row of the live status. If the host is offline, the row says so and has the last known numbers.
func liveRow(w blueking.Words, r *fleet.Row) procInfo {
	st := &r.Status
	info := blankRow(st.Key, w.Message(st.Message))

	if st.Labels != nil {
		info.Meta.Labels = st.Labels
	}

	// Identity and state.
	info.Host, info.AgentID = hostOf(r.Addr), string(r.Agent)
	info.Flag, info.Status, info.IsAuto, info.Version = runState(st.Wanted), runState(st.State), st.Hosted, st.Version
	info.RegisterTime, info.LastStartTime, info.ReportTime = st.RegisteredAt, st.StartedAt, st.ReportedAt

	if st.State == gozzard.StateRunning && st.PID > 1 {
		info.PID = st.PID
	}

	// Use of resources.
	info.CPUUsage, info.MemUsage = shortest(st.CPU), shortest(st.Mem)
	info.FD, info.Disk, info.Net = st.FD, st.Disk, st.Net

	// Say that the report is old.
	if r.Stale {
		silent := "the agent is silent, this is what it reported last"
		if st.ReportedAt > 0 {
			silent = fmt.Sprintf("the agent is silent, this is what it reported at %s",
				time.Unix(st.ReportedAt, 0).UTC().Format(time.RFC3339))
		}
		if silent = w.Message(silent); info.Message != "" {
			silent += ": " + info.Message
		}
		info.Message = silent
	}

	return info
}

// runState is a number that clients know: one of them fails on others.
func runState(s gozzard.RunState) int {
	if s > gozzard.StateStopped {
		return int(gozzard.StateUnregistered)
	}
	return int(s)
}

// shortest converts a float32 and rounds it to four places, which hides the digits that the conversion adds.
func shortest(x float32) float64 { return math.Round(gozzard.Finite(float64(x))*1e4) / 1e4 }

// sync lists the processes of a namespace in pages. Any text is allowed as a namespace; it is not a pattern.
func (s *server) sync(_ context.Context, c *blueking.Call) (any, error) {
	meta, page := c.Body.Get("meta"), c.Body.Get("page")
	var namespace string
	var start, limit int64

	if meta.Object() {
		v := meta.Get("namespace")
		if namespace = v.Str(); len(namespace) > gozzard.MaxProcessNameBytes {
			v.Fault("has %d bytes, at most %d are allowed", len(namespace), gozzard.MaxProcessNameBytes)
		}
	}

	if page.Object() {
		first, most := page.Get("start"), page.Get("limit")
		start, limit = min(first.Int(0, math.MaxInt64), math.MaxInt32), most.Int(1, maxPage)
	}

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	// Render the page.
	total, rows := s.plane.Page(c.Caller, namespace, int(start), int(limit))
	out := procPage{Count: total, Infos: make([]procInfo, len(rows))}
	for i := range rows {
		out.Infos[i] = liveRow(c.Words, &rows[i])
	}

	return out, nil
}
