package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// ConfigTemplate is a template of a configuration file.
type ConfigTemplate struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	FileName   string `json:"file_name"` // a template, as the content is
	Folder     string `json:"folder"`    // a template
	Owner      string `json:"owner"`
	Group      string `json:"group"`
	Mode       string `json:"mode"`
	LineEnds   string `json:"line_ends"` // lf or crlf
	Bound      int    `json:"bound"`     // processes and process templates that it is bound to
	Ready      bool   `json:"ready"`     // it has a version that can be released
	Released   bool   `json:"released"`  // a host has a file of it
	InDocument bool   `json:"in_document"`
	Updated    Time   `json:"updated_at"`
	UpdatedBy  string `json:"updated_by"`
}

// ConfigTemplates is every template of a business.
type ConfigTemplates struct {
	Count     int              `json:"count"`
	Templates []ConfigTemplate `json:"templates"`
}

// ConfigBind is what a template is bound to.
type ConfigBind struct {
	Processes []int `json:"processes,omitempty"` // ids of processes without a process template
	Templates []int `json:"templates,omitempty"` // ids of process templates
}

// ConfigVersion is a version of a template.
type ConfigVersion struct {
	ID          int64  `json:"id"`
	Description string `json:"description"`
	State       string `json:"state"` // active, draft or former
	Size        int    `json:"size"`
	Updated     Time   `json:"updated_at"`
	UpdatedBy   string `json:"updated_by"`
}

// ConfigTemplateDetail is a template with its content, its versions and what it is bound to.
type ConfigTemplateDetail struct {
	ConfigTemplate
	Bind     ConfigBind      `json:"bind"`
	Content  string          `json:"content"`  // of the active version
	Versions []ConfigVersion `json:"versions"` // the newest first
}

// ConfigRequest is the body of PUT /api/v1/config/templates. The template is found by its name.
type ConfigRequest struct {
	Biz          int         `json:"biz"`
	Name         string      `json:"name"`
	FileName     string      `json:"file_name"`
	Folder       string      `json:"folder"`
	Owner        string      `json:"owner"`
	Group        string      `json:"group"`
	Mode         string      `json:"mode,omitempty"`      // octal digits; 0644 when missing
	LineEnds     string      `json:"line_ends,omitempty"` // lf or crlf; lf when missing
	Content      string      `json:"content"`
	Description  string      `json:"description,omitempty"`   // of a new version
	Bind         *ConfigBind `json:"bind,omitempty"`          // as it is when missing
	ReplaceDraft bool        `json:"replace_draft,omitempty"` // a draft that exists becomes the new version
	DryRun       bool        `json:"dry_run,omitempty"`
}

// ConfigApplied is what a request changed, or would change.
type ConfigApplied struct {
	Template int64    `json:"template"` // 0: it would be new
	Version  int64    `json:"version"`  // the active one; 0: it would be new
	DryRun   bool     `json:"dry_run"`
	New      bool     `json:"new"`
	Changes  []string `json:"changes"`            // nothing: it is as the request says
	Warnings []string `json:"warnings,omitempty"` // why a release would fail
}

// ConfigRenderRequest is the body of POST /api/v1/config/render.
type ConfigRenderRequest struct {
	Biz      int     `json:"biz"`
	Template int64   `json:"template"`
	Process  int     `json:"process"`
	Instance int     `json:"instance,omitempty"` // within the process; 1 when missing
	Content  *string `json:"content,omitempty"`  // that of the active version when missing
}

// ConfigRendered is a file as a release would write it.
type ConfigRendered struct {
	Host     HostRef `json:"host"`
	Path     string  `json:"path"`
	Owner    string  `json:"owner"`
	Group    string  `json:"group"`
	Mode     string  `json:"mode"`
	SHA256   string  `json:"sha256"`
	Content  string  `json:"content"`
	Instance int     `json:"instance"` // within the module
}

// ConfigJobRequest is the body of POST /api/v1/config/jobs. It chooses processes of a business as an operation does.
type ConfigJobRequest struct {
	Work      string  `json:"work"`                // generate, release, diff or rollback
	Templates []int64 `json:"templates,omitempty"` // all that are bound when missing
	Version   int64   `json:"version,omitempty"`   // of the one template that is rolled back
	Force     bool    `json:"force,omitempty"`     // release also files that were changed on their hosts
	Then      string  `json:"then,omitempty"`      // reload or restart the instances that get another file
	Confirm   int     `json:"confirm,omitempty"`   // how many processes are expected; required to release many
	BusinessSelection
	Names   []string `json:"names,omitempty"`   // aliases
	Rollout *Rollout `json:"rollout,omitempty"` // release from batch to batch; all hosts at once when missing
}

// Rollout says how a release goes on from host to host.
type Rollout struct {
	Batch     int `json:"batch"`                   // hosts at a time
	Watch     int `json:"watch_seconds,omitempty"` // how long each batch is watched before the next one begins
	MaxFailed int `json:"max_failed,omitempty"`    // process instances that may fail before the rest is left as it is
}

// ConfigStopRequest is the body of POST /api/v1/config/jobs/{job}/stop.
type ConfigStopRequest struct {
	Biz int `json:"biz"`
}

