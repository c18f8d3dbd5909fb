package gsekit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// This file has what GSEKit's page of statistics asks for: how many jobs there were, of all businesses that the caller may
// see. The numbers are counts of recorded jobs, so they reach as far back as jobs are kept.

// statColumns are what jobs can be grouped by.
var statColumns = []string{"bk_biz_id", "created_by", "job_object", "job_action", "status", "bk_app_code"}

// statValue is the value of a column of a group of jobs.
func statValue(c *record.JobCount, column string) any {
	switch column {
	case "bk_biz_id":
		return c.Biz
	case "created_by":
		return c.User
	case "job_object":
		if c.Work != record.WorkNone {
			return objectConfig
		}
		return objectProcess
	case "job_action":
		if c.Work != record.WorkNone {
			return string(c.Work)
		}
		return wordOf(c.Action)
	case "status":
		return string(c.State)
	}
	return c.App
}

// statText is a value as a text, for conditions and for the order.
func statText(c *record.JobCount, column string) string {
	if column == "bk_biz_id" {
		return strconv.Itoa(c.Biz)
	}
	s, _ := statValue(c, column).(string)
	return s
}

// countJobs counts the jobs of all businesses that the caller may see.
func (s *server) countJobs(ctx context.Context, r *request, f record.JobFilter) (all []record.JobCount, err error) {
	for _, b := range s.plane.Businesses(r.Caller) {
		f.Biz = b.ID
		counts, err := s.jobs.CountJobs(ctx, r.Caller, f)
		if err != nil {
			return nil, err
		}
		all = append(all, counts...)
	}
	return all, nil
}

// period reads start_time and end_time.
func (f *form) period(zone *time.Location) (q record.JobFilter) {
	q.From, q.Until = must(f, "start_time", moment(zone)), must(f, "end_time", moment(zone))
	return q
}

// grouped adds up counts that have the same values in some columns. The column date is the day in the zone of the server.
func grouped(counts []record.JobCount, columns []string, zone *time.Location) []map[string]any {
	rows, order := map[string]map[string]any{}, []string{}
	for i := range counts {
		c := &counts[i]
		row, key := map[string]any{}, ""
		for _, column := range columns {
			if column == "date" {
				row[column] = c.At.In(zone).Format(time.DateOnly)
				key += row[column].(string) + "\x00"
				continue
			}
			row[column] = statValue(c, column)
			key += statText(c, column) + "\x00"
		}
		if rows[key] == nil {
			row["count"] = 0
			rows[key] = row
			order = append(order, key)
		}
		rows[key]["count"] = rows[key]["count"].(int) + c.Count
	}

	slices.Sort(order)
	out := []map[string]any{}
	for _, key := range order {
		out = append(out, rows[key])
	}
	return out
}

func rowCount(row map[string]any) int { return row["count"].(int) }

// frequencyStatistics counts jobs by day and one column. The most frequent value of a day is the last one of that day: the
// page shows that one.
func (s *server) frequencyStatistics(ctx context.Context, r *request) (any, error) {
	q := r.period(s.zone)
	column := must(r.form, "group_by", choice(statColumns...))
	if err := r.err(); err != nil {
		return nil, err
	}

	counts, err := s.countJobs(ctx, r, q)
	if err != nil {
		return nil, err
	}
	rows := grouped(counts, []string{"date", column}, s.zone)
	slices.SortStableFunc(rows, func(a, b map[string]any) int {
		return cmp.Or(strings.Compare(a["date"].(string), b["date"].(string)), cmp.Compare(rowCount(a), rowCount(b)))
	})
	return rows, nil
}

// trendStatistics counts jobs by day, of one object and one action if the request has them.
func (s *server) trendStatistics(ctx context.Context, r *request) (any, error) {
	q := r.period(s.zone)
	filter, none := r.jobFilter(s.zone)
	if err := r.err(); err != nil {
		return nil, err
	}
	filter.From, filter.Until = q.From, q.Until

	var counts []record.JobCount
	if !none {
		var err error
		if counts, err = s.countJobs(ctx, r, filter); err != nil {
			return nil, err
		}
	}
	return grouped(counts, []string{"date"}, s.zone), nil
}

// jobCountStatistics counts jobs by some columns, the largest count first.
func (s *server) jobCountStatistics(ctx context.Context, r *request) (any, error) {
	columns := list(r.form, "group_by", choice(statColumns...))
	if len(columns) == 0 {
		r.fault("group_by", r.lang.say(sayRequired))
	}
	var q record.JobFilter
	var wanted, unwanted []condition
	r.nest("filter_conditions", func(in *form) {
		q.From, _ = opt(in, "start_time__gte", moment(s.zone))
		q.Until, _ = opt(in, "start_time__lte", moment(s.zone))
		wanted = in.conditions()
	})
	r.nest("exclude_conditions", func(in *form) { unwanted = in.conditions() })
	if err := r.err(); err != nil {
		return nil, err
	}

	counts, err := s.countJobs(ctx, r, q)
	if err != nil {
		return nil, err
	}
	counts = slices.DeleteFunc(counts, func(c record.JobCount) bool {
		fits := func(w condition) bool { return slices.Contains(w.values, statText(&c, w.column)) }
		return slices.ContainsFunc(unwanted, fits) || slices.ContainsFunc(wanted, func(w condition) bool { return !fits(w) })
	})
	rows := grouped(counts, columns, s.zone)
	slices.SortStableFunc(rows, func(a, b map[string]any) int { return cmp.Compare(rowCount(b), rowCount(a)) })
	return rows, nil
}

// condition is a column and the values that fit.
type condition struct {
	column string
	values []string
}

// conditions reads conditions on columns: one value, or with __in a list. Other names are faults: a condition that is
// ignored would give wrong numbers.
func (f *form) conditions() (out []condition) {
	for _, column := range statColumns {
		if v, given := opt(f, column, text); given {
			out = append(out, condition{column, []string{v}})
		}
		if v := f.get(column + "__in"); v.Given() {
			out = append(out, condition{column, list(f, column+"__in", text)})
		}
	}
	f.object.Members(func(name string, _ strictjson.Value) {
		column := strings.TrimSuffix(name, "__in")
		if !slices.Contains(statColumns, column) && name != "start_time__gte" && name != "start_time__lte" {
			f.fault(name, f.lang.say(sayChoice, name))
		}
	})
	return out
}
