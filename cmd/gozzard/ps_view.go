package main

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard/client"
)

// maxUnasked is how many processes are read to sort and count them all, when the caller asks for neither an order nor
// all of them. In a larger fleet the list is a part, as the server has it, and the output says so.
const maxUnasked = 20_000

// psView is one `gozzard ps`: what it asks for, and how it shows the answer.
type psView struct {
	env   *cliEnv
	o     *psOptions
	c     *client.Client
	q     client.ProcessQuery
	paint painter
	order string
}

// listing is what was read from the server.
type listing struct {
	rows  []client.Process // in the order of the list
	total int              // all that match
	next  int              // where the reading stopped; 0: these are all that match
}

// page is the listing for programs, cut to a limit.
func (l *listing) page(limit int) client.ProcessPage {
	p := client.ProcessPage{Count: l.total, Processes: l.rows, Next: l.next}
	if limit > 0 && l.next == 0 && len(l.rows) > limit {
		p.Processes = l.rows[:limit]
	}
	return p
}

// read reads the processes and sorts them. An order is an order of all that match, so all are read for it.
func (v *psView) read(ctx context.Context) (listing, error) {
	o, sorted := v.o, v.o.by != "" || v.o.group || v.o.reverse
	bound := 0
	switch {
	case o.limit == 0 || sorted || o.watch && v.env.screen:
	case o.output.structured():
		bound = o.limit
	default:
		bound = max(o.limit, maxUnasked)
	}

	found, err := fetchProcesses(ctx, v.c, v.q, bound)
	if err != nil {
		return listing{}, err
	}
	l := listing{rows: found.Processes, total: found.Count, next: found.Next}
	if v.q.Biz != 0 && l.next == 0 { // the server counts processes, the rows are instances
		l.total = len(l.rows)
	}
	if l.next == 0 && (sorted || !o.output.structured() && v.order != "") {
		o.sort(l.rows, v.order)
	}

	return l, nil
}

// table makes the lines of the table, and the notes about what is not in it. room is the number of rows that fit on the
// screen; 0 is any number.
func (v *psView) table(l *listing, room int) (lines, notes []string) {
	// Group them if there are too many of one name.
	groups := groupByName(l.rows)
	if v.o.group || v.shouldGroup(l, groups, room) {
		by := v.o.by
		if by == "" {
			by = "state"
		}
		v.o.sortGroups(groups, by)
		if !v.o.group {
			notes = append(notes, "grouped by name; --no-group lists every process")
		}
		shown, note := cut(groups, v.o.limit, len(groups), "name")
		return groupTable(shown, v.paint).lines(), append(notes, note...)
	}

	// Otherwise list them.
	limit := v.o.limit
	if room > 0 {
		limit = 0 // the screen is the limit
	}
	rows, notes := cut(l.rows, limit, l.total, v.noun())
	if l.next > 0 && len(notes) > 0 {
		notes[0] = notes[0] + "; these are the first that were registered, --sort sorts all"
	}
	table := v.env.processTable
	if v.q.Biz != 0 {
		table = v.env.instanceTable
	}

	return table(rows, v.o.output.format == "wide", v.paint).lines(), notes
}

// cut takes the first rows, and makes a note about the others.
func cut[T any](rows []T, limit, total int, noun string) (shown []T, notes []string) {
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	if len(rows) < total {
		format := "%d of %d processes listed; --limit 0 lists all"
		switch noun {
		case "instance":
			format = "%d of %d instances listed; --limit 0 lists all"
		case "name":
			format = "%d of %d names listed; --limit 0 lists all"
		}
		notes = append(notes, fmt.Sprintf(format, len(rows), total))
	}
	return rows, notes
}

// shouldGroup reports whether groups are easier to read. Output that is not for a terminal keeps its form.
func (v *psView) shouldGroup(l *listing, groups []*nameGroup, room int) bool {
	if v.o.never || !v.env.screen || l.next > 0 || v.q.Biz != 0 || !groupsHave(v.o.by) || v.o.output.format == "wide" {
		return false
	}
	return largestGroup(groups) > manyInstances || room > 0 && len(l.rows) > room && len(groups) <= room
}

// noun is what a row of the list is.
func (v *psView) noun() string {
	if v.q.Biz != 0 {
		return "instance"
	}
	return "process"
}

// summary is the line with the number of processes, and their states if all are known.
func (v *psView) summary(l *listing) string {
	if l.next > 0 {
		return v.env.text("%d processes", l.total)
	}
	if l.total == 0 {
		return v.env.text("no processes found")
	}
	return v.env.totals(v.noun(), countStates(l.rows), v.paint)
}
