package index

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard/internal/topology"
)

// fewAliases bounds how many aliases are decided only to learn how many rows they have.
const fewAliases = 4096

// What it costs to try a candidate. Services are walked through in the order in which they and their names are in
// memory; to ask from a row for its service means to jump there, and back for the next row.
const (
	costOfRow     = 1
	costOfService = 8
	costOfJump    = 16
	noList        = math.MaxInt
)

// pick puts the rows that fit into the set, through the list of candidates that costs least. It reports true
// instead, and leaves the set as it is, when all rows fit.
func (v *sieve) pick() (all bool) {
	if v.env == topology.EnvAny && v.decided == nil && !v.asksOwn() {
		return true
	}

	*v.rows = v.rows.resize(len(v.c.ids), false)
	each := costOfRow

	if v.decided != nil {
		each += costOfJump
	}

	aliases, byAlias := v.aliasList(each)
	services, byService := v.serviceSpans()
	byID := noList
	for _, ids := range v.ids {
		byID = min(byID, ids.size()*each)
	}

	switch min(byID, byAlias, byService) {
	case noList:
		if !v.asksOwn() {
			copy(*v.rows, v.c.envs[v.env])
			return false
		}
		v.pickAll()
	case byID:
		v.pickIDs()
	case byAlias:
		v.pickAliases(aliases)
	case byService:
		v.pickServices(services)
	}

	if v.env != topology.EnvAny {
		v.rows.and(v.c.envs[v.env])
	}

	return false
}

// narrow removes rows that do not fit from the set. It is never asked for an environment, which belongs to what
// comes before a slice.
func (v *sieve) narrow() {
	for row := range v.rows.all() {
		if !v.fits(row) {
			v.rows.put(row, false)
		}
	}
}

func (v *sieve) pickIDs() {
	for _, s := range slices.MinFunc(v.ids, func(a, b rowSpans) int { return cmp.Compare(a.size(), b.size()) }) {
		for ; s.from < s.to; s.from++ {
			if v.fits(s.from) {
				v.rows.set(s.from)
			}
		}
	}
}

func (v *sieve) pickAliases(aliases []uint32) {
	asksIDs := len(v.ids) > 0 || v.idText != nil
	for _, a := range aliases {
		for _, row := range v.c.aliasRows.of(a) {
			if v.serviceFits(v.c.service[row]) && (!asksIDs || v.idFits(row)) {
				v.rows.set(row)
			}
		}
	}
}

// pickServices asks about a service only when one of its processes has an alias that fits.
func (v *sieve) pickServices(services []span) {
	c, asksIDs := v.c, len(v.ids) > 0 || v.idText != nil
	for _, part := range services {
		for s := part.from; s < part.to; s++ {
			kinds := c.serviceKinds[c.serviceRows.start[s]:]
			for i, row := range c.serviceRows.of(s) {
				if !v.kindFits(kinds[i]) {
					continue
				}
				if !v.serviceFits(s) {
					break
				}
				if !asksIDs || v.idFits(row) {
					v.rows.set(row)
				}
			}
		}
	}
}

// pickAll is for ids that only their text tells and aliases too many to look through, where every service fits.
func (v *sieve) pickAll() {
	for row := range uint32(len(v.c.ids)) {
		if v.ownFits(row) {
			v.rows.set(row)
		}
	}
}

// aliasList are the aliases that fit and what it costs to try their rows.
func (v *sieve) aliasList(each int) (aliases []uint32, cost int) {
	c, t := v.c, &v.aliases
	words, ok := t.words()
	switch {
	case ok:
		for _, w := range words {
			if a, found := slices.BinarySearch(c.aliases, w); found && t.fits(uint32(a)) {
				aliases = append(aliases, uint32(a))
			}
		}
	case t.asks && len(c.aliases) <= fewAliases:
		for a := range uint32(len(c.aliases)) {
			if t.fits(a) {
				aliases = append(aliases, a)
			}
		}
	default:
		return nil, noList
	}

	for _, a := range aliases {
		cost += len(c.aliasRows.of(a)) * each
	}

	return aliases, cost
}

// serviceSpans are the services among which those that fit are, and what it costs to try them.
func (v *sieve) serviceSpans() (best []span, cost int) {
	cost = noList

	if v.decided == nil {
		return nil, cost
	}

	consider := func(list []span) {
		n := 0
		for _, s := range list {
			n += v.c.serviceRows.size(s)*costOfRow + int(s.to-s.from)*costOfService
		}
		if n < cost {
			best, cost = list, n
		}
	}

	consider([]span{{0, uint32(len(v.c.services))}})

	if v.moduleFits != nil {
		consider(v.inModules())
	}
	if v.services != nil {
		consider(v.withIDs())
	}
	if v.hosts.ips != nil {
		consider(v.onHosts())
	}
	if words, ok := v.serviceNames.words(); ok {
		consider(v.withNames(words))
	}

	return best, cost
}

func (v *sieve) inModules() (list []span) {
	for _, m := range v.modules {
		s := v.c.modules[m].services
		if last := len(list) - 1; last >= 0 && list[last].to == s.from {
			list[last].to = s.to
		} else {
			list = append(list, s)
		}
	}
	return list
}

func (v *sieve) withIDs() (list []span) {
	for _, id := range v.services {
		for _, s := range run(v.c.servicesByID, func(s uint32) int { return cmp.Compare(v.c.services[s].id, id) }) {
			list = append(list, span{s, s + 1})
		}
	}
	return list
}

func (v *sieve) onHosts() (list []span) {
	for ip := range v.hosts.ips {
		for h := v.c.hostsAt(ip); h.from < h.to; h.from++ {
			for _, s := range v.c.hostServices.of(h.from) {
				list = append(list, span{s, s + 1})
			}
		}
	}
	return list
}

func (v *sieve) withNames(words []string) (list []span) {
	for _, w := range words {
		for _, s := range run(v.c.servicesByName, func(s uint32) int { return cmp.Compare(v.c.serviceName(s), w) }) {
			list = append(list, span{s, s + 1})
		}
	}
	return list
}

// hostsAt are the hosts with an IPv4 address, one for each cloud that has it.
func (c *columns) hostsAt(ip netip.Addr) span {
	from, _ := slices.BinarySearchFunc(c.hosts, ip, func(h hostEntry, ip netip.Addr) int { return h.IP.Compare(ip) })
	s := span{uint32(from), uint32(from)}
	for int(s.to) < len(c.hosts) && c.hosts[s.to].IP == ip {
		s.to++
	}
	return s
}

// sortedIDs is nil when nothing is asked.
func sortedIDs(list []int) []int {
	if len(list) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// hasID reports whether an id is in a sorted list; nil has all.
func hasID(list []int, id int) bool {
	if list == nil {
		return true
	}
	_, ok := slices.BinarySearch(list, id)
	return ok
}
