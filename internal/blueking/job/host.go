package job

import (
	"math"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// host is one host as the caller named it. The caller looks results up by that name.
type host struct {
	addr gozzard.HostAddr
	ip   string // as sent
}

func (h host) name() string { return strconv.Itoa(h.addr.Cloud) + ":" + h.ip }

// hosts reads an ip_list.
func (r *request) hosts(list strictjson.Value) []host {
	if !list.Given() || list.IsList() && list.Len() == 0 {
		r.violate(&list, "at least one host is required")
		return nil
	}
	all := make([]host, 0, min(list.Len(), r.s.maxHosts))
	list.List(r.s.maxHosts, func(v *strictjson.Value) { all = append(all, r.host(v)) })
	return all
}

func (r *request) host(v *strictjson.Value) host {
	if !v.Object() {
		return host{}
	}

	ip, cloud := v.Get("ip"), r.get(v, "bk_cloud_id", "source")
	h := host{addr: gozzard.HostAddr{Cloud: int(cloud.Int(0, math.MaxInt32))}}

	if !r.required(ip) {
		return h
	}

	h.ip = ip.AnyStr()
	addr, err := gozzard.ParseIP(h.ip)
	if err != nil {
		ip.Fault("%.100q is not the address of one host", h.ip)
	}

	h.addr.IP = addr
	return h
}
