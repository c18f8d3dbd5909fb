package api

import (
	"math"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
)

type hostsBody struct {
	Count int        `json:"count"`
	Hosts []hostBody `json:"hosts"`
	// RestoredFrom is when the backup was taken that the record came from, while hosts wait for an admin to confirm
	// them.
	RestoredFrom *time.Time `json:"restored_from,omitempty"`
}

type hostBody struct {
	Agent     gozzard.AgentID `json:"agent"`
	Addrs     []hostAddr      `json:"addrs"`
	Online    bool            `json:"online"`
	LastSeen  *time.Time      `json:"last_seen,omitempty"`
	Hostname  string          `json:"hostname"`
	OS        string          `json:"os"`
	Arch      string          `json:"arch"`
	Version   string          `json:"version"`
	StartedAt int64           `json:"started_at"`
	CPUs      int             `json:"cpus"`
	MemBytes  int64           `json:"mem_bytes"`
	Mode      string          `json:"mode,omitempty"` // root, cap or user; left out while the agent has not said
	Degraded  []string        `json:"degraded,omitempty"`
	Trust     enrol.State     `json:"trust,omitempty"` // of a host that was enrolled
	Flag      string          `json:"flag,omitempty"`  // what the server holds against its agent, in words
}

type hostAddr struct {
	Cloud int    `json:"cloud"`
	IP    string `json:"ip"`
}

// getHosts lists every host that was ever seen and the caller may see, by cloud and address.
func (a *api) getHosts(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "start", "limit")
	if err != nil {
		return err
	}

	start, limit := q.number("start", 0, 0, math.MaxInt32), q.number("limit", defaultPage, 1, maxPage)

	if err := q.faults.Err(); err != nil {
		return err
	}

	hosts := a.Plane.Hosts(caller)
	body := hostsBody{Count: len(hosts), Hosts: []hostBody{}, RestoredFrom: a.restoredFrom()}
	first := min(start, len(hosts))
	for i := range hosts[first:min(len(hosts), first+limit)] {
		h := renderHost(&hosts[first+i])
		if a.Enrol != nil {
			h.Trust = a.Enrol.StateOf(h.Agent)
		}
		if a.Flag != nil {
			h.Flag = a.Flag(h.Agent)
		}
		body.Hosts = append(body.Hosts, h)
	}

	return answer(w, http.StatusOK, body)
}

func renderHost(h *fleet.Host) hostBody {
	i := &h.Info
	b := hostBody{Agent: i.Agent, Addrs: []hostAddr{}, Online: h.Online, Hostname: i.Hostname, OS: i.OS, Arch: i.Arch,
		Version:   i.Version,
		StartedAt: i.StartedAt, CPUs: i.CPUs, MemBytes: i.MemBytes, Mode: i.Mode.String(), Degraded: i.Degraded}
	if !h.LastSeen.IsZero() {
		seen := h.LastSeen.UTC()
		b.LastSeen = &seen
	}
	for _, a := range i.Addrs {
		b.Addrs = append(b.Addrs, hostAddr{Cloud: a.Cloud, IP: a.IP.String()})
	}
	return b
}
