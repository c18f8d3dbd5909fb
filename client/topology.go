package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// Scope chooses processes by where they are in a business. It is empty while Biz is 0.
type Scope struct {
	Biz     int      `json:"biz,omitempty"`
	Env     string   `json:"env,omitempty"`     // 1 or test, 2 or experience, 3 or formal; "" is all
	Sets    []string `json:"sets,omitempty"`    // ids, or names
	Modules []string `json:"modules,omitempty"` // ids, or names
	// set.module.service_instance.process_name.process_id; a dot in a name is written \.
	Expression string `json:"expression,omitempty"`
}

func (s *Scope) add(v url.Values) {
	if s.Biz != 0 {
		v.Set("biz", strconv.Itoa(s.Biz))
	}
	if s.Env != "" {
		v.Set("env", s.Env)
	}

	for _, set := range s.Sets {
		v.Add("set", set)
	}

	for _, m := range s.Modules {
		v.Add("module", m)
	}

	if s.Expression != "" {
		v.Set("expression", s.Expression)
	}
}

// Place is where in its business an instance of a process is.
type Place struct {
	Biz         int    `json:"biz"`
	Set         int    `json:"set"`
	SetName     string `json:"set_name"`
	Env         int    `json:"env"`
	Module      int    `json:"module"`
	ModuleName  string `json:"module_name"`
	Service     int    `json:"service"`
	ServiceName string `json:"service_name"`
	Process     int    `json:"process"`
	Alias       string `json:"alias"`
	Local       int    `json:"local_inst_id"`
	Inst        int    `json:"inst_id"`
	Priority    int    `json:"priority"`
}

// Business is a business without its contents.
type Business struct {
	ID      int       `json:"biz"`
	Name    string    `json:"name"`
	Version int64     `json:"version"`
	Source  string    `json:"source"` // file or cmdb
	At      time.Time `json:"at"`
}

// BusinessList is all businesses.
type BusinessList struct {
	Count      int        `json:"count"`
	Businesses []Business `json:"businesses"`
}

// ApplyOptions say how a document is applied.
type ApplyOptions struct {
	DryRun   bool   // only tell what would change
	Prune    bool   // also remove processes that are hosted: they are unregistered and left running
	TakeOver bool   // also when the business comes from CMDB
	Version  *int64 // only if this version is recorded; 0: none is
}

// Applied tells what a document changed, or would.
type Applied struct {
	Biz     int   `json:"biz"`
	Version int64 `json:"version"`
	DryRun  bool  `json:"dry_run"`
	Applied bool  `json:"applied"` // false: a dry run, or nothing to do
	Plan    Plan  `json:"plan"`
	// instances that go though they are hosted, which needs Prune
	Hosted int             `json:"hosted"`
	Named  []gozzard.Fault `json:"hosted_instances,omitempty"` // the first of those
	TaskID string          `json:"task_id,omitempty"`          // of the operation that unregisters them
}

// Plan is what changes in a business.
type Plan struct {
	Added   []PlanItem `json:"added"`
	Changed []PlanItem `json:"changed"`
	Removed []PlanItem `json:"removed"`
}

// Empty reports whether nothing changes.
func (p *Plan) Empty() bool { return len(p.Added)+len(p.Changed)+len(p.Removed) == 0 }

// PlanItem is one thing that changes.
type PlanItem struct {
	Kind   string   `json:"kind"`
	ID     int      `json:"id"`
	Name   string   `json:"name"`
	Fields []string `json:"fields,omitempty"` // such as "priority: 1 -> 2"
}

// Tree is a business with the numbers of its processes.
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
	Env     int          `json:"env"`
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
	Hosted       int `json:"hosted"`
}

// Businesses lists all businesses, by id.
func (c *Client) Businesses(ctx context.Context) (BusinessList, error) {
	var list BusinessList
	err := c.get(ctx, "/api/v1/topology", nil, &list)
	return list, err
}

// ApplyTopology makes a business what a document says, YAML or JSON. Nothing is done unless all of it is right.
func (c *Client) ApplyTopology(ctx context.Context, biz int, doc []byte, o ApplyOptions) (Applied, error) {
	v := url.Values{}
	for name, on := range map[string]bool{"dry_run": o.DryRun, "prune": o.Prune, "take_over": o.TakeOver} {
		if on {
			v.Set(name, "true")
		}
	}

	if o.Version != nil {
		v.Set("version", strconv.FormatInt(*o.Version, 10))
	}

	path := businessPath(biz)

	if len(v) > 0 {
		path += "?" + v.Encode()
	}

	var out Applied
	err := c.do(ctx, call{method: http.MethodPut, path: path, body: doc, kind: "application/yaml"}, &out)
	return out, err
}

// Topology gives the document of a business, as YAML.
func (c *Client) Topology(ctx context.Context, biz int) ([]byte, error) {
	return c.send(ctx, call{method: http.MethodGet, path: businessPath(biz), accept: "application/yaml"})
}

// TopologyJSON is Topology as JSON.
func (c *Client) TopologyJSON(ctx context.Context, biz int) (json.RawMessage, error) {
	var doc json.RawMessage
	err := c.get(ctx, businessPath(biz), nil, &doc)
	return doc, err
}

// Tree counts the processes of a business by set and module, as they are now; env "" is all.
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
