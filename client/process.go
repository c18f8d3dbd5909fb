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
	Agent        gozzard.AgentID   `json:"agent"`
	Cloud        int               `json:"cloud"`
	IP           string            `json:"ip"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Wanted       string            `json:"wanted"` // running or stopped, as the last operation asked for
	State        string            `json:"state"`  // running, stopped or unregistered
	Hosted       bool              `json:"hosted"` // the agent supervises it
	Stale        bool              `json:"stale"`  // its host is offline: this is the last report
	PID          int32             `json:"pid"`
	Version      string            `json:"version,omitempty"`
	Message      string            `json:"message,omitempty"`
	RegisteredAt int64             `json:"registered_at"`      // Unix seconds
	StartedAt    int64             `json:"started_at"`         // Unix seconds
	ReportedAt   int64             `json:"reported_at"`        // Unix seconds
	CPU          float32           `json:"cpu"`                // percent of the whole machine, of the process tree
	Mem          float32           `json:"mem"`                // percent of the whole machine, of the process tree
	FD           int32             `json:"fd"`                 // open file descriptors
	Disk         int64             `json:"disk"`               // bytes of the files that it holds open for writing
	Net          int64             `json:"net"`                // TCP bytes in and out, since its sockets were opened
	Topology     *Place            `json:"topology,omitempty"` // only if processes of a business were asked for
}

// Place is the place of an instance in its business.
type Place struct {
	Biz         int    `json:"biz"`
	Set         int    `json:"set"`
	SetName     string `json:"set_name"`
	Env         int    `json:"env"` // 1 test, 2 experience, 3 formal
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
	Hosts      []string // cloud:ip, an IP address, or an agent id
	Clouds     []int
	States     []string
	Labels     []string // key=value, key!=value, key or !key, with patterns as values; all must match
	Hosted     *bool
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

	if q.Hosted != nil {
		v.Set("hosted", strconv.FormatBool(*q.Hosted))
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
