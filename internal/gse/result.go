package gse

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/esb"
)

// entry is the result of one process on one host. Content is JSON inside a string: clients parse it a second time.
type entry struct {
	ErrorCode int    `json:"error_code"`
	ErrorMsg  string `json:"error_msg"`
	Content   string `json:"content"`
}

// result polls a task. An unknown id, another app's and nonsense get the same words.
func (s *server) result(ctx context.Context, c *esb.Call) (any, error) {
	id := c.Body.Get("task_id")
	task := gozzard.TaskID(id.Str())
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	res, err := s.plane.Results(ctx, c.Caller, task)
	if err != nil {
		if gozzard.KindOf(err) == gozzard.ErrNotFound {
			return nil, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
		}
		return nil, err
	}
	return render(&res), nil
}

// render gives every attempt its entry, from the first poll on.
func render(res *control.TaskResults) entries {
	out := make(entries, len(res.Attempts))
	var specs specCache
	for i := range res.Attempts {
		a := &res.Attempts[i]
		id := specs.identity(a)
		if id.ProcName == "" {
			id.ProcName = a.Key.Name
		}
		number, text := verdict(a, id.ProcName)
		e := entry{ErrorCode: number, ErrorMsg: text}
		if number != numInWork {
			e.Content = content(res.Task.Door, a, id, text)
		}
		out[a.ResultKey] = e
	}
	return out
}

// specCache saves reading the same definition again for each host of an item.
type specCache struct {
	bytes []byte
	id    gozzard.Identity
}

func (c *specCache) identity(a *gozzard.Attempt) gozzard.Identity {
	if len(a.Spec) == 0 {
		return gozzard.Identity{}
	}
	if !bytes.Equal(a.Spec, c.bytes) {
		c.bytes, c.id = a.Spec, gozzard.Identity{}
		if s, err := gozzard.DecodeSpec(a.Spec); err == nil { // a definition that cannot be read names nothing; the verdict stands
			c.id = s.Identity
		}
	}
	return c.id
}

// content is the second JSON of a finished entry.
func content(door string, a *gozzard.Attempt, id gozzard.Identity, text string) string {
	switch a.Action {
	case gozzard.ActionRegister, gozzard.ActionUpdate, gozzard.ActionUnregister:
		return ""
	case gozzard.ActionQuery:
		return encode(queryContent(door, a, id))
	}
	v := controlValue{ProcName: id.ProcName, SetupPath: id.SetupPath, Result: text}
	if door != doorV1 {
		v.IsAuto = &a.Outcome.Hosted
		v.AgentID = string(a.Agent)
	}
	return encode(controlContent{Value: [1]controlValue{v}})
}

type controlContent struct {
	Value [1]controlValue `json:"value"`
}

type controlValue struct {
	ProcName   string `json:"procName"`
	SetupPath  string `json:"setupPath"`
	FuncID     string `json:"funcID"`
	InstanceID string `json:"instanceID"`
	Result     string `json:"result"`
	IsAuto     *bool  `json:"isAuto,omitempty"`      // GSE 2.0 only
	AgentID    string `json:"bk_agent_id,omitempty"` // GSE 2.0 only
}

type processContent struct {
	IP       string            `json:"ip"`
	AgentID  string            `json:"bk_agent_id"`
	UTCTime  string            `json:"utctime"`  // the host's local time, in spite of its name
	UTCTime2 string            `json:"utctime2"` // UTC
	Timezone int               `json:"timezone"`
	Process  [1]processDetails `json:"process"`
}

type processDetails struct {
	ProcName string      `json:"procname"`
	Instance [1]instance `json:"instance"`
}

type instance struct {
	ProcessName   string  `json:"processName"`
	PID           int     `json:"pid"`
	IsAuto        bool    `json:"isAuto"`
	Cmdline       string  `json:"cmdline"`
	Version       string  `json:"version"`
	Health        string  `json:"health"`
	CPUUsage      float64 `json:"cpuUsage"`
	CPUUsageAve   float64 `json:"cpuUsageAve"`
	PhyMemUsage   float64 `json:"phyMemUsage"`
	UsePhyMem     int64   `json:"usePhyMem"`
	DiskSize      int64   `json:"diskSize"`
	FreeVMem      string  `json:"freeVMem"`
	Stat          string  `json:"stat"`
	UTime         string  `json:"utime"`
	STime         string  `json:"stime"`
	StartTime     string  `json:"startTime"`
	ThreadCount   int     `json:"threadCount"`
	ElapsedTime   int64   `json:"elapsedTime"`
	RegisterTime  int64   `json:"register_time"`
	LastStartTime int64   `json:"last_start_time"`
	ReportTime    int64   `json:"report_time"`
}

// queryContent has exactly one instance, also for what was never registered or could not be asked: clients crash on anything else.
func queryContent(door string, a *gozzard.Attempt, id gozzard.Identity) processContent {
	d := gozzard.Detail{PID: -1}
	if a.Outcome.Detail != nil {
		d = *a.Outcome.Detail
	}
	name := a.Key.Name
	if door == doorV1 {
		name = id.ProcName
	}
	in := instance{
		ProcessName: name, PID: -1, IsAuto: d.Hosted, Version: d.Version, Health: d.Health, DiskSize: -1, FreeVMem: "0", UTime: "0", STime: "0",
		RegisterTime: d.RegisteredAt, LastStartTime: d.LastStart, ReportTime: d.ReportedAt,
	}
	zone := time.FixedZone("", d.ZoneOffset)
	if d.PID > 1 {
		in.PID, in.Cmdline, in.Stat, in.ThreadCount, in.ElapsedTime = d.PID, d.Cmdline, d.Stat, d.Threads, d.Elapsed
		in.CPUUsage, in.CPUUsageAve, in.PhyMemUsage, in.UsePhyMem = finite(d.CPU), finite(d.CPUAvg), finite(d.Mem), d.MemKB
		in.UTime, in.STime = strconv.FormatInt(d.UTime, 10), strconv.FormatInt(d.STime, 10)
		if d.StartedAt > 0 {
			in.StartTime = time.Unix(d.StartedAt, 0).In(zone).Format(time.ANSIC)
		}
	}
	c := processContent{AgentID: string(a.Agent), Timezone: d.ZoneOffset / 3600}
	if a.Addr.IP.IsValid() {
		c.IP = a.Addr.IP.String()
	}
	if d.ReportedAt > 0 {
		at := time.Unix(d.ReportedAt, 0)
		c.UTCTime, c.UTCTime2 = at.In(zone).Format(time.DateTime), at.UTC().Format(time.DateTime)
	}
	c.Process[0] = processDetails{ProcName: id.ProcName, Instance: [1]instance{in}}
	return c
}

// finite keeps numbers of agents out of answers that JSON cannot say.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // strings, finite numbers and booleans only
		panic(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
