package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// MaxPage is the largest page the server gives.
const MaxPage = 1000

// Process is one process of the fleet as last heard of.
type Process struct {
	Agent        gozzard.AgentID   `json:"agent"`
	Cloud        int               `json:"cloud"`
	IP           string            `json:"ip"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Wanted       string            `json:"wanted"`
	State        string            `json:"state"` // running, stopped or unregistered
	Hosted       bool              `json:"hosted"`
	Stale        bool              `json:"stale"` // its host is silent: this is the last that was heard
	PID          int32             `json:"pid"`
	Version      string            `json:"version,omitempty"`
	Message      string            `json:"message,omitempty"`
	RegisteredAt int64             `json:"registered_at"` // Unix seconds, as the other times
	StartedAt    int64             `json:"started_at"`
	ReportedAt   int64             `json:"reported_at"`
	CPU          float32           `json:"cpu"` // percent of the whole machine, process tree
	Mem          float32           `json:"mem"`
	FD           int32             `json:"fd"`
	Disk         int64             `json:"disk"`
	Net          int64             `json:"net"`
	Topology     *Place            `json:"topology,omitempty"` // when processes of a business were asked for
}

// ProcessQuery chooses processes. Every field that is not empty must fit, and a field fits when one of its values
// does. With a Scope processes of a business are chosen, a row for each of their instances: names are aliases then,
// there are no namespaces, and pages are counted in processes.
type ProcessQuery struct {
	Scope
	Namespaces []string // patterns with * and ?
	Names      []string // patterns with * and ?
	Hosts      []string // cloud:ip, an IP address, or an agent id
	Clouds     []int
	States     []string
	Hosted     *bool
}

// ProcessPage is a part of what fits.
type ProcessPage struct {
	Count     int       `json:"count"` // that fit, not only on this page
	Processes []Process `json:"processes"`
	Next      int       `json:"next,omitempty"` // where the next page starts; 0: this is the last
}

func (q *ProcessQuery) values(start, limit int) url.Values {
	v := page(start, limit)
	q.Scope.add(v)

	for name, list := range map[string][]string{"namespace": q.Namespaces, "name": q.Names, "host": q.Hosts,
		"state": q.States} {
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

// AllProcesses goes through everything that fits, page by page.
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

// HostInfo is one host as last heard of.
type HostInfo struct {
	Agent     gozzard.AgentID `json:"agent"`
	Addrs     []HostAddr      `json:"addrs"`
	Online    bool            `json:"online"`
	LastSeen  *time.Time      `json:"last_seen,omitempty"`
	Hostname  string          `json:"hostname"`
	OS        string          `json:"os"`
	Arch      string          `json:"arch"`
	Version   string          `json:"version"`
	StartedAt int64           `json:"started_at"`
	CPUs      int             `json:"cpus"`
	MemBytes  int64           `json:"mem_bytes"`
	// of the agent: root, cap (may act for other accounts) or user (its own only)
	Mode string `json:"mode,omitempty"`
	// of an enrolled host: pending, active, quarantined, revoked or removed
	Trust    string   `json:"trust,omitempty"`
	Degraded []string `json:"degraded,omitempty"` // what this host lacks, in words
	// what the server holds against its agent, in words: it floods the fabric, and is muted
	Flag string `json:"flag,omitempty"`
}

// HostAddr is an address inside a cloud area.
type HostAddr struct {
	Cloud int    `json:"cloud"`
	IP    string `json:"ip"`
}

// HostPage is a part of all hosts.
type HostPage struct {
	Count int        `json:"count"`
	Hosts []HostInfo `json:"hosts"`
	// RestoredFrom is when the backup was taken that the server's record came from, while hosts wait for
	// ConfirmRestore.
	RestoredFrom *time.Time `json:"restored_from,omitempty"`
}

// Hosts lists a page of at most MaxPage hosts, by cloud and address.
func (c *Client) Hosts(ctx context.Context, start, limit int) (HostPage, error) {
	var p HostPage
	err := c.get(ctx, "/api/v1/hosts", page(start, limit), &p)
	return p, err
}

// Ready tells whether the server accepts operations now.
func (c *Client) Ready(ctx context.Context) error {
	var out struct {
		Status string `json:"status"`
	}
	return c.get(ctx, "/readyz", nil, &out)
}

func page(start, limit int) url.Values {
	return url.Values{"start": {strconv.Itoa(start)}, "limit": {strconv.Itoa(limit)}}
}
