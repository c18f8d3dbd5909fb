package fleet

import (
	"cmp"
	"slices"

	"github.com/gozzard/gozzard"
)

// Get returns one process of a host.
func (x *Index) Get(agent gozzard.AgentID, key gozzard.Key) (Row, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, ok := x.byAgent[agent]
	if !ok {
		return Row{}, false
	}
	r := x.find(x.hosts[at], key)
	if r == nil {
		return Row{}, false
	}
	return x.load(r), true
}

// Page lists the processes of a namespace, or of all namespaces for "", in the order of their arrival. A change of
// status does not change the order; new rows are at the end. total counts all processes. Processes that the rights do
// not allow to see are neither listed nor counted.
func (x *Index) Page(rights *gozzard.Rights, namespace string, start, limit int) (total int, rows []Row) {
	if !rights.SeesAll() && (namespace == "" || !rights.SeesSpace(namespace)) {
		return x.newQuery(rights, Filter{}, max(start, 0), limit).scan(namespace)
	}

	x.mu.RLock()
	defer x.mu.RUnlock()
	o := x.orderOf(namespace)
	if o == nil {
		return 0, nil
	}

	start = max(start, 0)
	if n := min(limit, o.n-start); n > 0 {
		rows = make([]Row, 0, n)
		o.slice(start, n, func(id uint32) { rows = append(rows, x.load(x.rows.at(id))) })
	}

	return o.n, rows
}

// Find lists the processes that match a filter, in the order of Page. total counts those that match and that the rights
// allow to see. The fleet may change during the search: each row is as it was at some moment of the search.
func (x *Index) Find(rights *gozzard.Rights, f Filter, start, limit int) (total int, rows []Row) {
	q := x.newQuery(rights, f, max(start, 0), limit)
	if q.hosts != nil && q.narrow {
		return q.byHost()
	}
	namespace, ok := q.spaces.literal()
	if !ok {
		namespace = ""
	}
	return q.scan(namespace)
}

// Len is the number of processes.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.count
}

// orderOf returns the rows of a namespace, or of all for "", nil if there are none.
func (x *Index) orderOf(namespace string) *order {
	if namespace == "" {
		return &x.all
	}
	if i, ok := x.spaceIDs[namespace]; ok {
		return &x.spaces.at(i).order
	}
	return nil
}

// query is one search.
type query struct {
	x            *Index
	visibility   *visibility // nil: everything is visible
	start, limit int
	spaces       globs
	names        globs
	conditions   [gozzard.ConditionUnregistered + 1]bool
	anyState     bool
	hosted       *bool
	labels       []gozzard.LabelRule
	hosts        map[uint32]struct{} // nil: all
	narrow       bool                // those hosts have few enough rows to collect and sort them
	nameResults  []nameResult        // whether names match, by number: names repeat in a fleet
	releases     uint64              // of names, when nameResults was valid
}

// nameResult says whether a name matches.
type nameResult uint8

const (
	undecided nameResult = iota
	matching
	failing
)

func (x *Index) newQuery(rights *gozzard.Rights, f Filter, start, limit int) *query {
	q := &query{
		x: x, visibility: newVisibility(x, rights), start: start, limit: limit,
		spaces: f.Namespaces, names: f.Names, anyState: len(f.Conditions) == 0, hosted: f.Hosted,
		labels: f.Labels,
	}
	for _, c := range f.Conditions {
		q.conditions[c] = true
	}
	if len(f.Agents)+len(f.IPs)+len(f.Clouds) > 0 {
		q.chooseHosts(f)
	}
	return q
}

// chooseHosts finds the hosts of a filter. One address of a host must match both the clouds and the addresses of the
// filter. An address stands for the host that owns it: hosts that had it before can be found by agent or cloud.
func (q *query) chooseHosts(f Filter) {
	q.hosts = make(map[uint32]struct{})
	rows := 0

	fits := func(e *host) bool {
		if len(f.IPs)+len(f.Clouds) == 0 {
			return true
		}
		return slices.ContainsFunc(e.Info.Addrs, func(a gozzard.HostAddr) bool {
			return (len(f.Clouds) == 0 || slices.Contains(f.Clouds, a.Cloud)) &&
				(len(f.IPs) == 0 || slices.Contains(f.IPs, a.IP) && q.x.owns(e, a))
		})
	}

	add := func(e *host) {
		if _, again := q.hosts[e.place]; !again && fits(e) {
			q.hosts[e.place] = struct{}{}
			rows += len(e.rows)
		}
	}

	q.x.mu.RLock()
	defer q.x.mu.RUnlock()

	// Use an index if the filter has agents or addresses.
	switch {
	case len(f.Agents) > 0:
		for _, a := range f.Agents {
			if i, ok := q.x.byAgent[a]; ok {
				add(q.x.hosts[i])
			}
		}
	case len(f.Clouds) == 1 && len(f.IPs) > 0:
		for _, ip := range f.IPs {
			if i, ok := q.x.byAddr[gozzard.HostAddr{Cloud: f.Clouds[0], IP: ip}]; ok {
				add(q.x.hosts[i])
			}
		}
	default:
		for _, e := range q.x.hosts {
			add(e)
		}
	}

	q.narrow = rows < q.x.count/8 || rows < blockMax
}

