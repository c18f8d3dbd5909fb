package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/gozzard/gozzard/internal/topology"
)

// maxTestedAliases limits how many aliases are tested only to learn how many rows they have. Testing one takes about
// 0.1 µs, so 4096 take less than half a millisecond.
const maxTestedAliases = 4096

// Costs of testing one candidate, in units of costOfRow. They only have to order the lists of candidates, so they are
// rough. BenchmarkCosts measures them:
//
//	go test -run '^$' -bench Costs ./internal/topology/index
//
// With a million processes, on a machine with two shared CPUs, the best of four runs was, for a query that asks for a
// module, for a cloud, and for a service name with a wildcard:
//
//	a row of an alias list                               6 ns
//	a service, when services are tested in order         7 ns    17 ns     66 ns
//	a row of an alias list together with its service    14 ns    77 ns    704 ns
//
// Services and their names are in memory in the order of the scan. Rows are in the order of process ids, and their
// services are anywhere, so that testing the service of a row mostly misses the CPU's caches. The constants are
// between the smallest and the largest of what was measured. A jump from a row to its service counts as much as two
// services in order, which is right for modules and too little for wildcards.
const (
	costOfRow     = 1
	costOfService = 8
	costOfJump    = 16
	noList        = math.MaxInt // there is no such list of candidates
)

// selectRows puts the rows that match into the set. It goes through the list of candidates with the lowest cost. When
// all rows match, it reports true and leaves the set as it is.
func (f *filter) selectRows() (all bool) {
	if f.env == topology.EnvAny && f.serviceMemo == nil && !f.asksProcess() {
		return true
	}

	// Estimate the cost of each list of candidates.
	*f.rows = f.rows.resize(len(f.c.ids), false)
	each := costOfRow

	if f.serviceMemo != nil {
		each += costOfJump
	}

	aliases, byAlias := f.aliasList(each)
	services, byService := f.serviceSpans()
	byID := noList
	for _, ids := range f.ids {
		byID = min(byID, ids.size()*each)
	}

	// Go through the cheapest one.
	switch min(byID, byAlias, byService) {
	case noList: // no list can be made from the conditions; without any, only the environment is asked for
		if !f.asksProcess() {
			copy(*f.rows, f.c.envs[f.env])
			return false
		}
		f.scanAll()
	case byID:
		f.scanIDs()
	case byAlias:
		f.scanAliases(aliases)
	case byService:
		f.scanServices(services)
	}

	// Leave out the other environments.
	if f.env != topology.EnvAny {
		f.rows.and(f.c.envs[f.env])
	}

	return false
}

// narrow removes the rows from the set that do not match. It does not test the environment: a query with a slice has
// tested it before.
func (f *filter) narrow() {
	for row := range f.rows.all() {
		if !f.matches(row) {
			f.rows.assign(row, false)
		}
	}
}

// scanIDs tests the rows of the shortest list of ids.
func (f *filter) scanIDs() {
	for _, s := range slices.MinFunc(f.ids, func(a, b rowSpans) int { return cmp.Compare(a.size(), b.size()) }) {
		for ; s.from < s.to; s.from++ {
			if f.matches(s.from) {
				f.rows.set(s.from)
			}
		}
	}
}

// scanAliases tests the rows of some aliases, which match.
func (f *filter) scanAliases(aliases []uint32) {
	asksIDs := f.asksIDs()
	for _, a := range aliases {
		for _, row := range f.c.aliasRows.of(a) {
			if f.serviceMatches(f.c.service[row]) && (!asksIDs || f.idMatches(row)) {
				f.rows.set(row)
			}
		}
	}
}

// scanServices tests the rows of some services. It tests a service only when one of its processes has an alias that
// matches.
func (f *filter) scanServices(services []span) {
	c, asksIDs := f.c, f.asksIDs()
	for _, part := range services {
		for s := part.from; s < part.to; s++ {
			kinds := c.serviceKinds[c.serviceRows.start[s]:]
			for i, row := range c.serviceRows.of(s) {
				if !f.kindMatches(kinds[i]) {
					continue
				}
				if !f.serviceMatches(s) {
					break
				}
				if !asksIDs || f.idMatches(row) {
					f.rows.set(row)
				}
			}
		}
	}
}

// scanAll tests all rows. It is used when there is no list of candidates: the condition on ids can only be tested on
// their text, or there are more than maxTestedAliases aliases, and every service matches.
func (f *filter) scanAll() {
	for row := range uint32(len(f.c.ids)) {
		if f.processMatches(row) {
			f.rows.set(row)
		}
	}
}

// aliasList returns the aliases that match, and the cost of testing their rows when each row costs each.
func (f *filter) aliasList(each int) (aliases []uint32, cost int) {
	c, t := f.c, &f.aliases
	literals, ok := t.literals()
	switch {
	case ok:
		for _, w := range literals {
			if a, found := slices.BinarySearch(c.aliases, w); found && t.matches(uint32(a)) {
				aliases = append(aliases, uint32(a))
			}
		}
	case t.asks && len(c.aliases) <= maxTestedAliases:
		for a := range uint32(len(c.aliases)) {
			if t.matches(a) {
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

// serviceSpans returns services among which are all that match, and the cost of testing them and their rows.
func (f *filter) serviceSpans() (best []span, cost int) {
	cost = noList

	if f.serviceMemo == nil {
		return nil, cost
	}

	consider := func(list []span) {
		n := 0
		for _, s := range list {
			n += f.c.serviceRows.size(s)*costOfRow + int(s.to-s.from)*costOfService
		}
		if n < cost {
			best, cost = list, n
		}
	}

	// All services, or those that one condition leaves.
	consider([]span{{0, uint32(len(f.c.services))}})

	if f.moduleMemo != nil {
		consider(f.inModules())
	}
	if f.services != nil {
		consider(f.withIDs())
	}
	if f.hosts.ips != nil {
		consider(f.onHosts())
	}
	if names, ok := f.serviceNames.literals(); ok {
		consider(f.withNames(names))
	}

	return best, cost
}

func (f *filter) inModules() (list []span) {
	for _, m := range f.modules {
		s := f.c.modules[m].services
		if last := len(list) - 1; last >= 0 && list[last].to == s.from {
			list[last].to = s.to
		} else {
			list = append(list, s)
		}
	}
	return list
}

func (f *filter) withIDs() (list []span) {
	for _, id := range f.services {
		compare := func(s uint32) int { return cmp.Compare(f.c.services[s].id, id) }
		for _, s := range equalRange(f.c.servicesByID, compare) {
			list = append(list, span{s, s + 1})
		}
	}
	return list
}

func (f *filter) onHosts() (list []span) {
	for ip := range f.hosts.ips {
		for h := f.c.hostsAt(ip); h.from < h.to; h.from++ {
			for _, s := range f.c.hostServices.of(h.from) {
				list = append(list, span{s, s + 1})
			}
		}
	}
	return list
}

func (f *filter) withNames(names []string) (list []span) {
	for _, name := range names {
		compare := func(s uint32) int { return cmp.Compare(f.c.serviceName(s), name) }
		for _, s := range equalRange(f.c.servicesByName, compare) {
			list = append(list, span{s, s + 1})
		}
	}
	return list
}
