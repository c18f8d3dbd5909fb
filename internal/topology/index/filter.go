package index

import (
	"cmp"
	"strconv"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
)

// filter decides which rows match a query, except for states. A condition on a name, a host or a service is tested once
// for each name, host or service, and only for those that come up: plan.go finds the rows through the shortest list of
// candidates, and tests the other conditions on these only.
type filter struct {
	c    *columns
	rows *rowSet      // receives the rows that match
	env  topology.Env // tested on whole rowSets at the end; EnvAny when askModules has tested it, or nothing is asked

	modules    []uint32 // those that match, when moduleMemo is set
	moduleMemo []memo   // nil when every module matches

	services     []int // ids, sorted; nil: all
	serviceNames nameTest
	hosts        hostTest
	serviceMemo  []memo // nil when every service matches

	aliases  nameTest
	kindMemo []memo     // whether the alias of a kind matches; nil when every alias matches
	ids      []rowSpans // a row must be in all of them
	idText   *expression.Expression
}

// memo remembers whether a thing matches, so that it is tested once.
type memo uint8

const (
	unknown memo = iota
	yes
	no
)

func memoOf(matches bool) memo {
	if matches {
		return yes
	}
	return no
}

// The lists of memos of a query, by what they are about.
const (
	memoModules = iota
	memoModuleNames
	memoServices
	memoServiceNames
	memoHosts
	memoAliases
	memoOfKinds
	memoKinds // how many lists there are
)

// newMemos returns a list of n memos that are unknown. It reuses the memory of the last query.
func (s *scratch) newMemos(about, n int) []memo {
	list := s.memos[about]
	if cap(list) < n {
		list = make([]memo, n)
	}
	list = list[:n]
	clear(list)
	s.memos[about] = list
	return list
}

// newFilter prepares the conditions of a query. Only the conditions that the query has cost anything later.
func newFilter(c *columns, s *scratch, q *topology.Query) *filter {
	e := q.Expression
	if e == nil {
		e = new(topology.Expression)
	}

	// Conditions on services and hosts.
	f := &filter{c: c, rows: &s.rows, env: q.Env}
	f.services = sortedIDs(q.Services)
	f.serviceNames = newNameTest(s, memoServiceNames, c.serviceNames, q.ServiceNames, e.Service)
	f.hosts = newHostTest(c, s, q)

	// Conditions on processes.
	f.aliases = newNameTest(s, memoAliases, c.aliases, q.Names, e.Name)
	if f.aliases.asks {
		f.kindMemo = s.newMemos(memoOfKinds, len(c.kinds))
	}

	f.askIDs(q.Processes, e.Process)

	// Conditions on sets and modules. If there are any conditions on where a process is, the environment is one of
	// them: it is a property of the set.
	sets := newNameTest(s, memoModules, nil, q.SetNames, e.Set)
	modules := newNameTest(s, memoModuleNames, c.moduleNames, q.ModuleNames, e.Module)
	asked := len(q.Sets)+len(q.Modules) > 0 || sets.asks || modules.asks || q.Env != topology.EnvAny && !q.Env.Valid()
	if asked || f.services != nil || f.serviceNames.asks || f.hosts.asks {
		f.serviceMemo = s.newMemos(memoServices, len(c.services))
		if asked || q.Env != topology.EnvAny {
			f.moduleMemo = s.newMemos(memoModules, len(c.modules))
			f.askModules(q, &sets, &modules)
			f.env = topology.EnvAny
		}
	}

	return f
}

// askIDs prepares the conditions on process ids.
func (f *filter) askIDs(list []int, e *expression.Expression) {
	if len(list) > 0 {
		ranges := make([]idRange, len(list))
		for i, id := range list {
			ranges[i] = idRange{id, id}
		}
		f.ids = append(f.ids, f.c.rowsOfIDs(ranges))
	}

	if e == nil || e.All() {
		return
	}
	if ranges, ok := idRanges(e); ok {
		f.ids = append(f.ids, f.c.rowsOfIDs(ranges))
	} else {
		f.idText = e
	}
}

// askModules finds the modules that match. It starts from the module ids of the query if there are any, otherwise from
// the sets.
func (f *filter) askModules(q *topology.Query, sets, modules *nameTest) {
	c := f.c
	setIDs, moduleIDs := sortedIDs(q.Sets), sortedIDs(q.Modules)
	setMatches := func(s *setEntry) bool {
		return (q.Env == topology.EnvAny || s.env == q.Env) && hasID(setIDs, s.id) && sets.matchesText(s.name)
	}

	add := func(m uint32) {
		f.moduleMemo[m] = yes
		f.modules = append(f.modules, m)
	}

	f.modules = make([]uint32, 0, 16)

	if moduleIDs != nil {
		for _, id := range moduleIDs {
			compare := func(m uint32) int { return cmp.Compare(c.modules[m].id, id) }
			for _, m := range equalRange(c.modulesByID, compare) {
				if modules.matches(c.modules[m].name) && setMatches(&c.sets[c.modules[m].set]) {
					add(m)
				}
			}
		}
		return
	}

	for i := range c.sets {
		s := &c.sets[i]
		if !setMatches(s) {
			continue
		}
		for m := s.modules.from; m < s.modules.to; m++ {
			if modules.matches(c.modules[m].name) {
				add(m)
			}
		}
	}
}

// serviceMatches tests the conditions on where a process is: its set, module, service instance and host.
func (f *filter) serviceMatches(s uint32) bool {
	if f.serviceMemo == nil {
		return true
	}
	if f.serviceMemo[s] == unknown {
		e := &f.c.services[s]
		f.serviceMemo[s] = memoOf((f.moduleMemo == nil || f.moduleMemo[e.module] == yes) && hasID(f.services, e.id) &&
			f.hosts.matches(e.host) && f.serviceNames.matches(e.name))
	}
	return f.serviceMemo[s] == yes
}

// asksProcess reports whether there are conditions on processes themselves: on alias or id.
func (f *filter) asksProcess() bool { return f.aliases.asks || f.asksIDs() }

func (f *filter) asksIDs() bool { return len(f.ids) > 0 || f.idText != nil }

// processMatches tests the conditions on the process itself, not on where it is.
func (f *filter) processMatches(row uint32) bool {
	return f.kindMatches(f.c.kind[row]) && f.idMatches(row)
}

// kindMatches tests the condition on the alias. It runs for every candidate, so it is kept short: mostly it reads one
// entry of a small table.
func (f *filter) kindMatches(k uint32) bool {
	if f.kindMemo == nil {
		return true
	}
	if f.kindMemo[k] == unknown {
		f.testKind(k)
	}
	return f.kindMemo[k] == yes
}

func (f *filter) testKind(k uint32) {
	f.kindMemo[k] = memoOf(f.aliases.matches(f.c.kinds[k].alias))
}

// idMatches tests the conditions on the process id.
func (f *filter) idMatches(row uint32) bool {
	for _, ids := range f.ids {
		if !ids.has(row) {
			return false
		}
	}
	if f.idText == nil {
		return true
	}
	var digits [20]byte
	return f.idText.Match(string(strconv.AppendInt(digits[:0], int64(f.c.ids[row]), 10)))
}

func (f *filter) matches(row uint32) bool {
	return f.processMatches(row) && f.serviceMatches(f.c.service[row])
}
