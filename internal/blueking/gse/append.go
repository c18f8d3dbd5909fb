package gse

import (
	"maps"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard/internal/strictjson"
)

// Answers with thousands of rows write their own JSON; see strictjson.Appender.

// rowBytes is the usual size of a row.
const rowBytes = 512

// AppendJSON implements strictjson.Appender.
func (p procInfos) AppendJSON(b []byte) []byte {
	return append(appendRows(append(b, '{'), p.Infos), '}')
}

// AppendJSON implements strictjson.Appender.
func (p procPage) AppendJSON(b []byte) []byte {
	b = appendInt(b, `{"count":`, int64(p.Count))
	return append(appendRows(append(b, ','), p.Infos), '}')
}

func appendRows(b []byte, rows []procInfo) []byte {
	b = append(b, `"proc_infos":`...)

	if rows == nil {
		return append(b, "null"...)
	}

	b = slices.Grow(b, len(rows)*rowBytes)
	b = append(b, '[')
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = rows[i].append(b)
	}

	return append(b, ']')
}

func (r *procInfo) append(b []byte) []byte {
	b = appendText(b, `{"meta":{"namespace":`, r.Meta.Namespace)
	b = appendText(b, `,"name":`, r.Meta.Name)
	b = strictjson.AppendStrings(append(b, `,"labels":`...), r.Meta.Labels)
	b = appendText(b, `},"host":{"ip":`, r.Host.IP)
	b = appendInt(b, `,"bk_cloud_id":`, int64(r.Host.Cloud))
	b = appendInt(b, `,"bk_supplier_id":`, int64(r.Host.Supplier))
	b = appendText(b, `},"bk_agent_id":`, r.AgentID)
	b = appendInt(b, `,"flag":`, int64(r.Flag))
	b = appendInt(b, `,"status":`, int64(r.Status))
	b = strconv.AppendBool(append(b, `,"isauto":`...), r.IsAuto)
	b = appendText(b, `,"message":`, r.Message)
	b = appendInt(b, `,"pid":`, int64(r.PID))
	b = appendText(b, `,"version":`, r.Version)
	b = appendInt(b, `,"register_time":`, r.RegisterTime)
	b = appendInt(b, `,"last_start_time":`, r.LastStartTime)
	b = appendInt(b, `,"report_time":`, r.ReportTime)
	b = strictjson.AppendFloat(append(b, `,"cpu_usage":`...), r.CPUUsage)
	b = strictjson.AppendFloat(append(b, `,"mem_usage":`...), r.MemUsage)
	b = appendInt(b, `,"fd":`, int64(r.FD))
	b = appendInt(b, `,"disk":`, r.Disk)
	b = appendInt(b, `,"net":`, r.Net)
	return append(b, '}')
}

// entries are results by their keys.
type entries map[string]entry

// AppendJSON implements strictjson.Appender.
func (m entries) AppendJSON(b []byte) []byte {
	b = slices.Grow(b, len(m)*rowBytes)
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = m[key].append(b, key)
	}

	return append(b, '}')
}

// append appends an entry with its key.
func (e entry) append(b []byte, key string) []byte {
	b = append(strictjson.AppendString(b, key), ':')
	b = appendInt(b, `{"error_code":`, int64(e.ErrorCode))
	b = appendText(b, `,"error_msg":`, e.ErrorMsg)
	b = appendText(b, `,"content":`, e.Content)
	if e.old {
		b = appendInt(b, `,"errcode":`, int64(e.ErrorCode))
		b = appendText(b, `,"errmsg":`, e.ErrorMsg)
	}
	return append(b, '}')
}

func appendText(b []byte, name, value string) []byte {
	return strictjson.AppendString(append(b, name...), value)
}

func appendInt(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(b, name...), value, 10)
}
