package gse

import (
	"math"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// form is the form of result keys: those of V1 contain the supplier.
type form uint8

const (
	formV1 form = iota + 1
	formV2
)

const maxCloud = math.MaxInt32

// place is one host as the caller named it. The answer names it in the same way, because clients look results up by
// that name.
type place struct {
	target   gozzard.Target
	id       string // as sent in agent_id_list
	byID     bool
	ip       string // as sent
	cloud    int
	supplier int
}

// name is the host's part of a result key. A key is never split, because an IPv6 address contains colons.
func (p *place) name(f form) string {
	if p.byID {
		return p.id
	}
	if f == formV1 {
		return strconv.Itoa(p.cloud) + ":" + strconv.Itoa(p.supplier) + ":" + p.ip
	}
	return strconv.Itoa(p.cloud) + ":" + p.ip
}

// hostID identifies a host, so that a host that is named twice counts once.
type hostID struct {
	agent gozzard.AgentID
	addr  gozzard.HostAddr
}

func (p *place) hostID() hostID { return hostID{p.target.Agent, p.target.Addr} }

// readPlaces reads agent_id_list or hosts of a request or an item. The list of ids takes precedence. Each host comes
// once, in the order of the request.
func (s *server) readPlaces(v *strictjson.Value) []place {
	ids, hosts := v.Get("agent_id_list"), v.Get("hosts")
	size := min(max(ids.Len(), hosts.Len()), s.maxHosts)
	places, seen := make([]place, 0, size), make(map[hostID]bool, size)
	add := func(p place) {
		if id := p.hostID(); !seen[id] {
			seen[id] = true
			places = append(places, p)
		}
	}

	before := v.Faults().Len()

	if !ids.Given() && !hosts.Exists() {
		hosts.Fault("required, or agent_id_list")
		return nil
	}

	n := ids.OptList(s.maxHosts, func(e *strictjson.Value) { add(readAgent(e)) })
	if n == 0 && v.Faults().Len() == before {
		n = hosts.List(s.maxHosts, func(e *strictjson.Value) { add(readHost(e)) })
	}
	if n == 0 && v.Faults().Len() == before {
		hosts.Fault("at least one host is required")
	}

	return places
}

// readHost reads {ip, bk_cloud_id, bk_supplier_id}. The supplier has no meaning any more, and real clients leave it
// out.
func readHost(e *strictjson.Value) place {
	if !e.Object() {
		return place{}
	}

	ip, cloud, supplier := e.Get("ip"), e.Get("bk_cloud_id"), e.Get("bk_supplier_id")
	p := place{
		ip:       ip.AnyStr(),
		cloud:    int(cloud.Int(0, maxCloud)),
		supplier: int(supplier.OptInt(0, 0, maxCloud)),
	}

	if !ip.IsString() {
		return p
	}

	addr, err := gozzard.ParseIP(p.ip)
	if err != nil {
		ip.Fault("%v", clipped(err))
	}

	p.target.Addr = gozzard.HostAddr{Cloud: p.cloud, IP: addr}
	return p
}

// readAgent reads an agent id, or cloud:ip for a host whose agent id the caller does not know. One client sends empty
// ids; they are ignored.
func readAgent(e *strictjson.Value) place {
	p := place{byID: true, id: e.AnyStr()}

	if !e.IsString() {
		return p
	}
	if p.id == "" {
		p.target.Refused = &gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "the agent id is empty"}
		return p
	}

	if id := gozzard.AgentID(p.id); id.Validate() == nil {
		p.target.Agent = id
		return p
	}

	addr, err := gozzard.ParseHostAddr(p.id)
	if err != nil {
		e.Fault("is neither an agent id (1 to 64 letters, digits, _ and -) nor cloud:ip")
		return p
	}

	p.target.Addr, p.cloud, p.ip = addr, addr.Cloud, addr.IP.String()
	return p
}

// clipped shortens a message that quotes the request.
func clipped(err error) string {
	const most = 200
	s := err.Error()
	if len(s) <= most {
		return s
	}
	return "is not an IP address (" + strconv.Itoa(len(s)) + " bytes)"
}

// targets makes targets of places, with their result keys.
func targets(places []place, f form, key gozzard.Key) []gozzard.Target {
	out := make([]gozzard.Target, len(places))
	tail := ":" + key.Namespace + ":" + key.Name
	for i := range places {
		out[i] = places[i].target
		out[i].ResultKey = places[i].name(f) + tail
	}
	return out
}
