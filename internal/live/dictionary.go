package live

import (
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/topology"
)

// dictionaries are the lists that rows refer to. They only grow: a viewer gets what was appended. An entry without a
// use is never used again, and later snapshots do not show it. When many are unused, a new epoch begins.
type dictionaries struct {
	hosts  client.LiveHosts
	names  client.LiveNames
	places []client.LivePlace

	hostAt   []uint32          // index by the number of the host in the fleet, plus 1
	hostIs   []*fleet.LiveHost // the version for which hostAt was found, by number
	hostUse  []hostUse
	nameAt   map[gozzard.Key]uint32
	nameUse  []uint32 // rows of each name
	placeAt  map[topology.Place]uint32
	placeUse []uint32 // rows of each place
	dead     int      // entries without a use
}

// hostUse is what the dictionary knows of a host beside what it sends.
type hostUse struct {
	rows   uint32
	number uint32 // in the fleet
}

func newDictionaries() dictionaries {
	return dictionaries{
		hosts:  client.LiveHosts{Agent: []string{}, IP: []string{}, Cloud: []int{}, Online: []int{}},
		names:  client.LiveNames{Space: []string{}, Name: []string{}},
		places: []client.LivePlace{{0, "", "", ""}}, placeUse: []uint32{1},
		nameAt: map[gozzard.Key]uint32{}, placeAt: map[topology.Place]uint32{},
	}
}

// host is the index of a host. A host with another address gets another one.
func (d *dictionaries) host(h *fleet.LiveHost) uint32 {
	if n := int(h.Number) + 1; n > len(d.hostAt) {
		d.hostAt = append(d.hostAt, make([]uint32, n-len(d.hostAt))...)
		d.hostIs = append(d.hostIs, make([]*fleet.LiveHost, n-len(d.hostIs))...)
	}
	if at := d.hostAt[h.Number]; at != 0 && d.hostIs[h.Number] == h {
		return at - 1
	}

	addr, ip := firstAddr(h)
	d.hostIs[h.Number] = h
	if at := d.hostAt[h.Number]; at != 0 && d.hosts.IP[at-1] == ip && d.hosts.Cloud[at-1] == addr.Cloud {
		return at - 1
	}

	l := &d.hosts
	l.Agent, l.IP = append(l.Agent, string(h.Ref.Agent)), append(l.IP, ip)
	l.Cloud, l.Online = append(l.Cloud, addr.Cloud), append(l.Online, onlineState(h))
	d.hostUse = append(d.hostUse, hostUse{number: h.Number})
	d.hostAt[h.Number] = uint32(len(d.hostUse))
	return uint32(len(d.hostUse)) - 1
}

func firstAddr(h *fleet.LiveHost) (addr gozzard.HostAddr, ip string) {
	if len(h.Ref.Addrs) > 0 {
		addr = h.Ref.Addrs[0]
	}
	if addr.IP.IsValid() {
		ip = addr.IP.String()
	}
	return addr, ip
}

func onlineState(h *fleet.LiveHost) int {
	if h.Online {
		return client.LiveOnline
	}
	return client.LiveOffline
}

// lookHost is the index of a host that is in the dictionary.
func (d *dictionaries) lookHost(number uint32) (uint32, bool) {
	if int(number) >= len(d.hostAt) || d.hostAt[number] == 0 {
		return 0, false
	}
	return d.hostAt[number] - 1, true
}

// setOnline sets the state of a host and reports whether it changed. A host that is gone stays so.
func (d *dictionaries) setOnline(at uint32, state int) bool {
	old := &d.hosts.Online[at]
	if *old == state || *old == client.LiveGone {
		return false
	}
	if *old = state; state == client.LiveGone {
		d.dead++
		if number := d.hostUse[at].number; d.hostAt[number] == at+1 {
			d.hostAt[number] = 0
		}
	}
	return true
}

// name is the index of a name, with one more use.
func (d *dictionaries) name(k gozzard.Key) uint32 {
	at, ok := d.nameAt[k]
	if !ok {
		at = uint32(len(d.nameUse))
		d.nameAt[k] = at
		d.names.Space, d.names.Name = append(d.names.Space, k.Namespace), append(d.names.Name, k.Name)
		d.nameUse = append(d.nameUse, 0)
	}
	d.nameUse[at]++
	return at
}

// dropName counts one use less of a name.
func (d *dictionaries) dropName(at uint32) {
	if d.nameUse[at]--; d.nameUse[at] == 0 {
		d.dead++
		delete(d.nameAt, gozzard.Key{Namespace: d.names.Space[at], Name: d.names.Name[at]})
	}
}

// place is the index of a place, with one more use.
func (d *dictionaries) place(p topology.Place) uint32 {
	if p == (topology.Place{}) {
		return 0
	}
	at, ok := d.placeAt[p]
	if !ok {
		at = uint32(len(d.places))
		d.placeAt[p] = at
		d.places = append(d.places, client.LivePlace{p.Biz, p.Name, p.Set, p.Module})
		d.placeUse = append(d.placeUse, 0)
	}
	d.placeUse[at]++
	return at
}

// dropPlace counts one use less of a place.
func (d *dictionaries) dropPlace(at uint32) {
	if at == 0 {
		return
	}
	if d.placeUse[at]--; d.placeUse[at] == 0 {
		d.dead++
		delete(d.placeAt, placeAt(d.places[at]))
	}
}

// placeAt is a place that the dictionary has.
func placeAt(p client.LivePlace) topology.Place {
	return topology.Place{Biz: p[0].(int), Name: p[1].(string), Set: p[2].(string), Module: p[3].(string)}
}

// worn reports whether so much is not used any more that new dictionaries are worth a new snapshot.
func (d *dictionaries) worn() bool {
	return d.dead > 4096 && d.dead > (len(d.nameUse)+len(d.hostUse)+len(d.placeUse))/2
}

// shown copies the lists for a snapshot, without the texts of what is not used any more: rights may have moved on.
func (d *dictionaries) shown(h *client.LiveHeader) {
	h.Hosts = client.LiveHosts{Agent: slices.Clone(d.hosts.Agent), IP: slices.Clone(d.hosts.IP),
		Cloud: slices.Clone(d.hosts.Cloud), Online: slices.Clone(d.hosts.Online)}
	for i, state := range d.hosts.Online {
		if state == client.LiveGone {
			h.Hosts.Agent[i], h.Hosts.IP[i], h.Hosts.Cloud[i] = "", "", 0
		}
	}

	h.Names = client.LiveNames{Space: slices.Clone(d.names.Space), Name: slices.Clone(d.names.Name)}
	for i, uses := range d.nameUse {
		if uses == 0 {
			h.Names.Space[i], h.Names.Name[i] = "", ""
		}
	}

	h.Places = slices.Clone(d.places)
	for i, uses := range d.placeUse {
		if uses == 0 {
			h.Places[i] = client.LivePlace{0, "", "", ""}
		}
	}
}
