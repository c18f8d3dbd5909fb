package api

import (
	"math"
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
)

// getHosts lists every host that the caller may see, ordered by cloud and address.
func (a *api) getHosts(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	start, limit := q.page()
	if err := q.faults.Err(); err != nil {
		return err
	}

	hosts := a.Plane.Hosts(caller)
	page := client.HostPage{Count: len(hosts), Hosts: []client.HostInfo{}, RestoredFrom: a.restoredFrom()}
	first := min(start, len(hosts))
	for i := range hosts[first:min(len(hosts), first+limit)] {
		page.Hosts = append(page.Hosts, a.renderHost(&hosts[first+i]))
	}

	say := inLanguageOf(r)
	for i := range page.Hosts {
		h := &page.Hosts[i]
		h.Flag, h.Degraded = say(h.Flag), slices.Clone(h.Degraded) // the list belongs to the live index
		for j, text := range h.Degraded {
			h.Degraded[j] = say(text)
		}
	}
	return answer(w, http.StatusOK, page)
}

func (a *api) renderHost(h *fleet.Host) client.HostInfo {
	i := &h.Info
	out := client.HostInfo{Agent: i.Agent, Addrs: []client.HostAddr{}, Online: h.Online, Hostname: i.Hostname,
		OS: i.OS, Arch: i.Arch, Version: i.Version, StartedAt: client.UnixTime(i.StartedAt), CPUs: i.CPUs, MemBytes: i.MemBytes,
		Mode: i.Mode.String(), Degraded: i.Degraded, PolicyDigest: i.PolicyDigest, LastSeen: client.At(h.LastSeen),
		DefaultAccount: i.DefaultAccount}

	renderVitals(h, &out)

	for _, addr := range i.Addrs {
		out.Addrs = append(out.Addrs, client.HostAddr{Cloud: addr.Cloud, IP: addr.IP.String()})
	}

	if a.Enrol != nil {
		out.Trust = string(a.Enrol.StateOf(i.Agent))
	}
	if a.Flag != nil {
		out.Flag = a.Flag(i.Agent)
	}

	return out
}

// renderVitals adds how the machine is. Of a host that is offline, it is not known.
func renderVitals(h *fleet.Host, out *client.HostInfo) {
	v := h.Vitals
	if !h.Online || !v.Known {
		return
	}

	// A tenth of a second is more than the network lets anybody measure.
	skew := math.Round(v.Skew.Seconds()*10)/10 + 0 // no -0
	out.ClockSkew = &skew

	if v.Load != gozzard.NotMeasured && h.Info.CPUs > 0 {
		load := math.Round(float64(v.Load)/float64(h.Info.CPUs)/10) / 100
		out.Load = &load
	}
	if v.MemFree != gozzard.NotMeasured {
		free := v.MemFree
		if h.Info.MemBytes > 0 {
			free = min(free, h.Info.MemBytes)
		}
		out.MemFree = &free
	}
}
