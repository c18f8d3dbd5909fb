package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gozzard/gozzard"
)

// Business is a business without its contents.
type Business struct {
	ID      int    `json:"biz"`
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Source  string `json:"source"` // file or cmdb
	At      Time   `json:"at"`     // when this version was recorded

	// Left has a sentence for each thing that CMDB has and that could not be taken over.
	Left []string `json:"left,omitempty"`
}

// BusinessList is every business.
type BusinessList struct {
	Count      int        `json:"count"`
	Businesses []Business `json:"businesses"`
}

// ApplyOptions say how a document is applied.
type ApplyOptions struct {
	DryRun   bool   // only answer what would change
	Prune    bool   // also remove supervised processes: they are unregistered and keep running
	TakeOver bool   // also if the business comes from CMDB
	Version  *int64 // only if this is the recorded version; 0: only if the business is new
}

// Applied is what a document changed, or would change.
type Applied struct {
	Biz     int             `json:"biz"`
	Version int64           `json:"version"` // after the change; the recorded version for a dry run
	DryRun  bool            `json:"dry_run"`
	Applied bool            `json:"applied"` // false for a dry run, and if nothing changed
	Plan    Plan            `json:"plan"`
	Managed int             `json:"managed"`                     // supervised instances that are removed, which needs prune
	Named   []gozzard.Fault `json:"managed_instances,omitempty"` // the first of those instances
	TaskID  string          `json:"task_id,omitempty"`           // of the operation that unregisters them

	Rejected string   `json:"rejected,omitempty"` // why the change would be rejected without dry_run
	Warnings []string `json:"warnings,omitempty"` // what is accepted and will fail later, such as a host that is not in the fleet
}

// Plan is the changes to a business.
type Plan struct {
	Added   []PlanItem `json:"added"`
	Changed []PlanItem `json:"changed"`
	Removed []PlanItem `json:"removed"`
}

// Empty reports whether nothing changes.
func (p *Plan) Empty() bool { return len(p.Added)+len(p.Changed)+len(p.Removed) == 0 }

// PlanItem is one change to a business.
type PlanItem struct {
	Kind   string   `json:"kind"` // for example set, module or process
	ID     int      `json:"id"`
	Name   string   `json:"name"`
	Fields []string `json:"fields,omitempty"` // such as "priority: 1 -> 2"
}

// Tree is a business with counts of its processes.
type Tree struct {
	Biz    int       `json:"biz"`
	Name   string    `json:"name"`
	Counts TreeCount `json:"counts"`
	Sets   []TreeSet `json:"sets"`
}

// TreeSet is a set in a Tree.
type TreeSet struct {
	ID      int          `json:"id"`
	Name    string       `json:"name"`
	Env     int          `json:"env"` // 1 test, 2 experience, 3 formal, -1 none
	Counts  TreeCount    `json:"counts"`
	Modules []TreeModule `json:"modules"`
}

// TreeModule is a module in a TreeSet.
type TreeModule struct {
	ID              int       `json:"id"`
	Name            string    `json:"name"`
	ServiceTemplate int       `json:"service_template_id,omitempty"`
	Services        int       `json:"services"` // service instances
	Counts          TreeCount `json:"counts"`
}

// TreeCount counts processes: each is running, stopped or unregistered.
type TreeCount struct {
	Processes    int `json:"processes"`
	Running      int `json:"running"`
	Stopped      int `json:"stopped"`
	Unregistered int `json:"unregistered"`
	Managed      int `json:"managed"` // those that agents supervise
}

// Businesses lists every business, ordered by id.
func (c *Client) Businesses(ctx context.Context) (BusinessList, error) {
	var list BusinessList
	err := c.get(ctx, "/api/v1/topology", nil, &list)
	return list, err
}

// ApplyTopology replaces a business by a document, in YAML or JSON. A document with a fault changes nothing.
func (c *Client) ApplyTopology(ctx context.Context, biz int, doc []byte, o ApplyOptions) (Applied, error) {
	var out Applied
	err := c.do(ctx, call{method: http.MethodPut, path: o.path(biz), body: doc, kind: "application/yaml"}, &out)
	return out, err
}

// RemoveTopology removes a business. TakeOver has no meaning here: a business from CMDB is not removed.
func (c *Client) RemoveTopology(ctx context.Context, biz int, o ApplyOptions) (Applied, error) {
	var out Applied
	o.TakeOver = false
	err := c.do(ctx, call{method: http.MethodDelete, path: o.path(biz)}, &out)
	return out, err
}

// path is the path of a business with the options as a query.
func (o *ApplyOptions) path(biz int) string {
	v := url.Values{}
	for name, on := range map[string]bool{"dry_run": o.DryRun, "prune": o.Prune, "take_over": o.TakeOver} {
		if on {
			v.Set(name, "true")
		}
	}

	if o.Version != nil {
		v.Set("version", strconv.FormatInt(*o.Version, 10))
	}

	if len(v) == 0 {
		return businessPath(biz)
	}
	return businessPath(biz) + "?" + v.Encode()
}

// Topology reads the document of a business, as YAML.
func (c *Client) Topology(ctx context.Context, biz int) ([]byte, error) {
	return c.send(ctx, call{method: http.MethodGet, path: businessPath(biz), accept: "application/yaml"})
}

// TopologyJSON reads the document of a business, as JSON.
func (c *Client) TopologyJSON(ctx context.Context, biz int) (json.RawMessage, error) {
	var doc json.RawMessage
	err := c.get(ctx, businessPath(biz), nil, &doc)
	return doc, err
}

// Tree counts the processes of a business by set and module. An empty env means all.
func (c *Client) Tree(ctx context.Context, biz int, env string) (Tree, error) {
	v := url.Values{}
	if env != "" {
		v.Set("env", env)
	}
	var t Tree
	err := c.get(ctx, businessPath(biz)+"/tree", v, &t)
	return t, err
}

func businessPath(biz int) string { return fmt.Sprintf("/api/v1/topology/%d", biz) }
