package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
)

// HostInfo is one host, as its agent last reported it.
type HostInfo struct {
	Agent     gozzard.AgentID `json:"agent"`
	Addrs     []HostAddr      `json:"addrs"`
	Online    bool            `json:"online"`
	LastSeen  Time            `json:"last_seen,omitzero"`
	Hostname  string          `json:"hostname"`
	OS        string          `json:"os"`
	Arch      string          `json:"arch"`
	Version   string          `json:"version"`    // of the agent
	StartedAt Time            `json:"started_at"` // of the agent; null when not known
	CPUs      int             `json:"cpus"`
	MemBytes  int64           `json:"mem_bytes"`
	// account of the agent: root, cap (may act for other accounts) or user (its own account only)
	Mode     string   `json:"mode,omitempty"`
	Degraded []string `json:"degraded,omitempty"` // features that this host does not have, one sentence each
	// SHA-256 of the policy of the host, and behind a slash of its release key, if it has one
	PolicyDigest string `json:"policy_digest,omitempty"`
	// account of commands whose definition names none; without one the host runs no such command
	DefaultAccount string `json:"default_account,omitempty"`
	// of an enrolled host: pending, active, quarantined, restored, revoked or removed
	Trust string `json:"trust,omitempty"`
	// of the clock of the host: seconds ahead of the server's clock, negative behind; missing when it is not known
	ClockSkew *float64 `json:"clock_skew,omitempty"`
	// average of the last minute divided by the number of processors; missing when it is not known
	Load *float64 `json:"load,omitempty"`
	// memory that programs could still get, in bytes; missing when it is not known
	MemFree *int64 `json:"mem_free,omitempty"`
	Flag    string `json:"flag,omitempty"` // why the server limits this agent, for example because it sends too much
}

// MaxClockSkew is the difference between the clocks of a host and of the server, in seconds, from which on the program
// warns: schedules run at another time than people expect, and events and logs do not fit together.
const MaxClockSkew = 5

// ForgottenHost is what the server took away with a host that left the fleet.
type ForgottenHost struct {
	Agent      gozzard.AgentID `json:"agent"`
	Processes  int             `json:"processes"`  // that were removed with their definitions
	Operations int             `json:"operations"` // that waited for the host or its answer, and have their verdicts now
}

// HostRestartRequest is the body of POST /api/v1/hosts/restart.
type HostRestartRequest struct {
	Hosts       []Host `json:"hosts"`
	Version     string `json:"version,omitempty"`      // that the agents must have; any when missing
	WaitSeconds *int   `json:"wait_seconds,omitempty"` // for operations in progress, up to 3600; 30 when missing
	Force       bool   `json:"force,omitempty"`        // do not wait: operations in progress are interrupted
	Remark      string `json:"remark,omitempty"`       // why, for the log of the hosts; at most 1000 bytes
	Confirm     int    `json:"confirm,omitempty"`      // how many hosts are expected; needed when there are many
}

// HostRestart restarts the agents of hosts.
type HostRestart struct {
	Hosts   []Host
	Version string        // that the agents must have; "" means any
	Wait    time.Duration // for operations in progress
	Force   bool          // do not wait: operations in progress are interrupted
	Remark  string
	Confirm int // on how many hosts; the server requires it for many
}

// HostAddr is an address inside a cloud area.
type HostAddr struct {
	Cloud int    `json:"cloud"`
	IP    string `json:"ip"`
}

// HostRef is the one form of a host in answers: its agent, and the address by which it is known. A part that is not
// known is "".
type HostRef struct {
	Agent gozzard.AgentID `json:"agent"`
	Cloud int             `json:"cloud"`
	IP    string          `json:"ip"`
}

// HostPage is one page of the hosts.
type HostPage struct {
	Count int        `json:"count"` // all hosts, not only those on this page
	Hosts []HostInfo `json:"hosts"`
	// when the backup was taken that the server was restored from, until ConfirmRestore
	RestoredFrom Time `json:"restored_from,omitzero"`
}

// RestartHosts restarts the agents of hosts, as a task. Their processes keep running.
func (c *Client) RestartHosts(ctx context.Context, h HostRestart) (Accepted, error) {
	seconds := int(h.Wait / time.Second)
	return c.change(ctx, http.MethodPost, "/api/v1/hosts/restart", "", HostRestartRequest{Hosts: h.Hosts, Version: h.Version,
		WaitSeconds: &seconds, Force: h.Force, Remark: h.Remark, Confirm: h.Confirm})
}

// Hosts lists a page of at most MaxPage hosts, ordered by cloud and address.
func (c *Client) Hosts(ctx context.Context, start, limit int) (HostPage, error) {
	var p HostPage
	err := c.get(ctx, "/api/v1/hosts", page(start, limit), &p)
	return p, err
}

// ForgetHost takes away a host that will never come back, with its processes and their definitions.
func (c *Client) ForgetHost(ctx context.Context, agent gozzard.AgentID) (out ForgottenHost, err error) {
	err = c.write(ctx, http.MethodDelete, "/api/v1/hosts/"+url.PathEscape(string(agent)), nil, &out)
	return out, err
}

// Health is the answer of the routes for health checks.
type Health struct {
	Status string `json:"status"` // ok, ready or not ready
	// why the server is not ready, or what an admin of a ready server must look at
	Detail string `json:"detail,omitempty"`
}

// Ready reports whether the server accepts operations now: a nil error means yes.
func (c *Client) Ready(ctx context.Context) error {
	var out Health
	return c.get(ctx, "/readyz", nil, &out)
}
