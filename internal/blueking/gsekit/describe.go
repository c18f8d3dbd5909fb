package gsekit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxShown limits the text of a scope. The tasks of the job show everything.
const maxShown = 100

// describe writes a scope as an expression for people: names for ids, and * for parts without a filter.
func (s *server) describe(caller gozzard.Caller, sel *selection) *expressionScope {
	c := sel.scope
	base := topology.Query{Biz: sel.query.Biz, Env: sel.query.Env, Limit: 1}
	names := func(ids []int, narrow func(q *topology.Query, id int), name func(r *topology.Row) string) string {
		var found []string
		for _, id := range ids[:min(len(ids), maxShown+1)] {
			q := base
			narrow(&q, id)
			if _, rows := s.plane.FindProcesses(caller, q); len(rows) > 0 {
				found = append(found, name(&rows[0]))
			}
		}
		return summarise(found)
	}

	ids := make([]string, len(c.Processes))
	for i, id := range c.Processes {
		ids[i] = strconv.Itoa(id)
	}

	return &expressionScope{
		Env: c.Env,
		Set: names(c.Sets, func(q *topology.Query, id int) { q.Sets = []int{id} },
			func(r *topology.Row) string { return r.SetName }),
		Module: names(c.Modules, func(q *topology.Query, id int) { q.Modules = []int{id} },
			func(r *topology.Row) string { return r.ModuleName }),
		Service: names(c.Services, func(q *topology.Query, id int) { q.Services = []int{id} },
			func(r *topology.Row) string { return r.ServiceName }),
		Name: summarise(c.Names), Process: summarise(ids),
	}
}

// summarise writes values as an expression: one value as it is, several in brackets with ranges of numbers. Numbers
// are sorted as texts, as GSEKit does it: 8, 9 and 10 are [10,8-9].
func summarise(values []string) string {
	values = slices.Clone(values)
	slices.Sort(values)
	values = slices.Compact(values)
	switch len(values) {
	case 0:
		return "*"
	case 1:
		return values[0]
	}

	var items []string
	for i := 0; i < len(values); {
		if len(items) == maxShown {
			items = append(items, "…")
			break
		}
		first, ok := canonical(values[i])
		end := i + 1
		for last := first; ok && end < len(values); end++ {
			next, number := canonical(values[end])
			if !number || next != last+1 {
				break
			}
			last = next
		}
		if end > i+1 {
			items = append(items, values[i]+"-"+values[end-1])
		} else {
			items = append(items, values[i])
		}
		i = end
	}

	return "[" + strings.Join(items, ",") + "]"
}

// canonical reads a number without leading zeros or a sign.
func canonical(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}
