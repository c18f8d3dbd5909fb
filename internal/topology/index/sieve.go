package index

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
)

// sieve decides which rows fit all of a question that is not about states. What is asked of a name, a host or a
// service is decided once for each of them, and only for those that come up: rows are found through the narrowest
// list that the question names, and the rest is asked of these only.
type sieve struct {
	c    *columns
	rows *bits        // where rows that fit go
	env  topology.Env // left to the rows' environments, EnvAny when sets were asked or all fit

	modules    []uint32 // that fit, nil when none was excluded
	moduleFits []verdict

	services     []int // ids, sorted; nil: all
	serviceNames nameTest
	hosts        hostTest
	decided      []verdict // by service; nil when every service fits

	aliases nameTest
	kinds   []verdict  // on their aliases; nil when every alias fits
	ids     []rowSpans // a row must be in all of them
	idText  *expression.Expression
}

type verdict uint8

const (
	undecided verdict = iota
	fitting
	failing
)

// The verdicts of a question, by what they are about.
const (
	aboutModules = iota
	aboutModuleNames
	aboutServices
	aboutServiceNames
	aboutHosts
	aboutAliases
	aboutKinds
	verdictKinds
)

// decide makes room for n verdicts.
func (s *scratch) decide(about, n int) []verdict {
	v := s.verdicts[about]
	if cap(v) < n {
		v = make([]verdict, n)
	}
	v = v[:n]
	clear(v)
	s.verdicts[about] = v
	return v
}

func newSieve(c *columns, s *scratch, q *topology.Query) *sieve {
	e := q.Expression
	if e == nil {
		e = new(topology.Expression)
	}

	v := &sieve{c: c, rows: &s.rows, env: q.Env}
	v.services = sortedIDs(q.Services)
	v.serviceNames = newNameTest(s, aboutServiceNames, c.serviceNames, q.ServiceNames, e.Service)
	v.hosts = newHostTest(c, s, q)
	v.aliases = newNameTest(s, aboutAliases, c.aliases, q.Names, e.Name)
	if v.aliases.asks {
		v.kinds = s.decide(aboutKinds, len(c.kinds))
	}

	v.askIDs(q.Processes, e.Process)
	sets := newNameTest(s, aboutModules, nil, q.SetNames, e.Set)
	modules := newNameTest(s, aboutModuleNames, c.moduleNames, q.ModuleNames, e.Module)
	asked := len(q.Sets)+len(q.Modules) > 0 || sets.asks || modules.asks || q.Env != topology.EnvAny && !q.Env.Valid()
	if asked || v.services != nil || v.serviceNames.asks || v.hosts.asks {
		v.decided = s.decide(aboutServices, len(c.services))
		if asked || q.Env != topology.EnvAny {
			v.moduleFits = s.decide(aboutModules, len(c.modules))
			v.askModules(q, &sets, &modules)
			v.env = topology.EnvAny
		}
	}

	return v
}

// askIDs takes up what is asked of process ids.
func (v *sieve) askIDs(list []int, e *expression.Expression) {
	if len(list) > 0 {
		ranges := make([]idRange, len(list))
		for i, id := range list {
			ranges[i] = idRange{id, id}
		}
		v.ids = append(v.ids, v.c.rowsWithin(ranges))
	}

	if e == nil || e.All() {
		return
	}
	if ranges, ok := idRanges(e); ok {
		v.ids = append(v.ids, v.c.rowsWithin(ranges))
	} else {
		v.idText = e
	}
}

// askModules finds the modules that fit, by id where ids are given.
func (v *sieve) askModules(q *topology.Query, sets, modules *nameTest) {
	c := v.c
	setIDs, moduleIDs := sortedIDs(q.Sets), sortedIDs(q.Modules)
	setFits := func(s *setEntry) bool {
		return (q.Env == topology.EnvAny || s.env == q.Env) && hasID(setIDs, s.id) && sets.text(s.name)
	}

	take := func(m uint32) {
		v.moduleFits[m] = fitting
		v.modules = append(v.modules, m)
	}

	v.modules = make([]uint32, 0, 16)

	if moduleIDs != nil {
		for _, id := range moduleIDs {
			for _, m := range run(c.modulesByID, func(m uint32) int { return cmp.Compare(c.modules[m].id, id) }) {
				if modules.fits(c.modules[m].name) && setFits(&c.sets[c.modules[m].set]) {
					take(m)
				}
			}
		}
		return
	}

	for i := range c.sets {
		if s := &c.sets[i]; setFits(s) {
			for m := s.modules.from; m < s.modules.to; m++ {
				if modules.fits(c.modules[m].name) {
					take(m)
				}
			}
		}
	}
}

func (v *sieve) serviceFits(s uint32) bool {
	if v.decided == nil {
		return true
	}
	if v.decided[s] == undecided {
		e := &v.c.services[s]
		v.decided[s] = failing
		if (v.moduleFits == nil || v.moduleFits[e.module] == fitting) && hasID(v.services, e.id) &&
			v.hosts.fits(e.host) && v.serviceNames.fits(e.name) {
			v.decided[s] = fitting
		}
	}
	return v.decided[s] == fitting
}

