package gsekit

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// Answers with thousands of processes write their own JSON; see strictjson.Appender.

// rowBytes is the usual size of a row.
const rowBytes = 1024

// processPage is the answer of process_status.
type processPage struct {
	total   int
	rows    []topology.Row
	columns []column
}

// AppendJSON implements strictjson.Appender.
func (p processPage) AppendJSON(b []byte) []byte {
	b = slices.Grow(b, 64+len(p.rows)*rowBytes)
	b = append(b, `{"count":`...)
	b = strconv.AppendInt(b, int64(p.total), 10)
	b = append(b, `,"list":[`...)
	for i := range p.rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		for j, c := range p.columns {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(b, c.key...)
			b = c.append(b, &p.rows[i])
		}
		b = append(b, '}')
	}

	return append(b, "]}"...)
}

// column is one field of a row.
type column struct {
	name   string
	append func(b []byte, r *topology.Row) []byte
	key    string // the name as JSON, with the colon; see columnsOf
}

// columns are all fields, in their order.
func columns() []column {
	number := func(of func(r *topology.Row) int) func([]byte, *topology.Row) []byte {
		return func(b []byte, r *topology.Row) []byte { return strconv.AppendInt(b, int64(of(r)), 10) }
	}

	text := func(of func(r *topology.Row) string) func([]byte, *topology.Row) []byte {
		return func(b []byte, r *topology.Row) []byte { return strictjson.AppendString(b, of(r)) }
	}

	process := number(func(r *topology.Row) int { return r.Process })
	return []column{
		{name: "id", append: process},
		{name: "bk_biz_id", append: number(func(r *topology.Row) int { return r.Biz })},
		{name: "expression", append: text((*topology.Row).Expression)},
		{name: "bk_host_innerip", append: func(b []byte, r *topology.Row) []byte { return appendIP(b, r.Host.IP) }},
		{name: "bk_host_innerip_v6", append: func(b []byte,
			r *topology.Row) []byte {
			return appendIP(b, r.Host.IPv6)
		}},
		{name: "bk_agent_id", append: func(b []byte,
			r *topology.Row) []byte {
			return appendOr(b, string(r.Host.Agent))
		}},
		{name: "bk_cloud_id", append: number(func(r *topology.Row) int { return r.Host.Cloud })},
		{name: "bk_set_env", append: text(func(r *topology.Row) string { return r.Env.String() })},
		{name: "bk_set_id", append: number(func(r *topology.Row) int { return r.Set })},
		{name: "bk_module_id", append: number(func(r *topology.Row) int { return r.Module })},
		{name: "service_template_id", append: number(func(r *topology.Row) int { return r.ServiceTemplate })},
		{name: "service_instance_id", append: number(func(r *topology.Row) int { return r.Service })},
		{name: "bk_process_name", append: text(func(r *topology.Row) string { return r.Name })},
		{name: "bk_process_id", append: process},
		{name: "process_template_id", append: number(func(r *topology.Row) int { return r.Template })},
		{name: "process_status", append: number(func(r *topology.Row) int { return runState(r.State) })},
		{name: "is_auto", append: func(b []byte, r *topology.Row) []byte { return strconv.AppendBool(b, r.Hosted) }},
		{name: "bk_set_name", append: text(func(r *topology.Row) string { return r.SetName })},
		{name: "bk_module_name", append: text(func(r *topology.Row) string { return r.ModuleName })},
		{name: "bk_service_name", append: text(func(r *topology.Row) string { return r.ServiceName })},
		{name: "bk_cloud_name", append: func(b []byte, r *topology.Row) []byte { return appendOr(b, r.CloudName) }},
		{name: "config_templates", append: appendConfigs},
		{name: "proc_inst_infos", append: appendInstances},
		{name: "report_time", append: func(b []byte,
			r *topology.Row) []byte {
			return strconv.AppendInt(b, r.ReportedAt, 10)
		}},
		{name: "stale", append: func(b []byte, r *topology.Row) []byte { return strconv.AppendBool(b, r.Stale) }},
	}
}

// columnsOf are the requested fields, or all if none is requested. An unknown field is null.
func columnsOf(names []string) []column {
	out := columns()
	if len(names) > 0 {
		out = project(out, names)
	}
	for i := range out {
		out[i].key = string(append(strictjson.AppendString(nil, out[i].name), ':'))
	}
	return out
}

func project(all []column, names []string) []column {
	var out []column
	is := func(name string) func(column) bool { return func(c column) bool { return c.name == name } }
	for _, name := range names {
		if slices.ContainsFunc(out, is(name)) {
			continue
		}
		c := column{name: name, append: func(b []byte, _ *topology.Row) []byte { return append(b, "null"...) }}
		if i := slices.IndexFunc(all, is(name)); i >= 0 {
			c = all[i]
		}
		out = append(out, c)
	}

	return out
}

func appendConfigs(b []byte, r *topology.Row) []byte {
	b = append(b, '[')
	for i, c := range r.Configs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"config_template_id":`...), int64(c.ID), 10)
		b = strictjson.AppendString(append(b, `,"template_name":`...), c.Name)
		b = strictjson.AppendString(append(b, `,"file_name":`...), c.FileName)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendInstances(b []byte, r *topology.Row) []byte {
	b = append(b, '[')
	for i, in := range r.Instances {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"bk_process_id":`...), int64(r.Process), 10)
		b = strconv.AppendInt(append(b, `,"local_inst_id":`...), int64(in.Local), 10)
		b = strconv.AppendInt(append(b, `,"inst_id":`...), int64(in.Inst), 10)
		b = strconv.AppendInt(append(b, `,"process_status":`...), int64(runState(in.Status.State)), 10)
		b = strconv.AppendBool(append(b, `,"is_auto":`...), in.Status.Hosted)
		b = append(b, '}')
	}

	return append(b, ']')
}

// runState is a number that clients know.
func runState(s gozzard.RunState) int {
	if s > gozzard.StateStopped {
		return int(gozzard.StateUnregistered)
	}
	return int(s)
}

func appendIP(b []byte, ip netip.Addr) []byte {
	if !ip.IsValid() {
		return append(b, "null"...)
	}
	return append(ip.AppendTo(append(b, '"')), '"')
}

// appendOr appends a text, or null if it is empty.
func appendOr(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, s)
}
