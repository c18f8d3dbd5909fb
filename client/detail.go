package client

import "github.com/gozzard/gozzard"

// Detail is what the action query found out about a process.
type Detail struct {
	PID          int     `json:"pid"`     // -1 when not running
	Managed      bool    `json:"managed"` // the agent supervises it
	Cmdline      string  `json:"cmdline,omitempty"`
	Version      string  `json:"version,omitempty"`
	Health       string  `json:"health,omitempty"`
	CPU          float64 `json:"cpu"`     // percent of the machine, now
	CPUAvg       float64 `json:"cpu_avg"` // percent of the machine, since the process started
	Mem          float64 `json:"mem"`     // percent of the machine
	MemKB        int64   `json:"mem_kb"`
	Stat         string  `json:"stat,omitempty"`
	UTime        int64   `json:"utime"` // seconds
	STime        int64   `json:"stime"` // seconds
	Threads      int     `json:"threads"`
	StartedAt    Time    `json:"started_at"` // of the process itself; null when not running
	Elapsed      int64   `json:"elapsed"`    // seconds
	RegisteredAt Time    `json:"registered_at"`
	LastStart    Time    `json:"last_start"` // by the agent; StartedAt if the agent did not start it
	ReportedAt   Time    `json:"reported_at"`
	ZoneOffset   int     `json:"zone_offset"` // seconds east of UTC of the host's clock
}

// NewDetail makes the detail of what an agent reported. It is nil for nil.
func NewDetail(d *gozzard.Detail) *Detail {
	if d == nil {
		return nil
	}
	return &Detail{PID: d.PID, Managed: d.Hosted, Cmdline: d.Cmdline, Version: d.Version, Health: d.Health, CPU: d.CPU,
		CPUAvg: d.CPUAvg, Mem: d.Mem, MemKB: d.MemKB, Stat: d.Stat, UTime: d.UTime, STime: d.STime, Threads: d.Threads,
		StartedAt: UnixTime(d.StartedAt), Elapsed: d.Elapsed, RegisteredAt: UnixTime(d.RegisteredAt),
		LastStart: UnixTime(d.LastStart), ReportedAt: UnixTime(d.ReportedAt), ZoneOffset: d.ZoneOffset}
}
