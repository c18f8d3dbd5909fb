package index

import (
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// scratch is the memory that a query needs while it runs. A pool keeps it for the next query.
type scratch struct {
	rows  rowSet
	page  []uint32
	memos [memoKinds][]memo
}

// maxKeptPage limits the memory that a query for all rows leaves in the pool: 256 KiB.
const maxKeptPage = 1 << 16

// Find returns a page of the processes that match a query, and how many match in total. A business that the index does
// not have, has no processes. The page and the total are of one moment. ReportedAt, Stale, PID and Condition are zero: the index
// does not know them. Callers must not change Configs, which are shared.
func (x *Index) Find(q topology.Query) (total int, rows []topology.Row) {
	c := x.business(q.Biz)
	if c == nil {
		return 0, nil
	}

	s := x.scratch.Get().(*scratch)
	defer func() {
		if cap(s.page) > maxKeptPage {
			s.page = nil
		}
		x.scratch.Put(s)
	}()

	// Find the rows that match everything but states.
	all := c.selectRows(&q, s)
	states := newStateFilter(&q)
	if states == nil { // only the page needs the lock
		total, page := c.page(&q, s, all)
		c.mu.RLock()
		defer c.mu.RUnlock()
		return total, c.load(page)
	}

	if all {
		s.rows = s.rows.resize(len(c.ids), true)
	}

	// Test the states, and return the page under the same lock: the states must not change in between. Sorting millions
	// of rows takes tens of milliseconds, and refreshes wait meanwhile.
	c.mu.RLock()
	defer c.mu.RUnlock()
	states.narrow(s.rows, c)
	total, page := c.page(&q, s, false)
	return total, c.load(page)
}

// selectRows puts the rows that match everything but states into the scratch. When all rows match, it reports true and
// leaves the scratch as it is.
func (c *columns) selectRows(q *topology.Query, s *scratch) (all bool) {
	if q.Expression == nil || q.Expression.Slice == nil {
		return newFilter(c, s, q).selectRows()
	}

	// A slice of an expression, such as [0:2], counts what the expression matches in the environment and what the
	// caller may see. The other conditions come after it.
	named, rest := topology.Query{Env: q.Env, Visible: q.Visible, Expression: new(topology.Expression)}, *q
	*named.Expression = *q.Expression
	named.Expression.Slice = nil
	rest.Env, rest.Visible, rest.Expression = topology.EnvAny, nil, nil

	if newFilter(c, s, &named).selectRows() {
		s.rows = s.rows.resize(len(c.ids), true)
	}

	s.rows.keepRange(q.Expression.Slice.Bounds(s.rows.count()))
	newFilter(c, s, &rest).narrow()
	return false
}

// page counts the rows and finds those of the page, in the order of the query.
func (c *columns) page(q *topology.Query, s *scratch, all bool) (total int, page []uint32) {
	if total = len(c.ids); !all {
		total = s.rows.count()
	}

	from, to := min(max(q.Start, 0), total), total

	if q.Limit >= 0 {
		to = min(to, from+min(q.Limit, total))
	}

	s.page = s.page[:0]
	switch {
	case from == to:
	case len(q.Order) > 0 && q.Order[0] != topology.Order{By: topology.ByProcess}:
		if all {
			s.rows = s.rows.resize(len(c.ids), true)
		}
		s.page = c.sortedPage(s.page, s.rows, total, q.Order, from, to)
	case all:
		for row := from; row < to; row++ {
			s.page = append(s.page, uint32(row))
		}
	default:
		s.page = s.rows.appendRange(s.page, from, to)
	}

	return total, s.page
}

// stateFilter is the conditions on states. Each word is all ones when rows in that state match, otherwise 0.
type stateFilter struct {
	running, stopped, unregistered, hosted, unhosted uint64

	conditions uint16 // a bit for each that matches; 0: all match
}

// newStateFilter returns nil when the query has no conditions on states.
func newStateFilter(q *topology.Query) *stateFilter {
	if len(q.States)+len(q.Conditions)+len(q.Hosted) == 0 {
		return nil
	}

	const ones = ^uint64(0)
	m := &stateFilter{running: ones, stopped: ones, unregistered: ones, hosted: ones, unhosted: ones}
	for _, c := range q.Conditions {
		m.conditions |= 1 << c
	}

	if len(q.States) > 0 {
		m.running, m.stopped, m.unregistered = 0, 0, 0
	}

	for _, s := range q.States {
		switch s {
		case gozzard.StateRunning:
			m.running = ones
		case gozzard.StateStopped:
			m.stopped = ones
		case gozzard.StateUnregistered:
			m.unregistered = ones
		}
	}

	if len(q.Hosted) > 0 {
		m.hosted, m.unhosted = 0, 0
	}

	for _, h := range q.Hosted {
		if h {
			m.hosted = ones
		} else {
			m.unhosted = ones
		}
	}

	return m
}

// narrow removes the rows that do not match. The caller holds the lock.
func (m *stateFilter) narrow(rows rowSet, c *columns) {
	running, stopped, hosted := c.running[:len(rows)], c.stopped[:len(rows)], c.hosted[:len(rows)]
	for i := range rows {
		r, s, h := running[i], stopped[i], hosted[i]
		rows[i] &= (r&m.running | s&m.stopped | ^(r|s)&m.unregistered) & (h&m.hosted | ^h&m.unhosted)
	}
	if m.conditions != 0 {
		m.narrowConditions(rows, c)
	}
}

// narrowConditions removes the rows without an instance in one of the conditions.
func (m *stateFilter) narrowConditions(rows rowSet, c *columns) {
	for row := range uint32(len(c.ids)) {
		if !rows.has(row) {
			continue
		}
		if !slices.ContainsFunc(c.statusesOf(row), func(s status) bool { return m.conditions>>s.condition()&1 != 0 }) {
			rows.assign(row, false)
		}
	}
}

// load copies the rows of a page for the caller of Find. The caller of load holds the lock.
func (c *columns) load(page []uint32) []topology.Row {
	if len(page) == 0 {
		return nil
	}

	// All instances of the page share one slice.
	n := 0
	for _, row := range page {
		n += int(c.first[row+1] - c.first[row])
	}

	rows, instances := make([]topology.Row, len(page)), make([]topology.RowInstance, 0, n)
	for i, row := range page {
		before := len(instances)
		for j, s := range c.statusesOf(row) {
			instances = append(instances, topology.RowInstance{Local: j + 1, Inst: c.base[row] + j + 1,
				Status: topology.Status{State: s.state(), Hosted: s.hosted()}})
		}
		c.fill(&rows[i], row)
		rows[i].Instances = instances[before:len(instances):len(instances)]
	}

	return rows
}

// fill copies everything of a row except its instances.
func (c *columns) fill(r *topology.Row, row uint32) {
	service := &c.services[c.service[row]]
	module, host, kind := &c.modules[service.module], &c.hosts[service.host], &c.kinds[c.kind[row]]
	set := &c.sets[module.set]
	r.Biz = c.biz
	r.Set, r.SetName, r.Env = set.id, set.name, set.env
	r.Module, r.ModuleName, r.ServiceTemplate = module.id, c.moduleNames[module.name], module.template
	r.Service, r.ServiceName = service.id, c.serviceNames[service.name]
	r.Host, r.CloudName = host.Host, c.clouds[host.cloud].Name
	r.Process, r.Name, r.Template, r.Priority = c.ids[row], c.aliases[kind.alias], kind.template, kind.priority
	r.State, r.Hosted = c.stateOf(row)
	if r.Configs = kind.configs; kind.template == 0 {
		r.Configs = c.configs[r.Process]
	}
}
