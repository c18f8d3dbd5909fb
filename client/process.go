package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/gozzard/gozzard"
)

// MaxPage is the largest page that the server answers.
const MaxPage = 1000

// Process is one process on one host, as its agent last reported it.
type Process struct {
	Host         HostRef           `json:"host"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Wanted       string            `json:"wanted"`               // running or stopped, as the last operation asked for
	State        string            `json:"state"`                // one of States
	LastState    string            `json:"last_state,omitempty"` // only of a process in state unknown: as last reported
	Kind         string            `json:"kind"`                 // resident, periodic or one_shot
	Managed      bool              `json:"managed"`              // the agent supervises it
	Stale        bool              `json:"stale"`                // its host is offline: this is the last report
	PID          int32             `json:"pid"`
	Version      string            `json:"version,omitempty"`
	Message      string            `json:"message,omitempty"`
	RegisteredAt Time              `json:"registered_at"` // null when not known, as the other times
	StartedAt    Time              `json:"started_at"`
	ReportedAt   Time              `json:"reported_at"`
	CPU          float32           `json:"cpu"`                // percent of the whole machine, of the process tree
	Mem          float32           `json:"mem"`                // percent of the whole machine, of the process tree
	MemBytes     int64             `json:"mem_bytes"`          // resident memory of the process tree
	FD           int32             `json:"fd"`                 // open file descriptors
	Disk         int64             `json:"disk"`               // bytes of the files that it holds open for writing
	Net          int64             `json:"net"`                // TCP bytes in and out, since its sockets were opened
	Topology     *Place            `json:"topology,omitempty"` // only if processes of a business were asked for

	// Restarts counts the restarts without a request since an operation last started or stopped the process.
	Restarts int `json:"restarts"`
	// Exit is how the process last ended; missing if no end is known.
	Exit *Exit `json:"exit,omitempty"`
	// NextAt is the next start of a process that is backing off or in a crash loop, or the next run of a periodic one.
	NextAt Time `json:"next_at,omitzero"`
	// LastRun is the last run of a periodic or one-shot process; missing if none is known.
	LastRun *LastRun `json:"last_run,omitempty"`
	// Health is passing or failing; empty without a health check and before its first result.
	Health        string `json:"health"`
	HealthMessage string `json:"health_message,omitempty"`
}

// The states of a process.
const (
	StateRunning      = "running"
	StateStarting     = "starting"    // its start command runs, its start check is not over, or it waits for others
	StateUnhealthy    = "unhealthy"   // it runs, and its health check fails
	StateBackingOff   = "backing_off" // it ended or could not be started, and is started again at next_at
	StateCrashLoop    = "crash_loop"  // as backing_off, after it ended again and again soon after its start
	StateScheduled    = "scheduled"   // a periodic process that waits for next_at
	StateCompleted    = "completed"   // it ended with 0, as it should
	StateFailed       = "failed"      // it ended with a failure or could not be started, and is not started again
	StateStopped      = "stopped"
	StateUnknown      = "unknown"      // its host does not report (see last_state), or its agent cannot say whether it runs
	StateUnregistered = "unregistered" // its agent does not know it
)

// The kinds of processes.
const (
	KindResident = "resident"
	KindPeriodic = "periodic"
	KindOneShot  = "one_shot"
)

// The results of a health check.
const (
	HealthPassing = "passing"
	HealthFailing = "failing"
)

// Exit is how a process ended.
type Exit struct {
	At     Time   `json:"at,omitzero"`
	Code   *int   `json:"code,omitempty"`   // missing if it is not known, or a signal ended the process
	Signal string `json:"signal,omitempty"` // such as SIGKILL
	Core   bool   `json:"core,omitempty"`   // the kernel wrote a core dump
	OOM    bool   `json:"oom,omitempty"`    // the kernel ended it, because memory was short
}

// LastRun is the last run of a process that is expected to end. A run that has not ended has no EndedAt.
type LastRun struct {
	StartedAt Time   `json:"started_at,omitzero"`
	EndedAt   Time   `json:"ended_at,omitzero"`
	Code      *int   `json:"code,omitempty"`   // missing if it is not known, or a signal ended the run
	Signal    string `json:"signal,omitempty"` // such as SIGKILL
}

// ExitOf is an end as callers see it, nil if none is known.
func ExitOf(e gozzard.Ending) *Exit {
	if e.IsZero() {
		return nil
	}
	return &Exit{At: MilliTime(e.At), Code: exitCode(e), Signal: e.Signal, Core: e.Core, OOM: e.OOM}
}

// LastRunOf is a run as callers see it, nil if none is known.
func LastRunOf(r gozzard.LastRun) *LastRun {
	if r == (gozzard.LastRun{}) {
		return nil
	}
	return &LastRun{StartedAt: MilliTime(r.StartedAt), EndedAt: MilliTime(r.End.At),
		Code: exitCode(r.End), Signal: r.End.Signal}
}

// exitCode is nil if the code is not known, or a signal ended the process.
func exitCode(e gozzard.Ending) *int {
	if !e.Known || e.Signal != "" {
		return nil
	}
	code := int(e.Code)
	return &code
}

// States are all states of a process.
func States() []string {
	return []string{StateRunning, StateStarting, StateUnhealthy, StateBackingOff, StateCrashLoop, StateScheduled,
		StateCompleted, StateFailed, StateStopped, StateUnknown, StateUnregistered}
}

// Place is the place of an instance in its business.
type Place struct {
	Biz         int    `json:"biz"`
	Set         int    `json:"set"`
	SetName     string `json:"set_name"`
	Env         int    `json:"env"` // 1 test, 2 experience, 3 formal, -1 none
	Module      int    `json:"module"`
	ModuleName  string `json:"module_name"`
	Service     int    `json:"service"`
	ServiceName string `json:"service_name"`
	Process     int    `json:"process"`
	Alias       string `json:"alias"`
	Local       int    `json:"local_inst_id"` // number of the instance on its host
	Inst        int    `json:"inst_id"`       // number of the instance in its module
	Priority    int    `json:"priority"`
}

// ProcessQuery selects processes. Every field that is not empty must match, and a field matches if one of its values
// does. With a BusinessSelection the processes of a business are selected, with a row for each instance: names are
// then aliases, there are no namespaces, and pages are counted in processes.
type ProcessQuery struct {
	BusinessSelection
	Namespaces []string // patterns with * and ?
	Names      []string // patterns with * and ?
	Hosts      []string // cloud:ip, an IP address, a host name or an agent id
	Clouds     []int
	States     []string
	Labels     []string // key=value, key!=value, key or !key, with patterns as values; all must match
	Managed    *bool
}

// ProcessPage is one page of the processes that match.
type ProcessPage struct {
	Count     int       `json:"count"` // all that match, not only those on this page
	Processes []Process `json:"processes"`
	Next      int       `json:"next,omitempty"` // start of the next page; missing or 0: this is the last page
}

func (q *ProcessQuery) values(start, limit int) url.Values {
	v := page(start, limit)
	q.BusinessSelection.addTo(v)

	for name, list := range map[string][]string{"namespace": q.Namespaces, "name": q.Names, "host": q.Hosts,
		"state": q.States, "label": q.Labels} {
		for _, s := range list {
			v.Add(name, s)
		}
	}

	for _, n := range q.Clouds {
		v.Add("cloud", strconv.Itoa(n))
	}

	if q.Managed != nil {
		v.Set("managed", strconv.FormatBool(*q.Managed))
	}

	return v
}

// Processes lists a page of at most MaxPage processes, in a stable order.
func (c *Client) Processes(ctx context.Context, q ProcessQuery, start, limit int) (ProcessPage, error) {
	var p ProcessPage
	err := c.get(ctx, "/api/v1/processes", q.values(start, limit), &p)
	return p, err
}

// AllProcesses iterates over every process that matches, page by page.
func (c *Client) AllProcesses(ctx context.Context, q ProcessQuery) iter.Seq2[Process, error] {
	return func(yield func(Process, error) bool) {
		for start := 0; ; {
			p, err := c.Processes(ctx, q, start, MaxPage)
			if err != nil {
				yield(Process{}, err)
				return
			}
			for _, row := range p.Processes {
				if !yield(row, nil) {
					return
				}
			}
			if start = p.Next; start == 0 {
				return
			}
		}
	}
}

func page(start, limit int) url.Values {
	return url.Values{"start": {strconv.Itoa(start)}, "limit": {strconv.Itoa(limit)}}
}
