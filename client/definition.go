package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gozzard/gozzard"
)

// Registration defines a process on hosts.
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

// RegisterRequest is the body of PUT /api/v1/processes. Instead of spec, or beside it, the body may have the flat keys that
// GET /api/v1/definition.schema.json describes.
type RegisterRequest struct {
	Namespace string            `json:"namespace,omitempty"` // "default" when missing
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Hosts     []Host            `json:"hosts,omitempty"`
	All       bool              `json:"all,omitempty"`
	Spec      Spec              `json:"spec,omitzero"`
	DryRun    bool              `json:"dry_run,omitempty"` // answer with a Preview, and do nothing
	// Expect are the digests of the definitions that the request may replace. If a recorded one has another digest, the
	// request is a conflict. An empty list: nothing may be recorded yet. Missing: everything is replaced.
	Expect []string `json:"expect,omitzero"`
	OfflineRequest
}

// Spec is a definition: how to start, stop, check and limit a process. Fields of Policy that are nil get the server's
// defaults; 0 means 0.
type Spec struct {
	Identity gozzard.Identity `json:"identity"`
	Control  gozzard.Control  `json:"control,omitzero"`
	Resource gozzard.Resource `json:"resource,omitzero"`
	Policy   Policy           `json:"monitor_policy,omitzero"`

	Report    *ReportPolicy         `json:"warn_report_policy,omitempty"`
	ConfigMap []gozzard.ConfigCheck `json:"configmap,omitempty"`
}

// ReportPolicy has the id under which other systems know the reports of a process. It is stored and returned.
type ReportPolicy struct {
	ID int64 `json:"report_id"`
}

// Policy says how the agent supervises a process.
type Policy struct {
	Kind           *int   `json:"auto_type,omitempty"` // 0 periodic, 1 resident, 2 one-shot
	StartCheckSecs *int   `json:"start_check_secs,omitempty"`
	StopCheckSecs  *int   `json:"stop_check_secs,omitempty"`
	StartRetries   *int   `json:"start_retries,omitempty"`
	StartInterval  *int   `json:"start_interval,omitempty"` // seconds
	OpTimeout      *int   `json:"op_timeout,omitempty"`     // seconds
	CrontabRule    string `json:"crontab_rule,omitempty"`

	TimeZone string          `json:"time_zone,omitempty"` // of crontab_rule; empty means the host's
	Overlap  gozzard.Overlap `json:"overlap,omitempty"`   // skip (the default) or kill: if the last run has not ended

	// kill (the default) or wait: what happens to the other processes of a supervised process whose main process ended
	Orphans gozzard.Orphans `json:"orphans,omitempty"`

	HealthInterval  *int `json:"health_interval,omitempty"`  // seconds; 30 when missing
	HealthTimeout   *int `json:"health_timeout,omitempty"`   // seconds; 10 when missing
	HealthThreshold *int `json:"health_threshold,omitempty"` // failures in a row; 3 when missing
	HealthRestart   bool `json:"health_restart,omitempty"`   // restart a supervised process that fails its check
}

// Register defines a process on hosts, or replaces its definition there.
func (c *Client) Register(ctx context.Context, r Registration) (Accepted, error) {
	return c.change(ctx, http.MethodPut, "/api/v1/processes", r.IdempotencyKey, RegisterRequest{
		Namespace: r.Namespace, Name: r.Name, Labels: r.Labels, Hosts: r.Hosts, All: r.All, Spec: r.Spec,
		OfflineRequest: r.Offline.request()})
}

// RegisterDocument is Register with the JSON text of the request, for documents that people write: the server names
// every fault with its place.
func (c *Client) RegisterDocument(ctx context.Context, doc []byte) (Accepted, error) {
	return c.change(ctx, http.MethodPut, "/api/v1/processes", "", json.RawMessage(doc))
}

// Definition is the recorded definition of a process on a host.
type Definition struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Document is the definition in the form that can be registered again. What has its default is left out.
	Document     json.RawMessage `json:"document"`
	RegisteredAt Time            `json:"registered_at"` // the first time; Origin has the last change
	// Digest changes with the definition and its labels, for RegisterRequest.Expect.
	Digest string `json:"digest"`
	// Origin is what brought the definition as it is now. Missing: the server does not know it any more.
	Origin *DefinitionOrigin `json:"origin,omitempty"`
	// Defaults are the paths of the values in Effective that the definition does not say, such as restart.delay.
	Defaults []string `json:"defaults,omitempty"`
	// Effective is the definition with its defaults filled in. Missing unless it was asked for.
	Effective json.RawMessage `json:"effective,omitempty"`
}

// DefinitionOrigin is what brought a definition. App, User and Task are only there for callers that may change the
// definition.
type DefinitionOrigin struct {
	At   Time   `json:"at"`
	Door string `json:"door"` // api, topology (a business document), or the API of BlueKing, such as gse or job.operate_proc
	App  string `json:"app,omitempty"`
	User string `json:"user,omitempty"`
	Task string `json:"task,omitempty"` // its id
}

// DefinitionText is a definition as YAML or JSON text that a person types, or as a document. One of them is given.
type DefinitionText struct {
	Text     string          `json:"text,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
}

// ParsedDefinition is a definition as document and as YAML, with its faults. Document is missing if the text is not YAML.
type ParsedDefinition struct {
	Document json.RawMessage   `json:"document,omitempty"`
	Text     string            `json:"text"`
	Faults   []DefinitionFault `json:"faults"`
}

// DefinitionFault is a fault with its place. Path is empty for a text that is not YAML.
type DefinitionFault struct {
	Path string `json:"path"`
	Text string `json:"text"`
	Line int    `json:"line"` // from 1; 0 in a document
}

// ParseDefinition reads a definition as the server would, and registers nothing.
func (c *Client) ParseDefinition(ctx context.Context, d DefinitionText) (out ParsedDefinition, err error) {
	body, err := json.Marshal(d)
	if err != nil {
		return out, fmt.Errorf("cannot encode the definition: %w", err)
	}
	return out, c.do(ctx, call{method: http.MethodPost, path: "/api/v1/definitions/parse", body: body}, &out)
}

// DefinitionPage is one page of the definitions that match.
type DefinitionPage struct {
	Count       int          `json:"count"` // all processes that match, not only those on this page
	Definitions []Definition `json:"definitions"`
	Next        int          `json:"next,omitempty"` // start of the next page; missing or 0: this is the last page
}

// Definitions lists a page of at most MaxPage definitions.
func (c *Client) Definitions(ctx context.Context, q ProcessQuery, start, limit int) (DefinitionPage, error) {
	var p DefinitionPage
	err := c.get(ctx, "/api/v1/definitions", q.values(start, limit), &p)
	return p, err
}

// EffectiveDefinitions is Definitions with the defaults filled in.
func (c *Client) EffectiveDefinitions(ctx context.Context, q ProcessQuery, start, limit int) (DefinitionPage, error) {
	var p DefinitionPage
	v := q.values(start, limit)
	v.Set("effective", "true")
	err := c.get(ctx, "/api/v1/definitions", v, &p)
	return p, err
}
