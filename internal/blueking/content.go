package blueking

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// ControlContent is the content of a finished entry of an operation, also of a failed one. Clients rely on exactly one
// value.
type ControlContent struct {
	Value [1]ControlValue `json:"value"`
}

// ControlValue is the process of an operation and the result.
type ControlValue struct {
	ProcName   string `json:"procName"`
	SetupPath  string `json:"setupPath"`
	FuncID     string `json:"funcID"`
	InstanceID string `json:"instanceID"`
	Result     string `json:"result"`
	IsAuto     *bool  `json:"isAuto,omitempty"`      // GSE 2.0 only
	AgentID    string `json:"bk_agent_id,omitempty"` // GSE 2.0 only
}

// QueryContent is the content of a finished entry of a query.
type QueryContent struct {
	IP       string          `json:"ip"`
	AgentID  string          `json:"bk_agent_id"`
	UTCTime  string          `json:"utctime"`  // the host's local time, in spite of its name
	UTCTime2 string          `json:"utctime2"` // UTC
	Timezone int             `json:"timezone"`
	Process  [1]QueryProcess `json:"process"`
}

// QueryProcess is the queried process.
type QueryProcess struct {
	ProcName string           `json:"procname"`
	Instance [1]QueryInstance `json:"instance"`
}

// QueryInstance is the state of the queried process.
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

// NewQueryContent is the result of a query. It has exactly one instance, also for a process that is not registered or
// whose agent did not answer: clients crash on any other number. procName is the name of the program, shown the name
// of the instance.
func NewQueryContent(a *gozzard.Attempt, procName, shown string) QueryContent {
	// Without a detail the process counts as not running.
	d := gozzard.Detail{PID: -1}

	if a.Outcome.Detail != nil {
		d = *a.Outcome.Detail
	}

	// The instance.
	in := QueryInstance{
		ProcessName: shown, PID: -1, IsAuto: d.Hosted, Version: d.Version, Health: d.Health, DiskSize: -1,
		FreeVMem: "0", UTime: "0", STime: "0",
		RegisterTime: d.RegisteredAt, LastStartTime: d.LastStart, ReportTime: d.ReportedAt,
	}
	zone := time.FixedZone("", d.ZoneOffset)

	if d.PID > 1 {
		in.PID, in.Cmdline, in.Stat, in.ThreadCount, in.ElapsedTime = d.PID, d.Cmdline, d.Stat, d.Threads, d.Elapsed
		in.CPUUsage, in.CPUUsageAve = gozzard.Finite(d.CPU), gozzard.Finite(d.CPUAvg)
		in.PhyMemUsage, in.UsePhyMem = gozzard.Finite(d.Mem), d.MemKB
		in.UTime, in.STime = strconv.FormatInt(d.UTime, 10), strconv.FormatInt(d.STime, 10)
		if d.StartedAt > 0 {
			in.StartTime = time.Unix(d.StartedAt, 0).In(zone).Format(time.ANSIC)
		}
	}

	// The host and its time.
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

// EncodeContent is the JSON of a content.
func EncodeContent(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // strings, finite numbers and booleans only
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Identities caches the last definition that was decoded: the attempts of one item have the same. The zero value is
// ready to use.
type Identities struct {
	bytes []byte
	id    gozzard.Identity
}

// Of is the identity in the definition of an attempt. It is empty if there is no readable definition; the verdict
// does not depend on it.
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
