package gsekit

import (
	"context"
	"strings"

	"github.com/gozzard/gozzard/internal/topology"
)

// The limits of work that is done for every row.
const (
	maxSearches = 100
	maxFields   = 100
)

// processStatus lists the matching processes with their live status.
func (s *server) processStatus(ctx context.Context, r *request) (any, error) {
	start, limit := r.page(true)
	q := r.selection(r.biz).query

	if n, given := opt(r.form, "process_status", anyInt()); given {
		r.states(&q, []int64{n})
	}
	if hosted, given := opt(r.form, "is_auto", boolean); given {
		r.hosted(&q, []bool{hosted})
	}

	r.narrow(&q)
	q.Searches = listOf(r.form, "searches", maxSearches, filled)
	q.Order = r.ordering()
	fields := listOf(r.form, "fields", maxFields, text)

	if err := r.err(); err != nil {
		return nil, err
	}

	q.Start, q.Limit = start, limit
	page := processPage{columns: columnsOf(fields)}
	page.total, page.rows = s.plane.FindProcesses(r.Caller, q)
	if err := s.configs.AddRefs(ctx, r.biz, page.rows); err != nil {
		return nil, err
	}
	return page, nil
}

// orders are the known keys; other keys are ignored, as callers know it.
func orderOf(key string) (topology.Field, bool) {
	switch key {
	case "bk_set_id":
		return topology.BySet, true
	case "bk_module_id":
		return topology.ByModule, true
	case "bk_process_name":
		return topology.ByName, true
	case "bk_process_id":
		return topology.ByProcess, true
	case "bk_host_innerip":
		return topology.ByIP, true
	}
	return 0, false
}

// ordering reads the keys to sort by.
func (f *form) ordering() []topology.Order {
	v := f.get("ordering")
	if v.IsNumber() {
		f.fault("ordering", f.lang.say(sayWantString, f.lang.show(&v)))
		return nil
	}

	keys, given := opt(f, "ordering", filled)
	if !given {
		return nil
	}

	var out []topology.Order
	for key := range strings.SplitSeq(keys, ",") {
		name, descending := strings.CutPrefix(strings.TrimSpace(key), "-")
		if name == "id" {
			f.fault("ordering", f.lang.say(sayNoOrder))
		}
		if by, ok := orderOf(name); ok {
			out = append(out, topology.Order{By: by, Descending: descending})
		}
	}

	return out
}
