package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
)

// Host names a host: by its agent, or by its address. Without a cloud the address must be known in one cloud only.
type Host struct {
	Agent gozzard.AgentID `json:"agent,omitempty"`
	Cloud *int            `json:"cloud,omitempty"`
	IP    string          `json:"ip,omitempty"`
}

// Selection says which processes are meant. Namespace and names may be patterns with * and ?; an empty namespace is
// any. Hosts are listed, or All is set for every host that has the process. With a Scope processes of a business
// are meant: Names (aliases then) and Hosts may narrow them, Namespace and All are not for it.
type Selection struct {
	Scope
	Namespace string   `json:"namespace,omitempty"`
	Names     []string `json:"names,omitempty"`
	Hosts     []Host   `json:"hosts,omitempty"`
	All       bool     `json:"all,omitempty"`
}

// Offline says what becomes of hosts that are offline: by default they fail at once, with Wait the operation waits
// for them that long.
type Offline struct {
	Wait time.Duration
}

func (o Offline) fields() (when string, seconds int) {
	if o.Wait <= 0 {
		return "", 0
	}
	return "wait", int((o.Wait + time.Second - 1) / time.Second)
}

// Operation asks for an action: start, stop, restart, reload, kill, host, unhost or query.
type Operation struct {
	Action string
	Selection
	Offline        Offline
	Confirm        int    // how many processes are meant to go down; needed for many, see the server's limits
	IdempotencyKey string // drawn when empty
}

// Registration defines a process on hosts. Spec is in the words of the API: identity, control, resource,
// monitor_policy.
type Registration struct {
	Namespace      string
	Name           string
	Labels         map[string]string
	Hosts          []Host
	All            bool
	Spec           Spec
	Offline        Offline
	IdempotencyKey string
}

// Spec is a definition. Fields of Policy that are nil get the server's defaults; 0 means 0.
type Spec struct {
	Identity gozzard.Identity `json:"identity"`
	Control  gozzard.Control  `json:"control"`
	Resource gozzard.Resource `json:"resource"`
	Policy   Policy           `json:"monitor_policy"`
}

// Policy says how a process is watched.
type Policy struct {
	Kind           *int   `json:"auto_type,omitempty"` // 0 periodic, 1 resident, 2 one-shot
	StartCheckSecs *int   `json:"start_check_secs,omitempty"`
	StopCheckSecs  *int   `json:"stop_check_secs,omitempty"`
	StartRetries   *int   `json:"start_retries,omitempty"`
	StartInterval  *int   `json:"start_interval,omitempty"`
	OpTimeout      *int   `json:"op_timeout,omitempty"`
	CrontabRule    string `json:"crontab_rule,omitempty"`
}

// Accepted is a recorded task: from now on every one of its targets reaches a verdict.
type Accepted struct {
	TaskID  string `json:"task_id"`
	Targets int    `json:"targets"`
}

// Operate has processes started, stopped or otherwise driven.
func (c *Client) Operate(ctx context.Context, op Operation) (Accepted, error) {
	when, seconds := op.Offline.fields()
	return c.change(ctx, http.MethodPost, "/api/v1/operations", op.IdempotencyKey, struct {
		Action string `json:"action"`
		Selection
		WhenOffline string `json:"when_offline,omitempty"`
		WaitSeconds int    `json:"wait_seconds,omitempty"`
		Confirm     int    `json:"confirm,omitempty"`
	}{op.Action, op.Selection, when, seconds, op.Confirm})
}

// Register defines a process on hosts, or replaces its definition there.
func (c *Client) Register(ctx context.Context, r Registration) (Accepted, error) {
	when, seconds := r.Offline.fields()
	return c.change(ctx, http.MethodPut, "/api/v1/processes", r.IdempotencyKey, struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels,omitempty"`
		Hosts       []Host            `json:"hosts,omitempty"`
		All         bool              `json:"all,omitempty"`
		Spec        Spec              `json:"spec"`
		WhenOffline string            `json:"when_offline,omitempty"`
		WaitSeconds int               `json:"wait_seconds,omitempty"`
	}{r.Namespace, r.Name, r.Labels, r.Hosts, r.All, r.Spec, when, seconds})
}

// RegisterDocument is Register with the JSON text of the request, for documents that people write: the server names
// all faults with their places.
func (c *Client) RegisterDocument(ctx context.Context, doc []byte) (Accepted, error) {
	return c.change(ctx, http.MethodPut, "/api/v1/processes", "", json.RawMessage(doc))
}

// Unregister makes hosts forget processes. What runs goes on running.
func (c *Client) Unregister(ctx context.Context, s Selection) (Accepted, error) {
	return c.change(ctx, http.MethodDelete, "/api/v1/processes", "", s)
}