// fits reports whether a row matches. It checks the cheap conditions first.
func (q *query) fits(r *row) bool {
	if !q.anyState && !q.conditions[q.x.condition(r)] || q.hosted != nil && *q.hosted != (r.flags&rowHosted != 0) {
		return false
	}
	if q.hosts != nil {
		if _, ok := q.hosts[r.host]; !ok {
			return false
		}
	}
	if q.visibility != nil && !q.visibility.sees(r) {
		return false
	}
	if len(q.labels) > 0 && !q.labelsFit(r.labels) {
		return false
	}
	return q.spaces.match(q.x.spaces.at(r.space).name) && (len(q.names) == 0 || q.nameFits(r.name))
}

// labelsFit reports whether a set of labels matches all rules.
func (q *query) labelsFit(labels uint32) bool {
	set := q.x.labels.set(labels)
	for _, rule := range q.labels {
		if !rule.Match(set) {
			return false
		}
	}
	return true
}

// nameFits reports whether a name matches. With nameResults it decides about each name once.
func (q *query) nameFits(name uint32) bool {
	if q.nameResults == nil {
		return q.names.match(q.x.names.text(name))
	}
	v := &q.nameResults[name]
	if *v == undecided {
		*v = failing
		if q.names.match(q.x.names.text(name)) {
			*v = matching
		}
	}
	return *v == matching
}

// startNameResults starts to store results, if there are many rows and few names.
func (q *query) startNameResults(rows int) {
	if names := int(q.x.names.entries.used); len(q.names) > 0 && rows > names/4 {
		q.nameResults, q.releases = make([]nameResult, names), q.x.names.releases
	}
}

// checkNameResults discards the results if names were added or their numbers were reused meanwhile.
func (q *query) checkNameResults() {
	if q.releases != q.x.names.releases || len(q.nameResults) < int(q.x.names.entries.used) {
		q.nameResults = nil
	}
}

// scan reads an order block by block. It releases the lock between blocks, so that writers do not wait.
func (q *query) scan(namespace string) (total int, rows []Row) {
	for next, more := uint64(0), true; more; {
		next, more = q.scanBlock(namespace, next, &total, &rows)
	}
	return total, rows
}

// scanBlock reads one block, from a sequence number on. It returns the number where the next block begins, and false
// when there is none.
func (q *query) scanBlock(namespace string, next uint64, total *int, rows *[]Row) (uint64, bool) {
	q.x.mu.RLock()
	defer q.x.mu.RUnlock()

	var ids []uint32

	if o := q.x.orderOf(namespace); o != nil {
		if next == 0 {
			q.startNameResults(o.n)
		}
		ids = o.from(next, q.x.seqOf)
	}

	q.checkNameResults()

	for _, id := range ids {
		r := q.x.rows.at(id)
		next = r.seq + 1
		if !q.fits(r) {
			continue
		}
		if *total >= q.start && len(*rows) < q.limit {
			*rows = append(*rows, q.x.load(r))
		}
		*total++
	}

	return next, len(ids) > 0
}

// hit is a row that fits, by its place in the order of pages.
type hit struct {
	seq uint64
	id  uint32
}

// byHost collects the rows of a few hosts and sorts them in the order of Page.
func (q *query) byHost() (total int, rows []Row) {
	var hits []hit
	for at := range q.hosts {
		hits = q.hitsOn(at, hits)
	}

	// Sort them.
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.seq, b.seq) })
	total = len(hits)
	if q.start >= total || q.limit <= 0 {
		return total, nil
	}

	q.x.mu.RLock()
	defer q.x.mu.RUnlock()

	for _, h := range hits[q.start:][:min(q.limit, total-q.start)] {
		if r := q.x.rows.at(h.id); r.seq == h.seq { // otherwise it was removed meanwhile
			rows = append(rows, q.x.load(r))
		}
	}

	return total, rows
}

// hitsOn appends the rows of one host that fit.
func (q *query) hitsOn(at uint32, hits []hit) []hit {
	q.x.mu.RLock()
	defer q.x.mu.RUnlock()
	for _, id := range q.x.hosts[at].rows {
		if r := q.x.rows.at(id); q.fits(r) {
			hits = append(hits, hit{r.seq, id})
		}
	}
	return hits
}

// Seeded lists the rows that the record has, in no order.
func (x *Index) Seeded() (list []gozzard.ProcID) {
	for at, more := 0, true; more; at++ {
		list, more = x.seededOf(at, list)
	}
	return list
}

// seededOf appends the rows of one host. The lock is held for one host only, so that it does not block others for long.
func (x *Index) seededOf(at int, list []gozzard.ProcID) (_ []gozzard.ProcID, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if at >= len(x.hosts) {
		return list, false
	}
	e := x.hosts[at]
	for _, id := range e.rows {
		if r := x.rows.at(id); r.flags&rowSeeded != 0 {
			list = append(list, gozzard.ProcID{Agent: e.Info.Agent, Key: x.keyOf(r)})
		}
	}
	return list, true
}

// IsSeeded reports whether the record has a row.
func (x *Index) IsSeeded(agent gozzard.AgentID, key gozzard.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, ok := x.byAgent[agent]
	if !ok {
		return false
	}
	e := x.hosts[at]
	i, ok := x.locate(e, key)
	return ok && x.rows.at(e.rows[i]).flags&rowSeeded != 0
}

// Statuses lists what a host reported of its processes; whole is false while it has not reported all of them in its present
// session.
func (x *Index) Statuses(agent gozzard.AgentID) (list []gozzard.Status, whole bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e := x.knownHost(agent)
	if e == nil || !e.full.complete {
		return nil, false
	}
	for _, id := range e.rows {
		if r := x.rows.at(id); r.flags&rowSeen != 0 {
			list = append(list, x.load(r).Status)
		}
	}
	return list, true
}