// ConfigJob is work on the files of process instances.
type ConfigJob struct {
	ID        int64          `json:"id"`
	Work      string         `json:"work"`
	Templates []int64        `json:"templates"`         // empty: all that were bound
	Version   int64          `json:"version,omitempty"` // of a rollback
	Then      string         `json:"then,omitempty"`    // what follows a release: reload or restart
	Rollout   *Rollout       `json:"rollout,omitempty"` // of a release that goes from batch to batch
	Stopped   bool           `json:"stopped,omitempty"` // somebody has stopped it
	State     string         `json:"state"`             // pending, running, succeeded or failed
	Message   string         `json:"message,omitempty"`
	User      string         `json:"user"`
	App       string         `json:"app"`
	Started   Time           `json:"started_at"`
	Ended     Time           `json:"ended_at,omitzero"`
	Tasks     map[string]int `json:"tasks,omitempty"` // how many are in each state
}

// Done reports whether the job has ended.
func (j *ConfigJob) Done() bool { return j.State == "succeeded" || j.State == "failed" }

// ConfigJobs is a page of jobs, the newest first.
type ConfigJobs struct {
	Count int         `json:"count"`
	Jobs  []ConfigJob `json:"jobs"`
}

// ConfigTask is the work on the files of one process instance.
type ConfigTask struct {
	Process  int        `json:"process"`
	Name     string     `json:"name"`
	Instance int        `json:"instance"` // within the process
	Host     HostRef    `json:"host"`
	State    string     `json:"state"`
	Reason   string     `json:"reason,omitempty"`
	Message  string     `json:"message,omitempty"`
	Files    []ConfigOf `json:"files"`
}

// ConfigOf is what a task did with one file.
type ConfigOf struct {
	Template string `json:"template"`
	Version  int64  `json:"version,omitempty"`
	Path     string `json:"path"`
	SHA256   string `json:"sha256"`
	Live     string `json:"live,omitempty"`    // the sha256 on the host, if it differs
	Changed  bool   `json:"changed,omitempty"` // the host got another file
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

// ConfigJobDetail is a job with its tasks.
type ConfigJobDetail struct {
	ConfigJob
	List []ConfigTask `json:"list"`
}

func ofBusiness(biz int) url.Values { return url.Values{"biz": {strconv.Itoa(biz)}} }

// ConfigTemplates lists the templates of a business.
func (c *Client) ConfigTemplates(ctx context.Context, biz int) (out ConfigTemplates, err error) {
	return out, c.get(ctx, "/api/v1/config/templates", ofBusiness(biz), &out)
}

// ConfigTemplate reads one template.
func (c *Client) ConfigTemplate(ctx context.Context, biz int, id int64) (out ConfigTemplateDetail, err error) {
	return out, c.get(ctx, fmt.Sprintf("/api/v1/config/templates/%d", id), ofBusiness(biz), &out)
}

// ApplyConfig makes a template what a request says.
func (c *Client) ApplyConfig(ctx context.Context, r ConfigRequest) (out ConfigApplied, err error) {
	return out, c.write(ctx, http.MethodPut, "/api/v1/config/templates", r, &out)
}

// RemoveConfig removes a template and its bindings.
func (c *Client) RemoveConfig(ctx context.Context, biz int, id int64) error {
	return c.write(ctx, http.MethodDelete, fmt.Sprintf("/api/v1/config/templates/%d?biz=%d", id, biz), nil, nil)
}

// RenderConfig renders the file of a template for one process instance.
func (c *Client) RenderConfig(ctx context.Context, r ConfigRenderRequest) (out ConfigRendered, err error) {
	return out, c.write(ctx, http.MethodPost, "/api/v1/config/render", r, &out)
}

// CreateConfigJob starts work on files.
func (c *Client) CreateConfigJob(ctx context.Context, r ConfigJobRequest) (out ConfigJob, err error) {
	return out, c.write(ctx, http.MethodPost, "/api/v1/config/jobs", r, &out)
}

// StopConfigJob ends a job early: what has begun is completed, the rest is left as it is.
func (c *Client) StopConfigJob(ctx context.Context, biz int, id int64) (out ConfigJob, err error) {
	return out, c.write(ctx, http.MethodPost, fmt.Sprintf("/api/v1/config/jobs/%d/stop", id), ConfigStopRequest{Biz: biz}, &out)
}

// ConfigJobs lists the jobs of a business, the newest first: all, or with a template those that name it or none.
func (c *Client) ConfigJobs(ctx context.Context, biz int, template int64, start, limit int) (out ConfigJobs, err error) {
	q := url.Values{"biz": {strconv.Itoa(biz)}, "start": {strconv.Itoa(start)}, "limit": {strconv.Itoa(limit)}}
	if template != 0 {
		q.Set("template", strconv.FormatInt(template, 10))
	}
	return out, c.get(ctx, "/api/v1/config/jobs", q, &out)
}

// ConfigJob reads a job with its tasks.
func (c *Client) ConfigJob(ctx context.Context, biz int, id int64) (out ConfigJobDetail, err error) {
	return out, c.get(ctx, fmt.Sprintf("/api/v1/config/jobs/%d", id), ofBusiness(biz), &out)
}
