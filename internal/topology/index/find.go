package index

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// scratch is the memory of one question, kept for the next.
type scratch struct {
	rows     bits
	page     []uint32
	verdicts [verdictKinds][]verdict
}

// keepPage bounds what a question for everything leaves behind.
const keepPage = 1 << 16

// Find lists the processes that fit, with how many there are in all; of a business that is not known there are
// none. The page and the count are of one moment. ReportedAt, Stale and PID are left zero: the index does not know
// them. Configs are shared and must not be changed.
func (x *Index) Find(q topology.Query) (total int, rows []topology.Row) {
	c := x.business(q.Biz)
	if c == nil {
		return 0, nil
	}

	s := x.scratch.Get().(*scratch)
	defer func() {
		if cap(s.page) > keepPage {
			s.page = nil
		}
		x.scratch.Put(s)
	}()

	all := c.choose(&q, s)
	states := newStateMask(&q)
	if states == nil {
		total, page := c.page(&q, s, all)
		c.mu.RLock()
		defer c.mu.RUnlock()
		return total, c.load(page)
	}

	if all {
		s.rows = s.rows.resize(len(c.ids), true)
	}

	// also while the page is sorted, tens of milliseconds for millions of rows: states must not change between
	// choosing and showing
	c.mu.RLock()
	defer c.mu.RUnlock()
	states.narrow(s.rows, c)
	total, page := c.page(&q, s, false)
	return total, c.load(page)
}

// choose puts the rows that fit everything but states into the scratch. It reports true instead when that is all rows.
func (c *columns) choose(q *topology.Query, s *scratch) (all bool) {
	if q.Expression == nil || q.Expression.Slice == nil {
		return newSieve(c, s, q).pick()
	}

	named, rest := topology.Query{Env: q.Env, Visible: q.Visible, Expression: new(topology.Expression)}, *q
	*named.Expression = *q.Expression
	named.Expression.Slice = nil
	rest.Env, rest.Visible, rest.Expression = topology.EnvAny, nil, nil

	if newSieve(c, s, &named).pick() {
		s.rows = s.rows.resize(len(c.ids), true)
	}

	s.rows.window(q.Expression.Slice.Bounds(s.rows.count()))
	newSieve(c, s, &rest).narrow()
	return false
}

// page counts the rows and finds those of the page, in order.
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
		s.page = s.rows.take(s.page, from, to)
	}

	return total, s.page
}

// stateMask chooses rows by their states: each word is all ones where rows like that fit.
type stateMask struct{ running, stopped, unregistered, hosted, unhosted uint64 }

// newStateMask is nil when states do not matter.
func newStateMask(q *topology.Query) *stateMask {
	if len(q.States)+len(q.Hosted) == 0 {
		return nil
	}

	const ones = ^uint64(0)
	m := &stateMask{ones, ones, ones, ones, ones}

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

// narrow removes rows that do not fit. The lock is held.
func (m *stateMask) narrow(rows bits, c *columns) {
	running, stopped, hosted := c.running[:len(rows)], c.stopped[:len(rows)], c.hosted[:len(rows)]
	for i := range rows {
		r, s, h := running[i], stopped[i], hosted[i]
		rows[i] &= (r&m.running | s&m.stopped | ^(r|s)&m.unregistered) & (h&m.hosted | ^h&m.unhosted)
	}
}

// load copies rows. The lock is held.
func (c *columns) load(page []uint32) []topology.Row {
	if len(page) == 0 {
		return nil
	}

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

// fill copies all of a row but its instances.
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
	r.State, r.Hosted = c.together(row)
	if r.Configs = kind.configs; kind.template == 0 {
		r.Configs = c.configs[r.Process]
	}
}
