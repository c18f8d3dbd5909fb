package blueking

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// ControlContent is what a finished entry says of an operation, on failure too. Clients rely on exactly one value.
type ControlContent struct {
	Value [1]ControlValue `json:"value"`
}

// ControlValue is the operation's process and how it went.
type ControlValue struct {
	ProcName   string `json:"procName"`
	SetupPath  string `json:"setupPath"`
	FuncID     string `json:"funcID"`
	InstanceID string `json:"instanceID"`
	Result     string `json:"result"`
	IsAuto     *bool  `json:"isAuto,omitempty"`      // GSE 2.0 only
	AgentID    string `json:"bk_agent_id,omitempty"` // GSE 2.0 only
}

// QueryContent is what a finished entry says of a query.
type QueryContent struct {
	IP       string          `json:"ip"`
	AgentID  string          `json:"bk_agent_id"`
	UTCTime  string          `json:"utctime"`  // the host's local time, in spite of its name
	UTCTime2 string          `json:"utctime2"` // UTC
	Timezone int             `json:"timezone"`
	Process  [1]QueryProcess `json:"process"`
}

// QueryProcess is the process asked for.
type QueryProcess struct {
	ProcName string           `json:"procname"`
	Instance [1]QueryInstance `json:"instance"`
}

// QueryInstance is the process as it runs, or does not.
type QueryInstance struct {
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

// NewQueryContent tells what a query found. It has exactly one instance, also for what was never registered or
// could not be asked: clients crash on anything else. procName is the program's name, shown what the instance is
// called.
func NewQueryContent(a *gozzard.Attempt, procName, shown string) QueryContent {
	d := gozzard.Detail{PID: -1}

	if a.Outcome.Detail != nil {
		d = *a.Outcome.Detail
	}

	in := QueryInstance{
		ProcessName: shown, PID: -1, IsAuto: d.Hosted, Version: d.Version, Health: d.Health, DiskSize: -1,
		FreeVMem: "0", UTime: "0", STime: "0",
		RegisterTime: d.RegisteredAt, LastStartTime: d.LastStart, ReportTime: d.ReportedAt,
	}
	zone := time.FixedZone("", d.ZoneOffset)

	if d.PID > 1 {
		in.PID, in.Cmdline, in.Stat, in.ThreadCount, in.ElapsedTime = d.PID, d.Cmdline, d.Stat, d.Threads, d.Elapsed
		in.CPUUsage, in.CPUUsageAve, in.PhyMemUsage, in.UsePhyMem = gozzard.Finite(d.CPU), gozzard.Finite(d.CPUAvg), gozzard.Finite(d.Mem),
			d.MemKB
		in.UTime, in.STime = strconv.FormatInt(d.UTime, 10), strconv.FormatInt(d.STime, 10)
		if d.StartedAt > 0 {
			in.StartTime = time.Unix(d.StartedAt, 0).In(zone).Format(time.ANSIC)
		}
	}

	c := QueryContent{AgentID: string(a.Agent), Timezone: d.ZoneOffset / 3600}

	if a.Addr.IP.IsValid() {
		c.IP = a.Addr.IP.String()
	}
	if d.ReportedAt > 0 {
		at := time.Unix(d.ReportedAt, 0)
		c.UTCTime, c.UTCTime2 = at.In(zone).Format(time.DateTime), at.UTC().Format(time.DateTime)
	}

	c.Process[0] = QueryProcess{ProcName: procName, Instance: [1]QueryInstance{in}}
	return c
}

// EncodeContent gives the JSON of a content.
func EncodeContent(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // strings, finite numbers and booleans only
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Identities saves reading the same definition again for each host of an item. The zero value is ready.
type Identities struct {
	bytes []byte
	id    gozzard.Identity
}

// Of is the identity that an attempt's definition says, empty when there is none that can be read: the verdict
// stands without it.
func (c *Identities) Of(a *gozzard.Attempt) gozzard.Identity {
	if len(a.Spec) == 0 {
		return gozzard.Identity{}
	}
	if !bytes.Equal(a.Spec, c.bytes) {
		c.bytes, c.id = a.Spec, gozzard.Identity{}
		if s, err := gozzard.DecodeSpec(a.Spec); err == nil {
			c.id = s.Identity
		}
	}
	return c.id
}