// asksOwn reports whether anything is asked of processes themselves.
func (v *sieve) asksOwn() bool { return v.aliases.asks || len(v.ids) > 0 || v.idText != nil }

// ownFits decides what is asked of the process itself, and not of where it is.
func (v *sieve) ownFits(row uint32) bool {
	return v.kindFits(v.c.kind[row]) && v.idFits(row)
}

// kindFits is asked for every candidate: one look into a small table.
func (v *sieve) kindFits(k uint32) bool {
	if v.kinds == nil {
		return true
	}
	if v.kinds[k] == undecided {
		v.decideKind(k)
	}
	return v.kinds[k] == fitting
}

func (v *sieve) decideKind(k uint32) {
	v.kinds[k] = failing
	if v.aliases.fits(v.c.kinds[k].alias) {
		v.kinds[k] = fitting
	}
}

func (v *sieve) idFits(row uint32) bool {
	for _, ids := range v.ids {
		if !ids.has(row) {
			return false
		}
	}
	if v.idText == nil {
		return true
	}
	var digits [20]byte
	return v.idText.Match(string(strconv.AppendInt(digits[:0], int64(v.c.ids[row]), 10)))
}

func (v *sieve) fits(row uint32) bool { return v.ownFits(row) && v.serviceFits(v.c.service[row]) }

// nameTest asks for names: one of a list, and an expression. Each name is decided once.
type nameTest struct {
	asks    bool
	in      []string // sorted; nil: all
	e       *expression.Expression
	names   []string
	decided []verdict
}

// newNameTest keeps verdicts about a list of names, or none when there is no list.
func newNameTest(s *scratch, about int, names, in []string, e *expression.Expression) nameTest {
	if e != nil && e.All() {
		e = nil
	}
	t := nameTest{asks: len(in) > 0 || e != nil, e: e, names: names}
	if len(in) > 0 {
		t.in = slices.Compact(slices.Sorted(slices.Values(in)))
	}
	if t.asks && names != nil {
		t.decided = s.decide(about, len(names))
	}
	return t
}

func (t *nameTest) fits(name uint32) bool {
	if !t.asks {
		return true
	}
	if t.decided[name] == undecided {
		t.decided[name] = failing
		if t.text(t.names[name]) {
			t.decided[name] = fitting
		}
	}
	return t.decided[name] == fitting
}

func (t *nameTest) text(s string) bool {
	if t.in != nil {
		if _, ok := slices.BinarySearch(t.in, s); !ok {
			return false
		}
	}
	return t.e == nil || t.e.Match(s)
}

// words are the only names that can fit, when the question writes them out.
func (t *nameTest) words() ([]string, bool) {
	if t.in != nil {
		return t.in, true
	}
	if t.e != nil {
		return t.e.Literals()
	}
	return nil, false
}

// hostTest asks for hosts. Each host is decided once, each cloud's name beforehand.
type hostTest struct {
	asks    bool
	c       *columns
	visible func(h *topology.Host) bool // nil: all are
	clouds  []int                       // sorted; nil: all
	ips     map[netip.Addr]struct{}
	terms   []string
	inCloud [][]bool // whether a term is part of a cloud's name, by term and cloud
	decided []verdict
}

func newHostTest(c *columns, s *scratch, q *topology.Query) hostTest {
	t := hostTest{asks: len(q.Clouds)+len(q.IPs)+len(q.Searches) > 0 || q.Visible != nil, c: c, visible: q.Visible,
		clouds: sortedIDs(q.Clouds), terms: q.Searches}
	if !t.asks {
		return t
	}

	t.decided = s.decide(aboutHosts, len(c.hosts))

	if len(q.IPs) > 0 {
		t.ips = make(map[netip.Addr]struct{}, len(q.IPs))
		for _, ip := range q.IPs {
			t.ips[ip] = struct{}{}
		}
	}

	for _, term := range t.terms {
		in := make([]bool, len(c.clouds))
		for i := range c.clouds {
			in[i] = strings.Contains(c.clouds[i].Name, term)
		}
		t.inCloud = append(t.inCloud, in)
	}

	return t
}

func (t *hostTest) fits(host uint32) bool {
	if !t.asks {
		return true
	}
	if t.decided[host] == undecided {
		t.decided[host] = failing
		if t.ask(&t.c.hosts[host]) {
			t.decided[host] = fitting
		}
	}
	return t.decided[host] == fitting
}

func (t *hostTest) ask(h *hostEntry) bool {
	if !hasID(t.clouds, h.Cloud) {
		return false
	}
	if t.ips != nil {
		if _, ok := t.ips[h.IP]; !ok {
			return false
		}
	}

	if t.visible != nil && !t.visible(&h.Host) {
		return false
	}
	if len(t.terms) == 0 {
		return true
	}

	var room [48]byte
	text := room[:0]

	if h.IP.IsValid() {
		text = h.IP.AppendTo(text)
	}

	ip := string(text)
	for i, term := range t.terms {
		if !t.inCloud[i][h.cloud] && !strings.Contains(ip, term) {
			return false
		}
	}

	return true
}
