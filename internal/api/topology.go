package api

import (
	"bytes"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
)

type businessesBody struct {
	Count      int            `json:"count"`
	Businesses []businessBody `json:"businesses"`
}

type businessBody struct {
	Biz     int       `json:"biz"`
	Name    string    `json:"name"`
	Version int64     `json:"version"`
	Source  string    `json:"source"` // file or cmdb
	At      time.Time `json:"at"`     // when that version was recorded
}

type applyBody struct {
	Biz     int             `json:"biz"`
	Version int64           `json:"version"` // after it; of what is recorded for a dry run
	DryRun  bool            `json:"dry_run"`
	Applied bool            `json:"applied"` // false: a dry run, or nothing to do
	Plan    planBody        `json:"plan"`
	Hosted  int             `json:"hosted"` // instances that go though they are hosted, which needs prune
	Named   []gozzard.Fault `json:"hosted_instances,omitempty"`
	TaskID  string          `json:"task_id,omitempty"` // of the operation that unregisters them
}

type planBody struct {
	Added   []planItem `json:"added"`
	Changed []planItem `json:"changed"`
	Removed []planItem `json:"removed"`
}

type planItem struct {
	Kind   string   `json:"kind"`
	ID     int      `json:"id"`
	Name   string   `json:"name"`
	Fields []string `json:"fields,omitempty"`
}

type treeBody struct {
	Biz    int        `json:"biz"`
	Name   string     `json:"name"`
	Counts countsBody `json:"counts"`
	Sets   []setBody  `json:"sets"`
}

type setBody struct {
	ID      int          `json:"id"`
	Name    string       `json:"name"`
	Env     int          `json:"env"`
	Counts  countsBody   `json:"counts"`
	Modules []moduleBody `json:"modules"`
}

type moduleBody struct {
	ID              int        `json:"id"`
	Name            string     `json:"name"`
	ServiceTemplate int        `json:"service_template_id,omitempty"`
	Services        int        `json:"services"`
	Counts          countsBody `json:"counts"`
}

// countsBody counts processes; each is running, stopped or unregistered.
type countsBody struct {
	Processes    int `json:"processes"`
	Running      int `json:"running"`
	Stopped      int `json:"stopped"`
	Unregistered int `json:"unregistered"`
	Hosted       int `json:"hosted"`
}

// getBusinesses lists the businesses, by id.
func (a *api) getBusinesses(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	body := businessesBody{Businesses: []businessBody{}}
	for _, h := range a.Plane.Businesses(caller) {
		body.Businesses = append(body.Businesses, businessBody{Biz: h.ID, Name: h.Name, Version: h.Version,
			Source: h.Source, At: h.At.UTC()})
	}

	body.Count = len(body.Businesses)
	return answer(w, http.StatusOK, body)
}

// putTopology makes a business what the document says. With dry_run=true it only tells what would change;
// prune=true also removes processes that are hosted, take_over=true replaces what comes from CMDB, and version=N
// refuses unless that version is recorded now.
func (a *api) putTopology(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "dry_run", "prune", "take_over", "version")
	if err != nil {
		return err
	}

	biz := readBiz(r, q.faults)
	req := record.ApplyRequest{
		Caller: caller, Source: record.SourceFile, DryRun: q.flag("dry_run"), Prune: q.flag("prune"),
		TakeOver: q.flag("take_over"),
	}

	if q.values.Has("version") {
		base := int64(q.number("version", 0, 0, math.MaxInt))
		req.Base = &base
	}

	asJSON, fault := isJSON(r.Header.Get("Content-Type"))
	if fault != "" {
		q.faults.Add("Content-Type", "%s", fault)
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	doc, err := readLongBody(w, r)
	if err != nil {
		return err
	}
	if asJSON {
		if _, err := strictjson.Parse(doc); err != nil { // YAML takes more than JSON allows
			return err
		}
	}

	if req.Business, err = topology.Parse(doc); err != nil {
		return err
	}
	if req.Business.ID != biz {
		text := fmt.Sprintf("is %d in the document and %d in the path", req.Business.ID, biz)
		return &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: "biz", Text: text}}}
	}

	req.Hash = requestHash(r, doc)
	done, err := a.Plane.ApplyTopology(r.Context(), req)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, applyBody{
		Biz: biz, Version: done.Version, DryRun: req.DryRun, Applied: done.Applied, Plan: renderPlan(&done.Plan),
		Hosted: done.Hosted, Named: done.Named, TaskID: taskname.Of(done.Pruned),
	})
}

// getTopology gives the document of a business: YAML if the caller accepts that and not JSON.
func (a *api) getTopology(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}

	biz := readBiz(r, q.faults)

	if err := q.faults.Err(); err != nil {
		return err
	}

	rec, err := a.Plane.Business(r.Context(), caller, biz)
	if err != nil {
		return err
	}

	doc, err := topology.Format(&rec.Business)
	if err != nil {
		return fmt.Errorf("cannot write business %d as a document: %w", biz, err)
	}

	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(rec.Version, 10)))

	if wantsYAML(r.Header.Values("Accept")) {
		sendAs(w, http.StatusOK, "application/yaml; charset=utf-8", doc)
		return nil
	}

	if doc, err = yaml.YAMLToJSON(doc); err != nil {
		return fmt.Errorf("cannot write business %d as JSON: %w", biz, err)
	}

	send(w, http.StatusOK, append(bytes.TrimSpace(doc), '\n'))
	return nil
}

// getTree counts the processes of a business by set and module, as they are now.
func (a *api) getTree(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "env")
	if err != nil {
		return err
	}

	biz := readBiz(r, q.faults)
	env := q.env()

	if err := q.faults.Err(); err != nil {
		return err
	}

	for _, h := range a.Plane.Businesses(caller) {
		if h.ID == biz {
			return answer(w, http.StatusOK, renderTree(h, a.Plane.TopologyTree(caller, biz, env)))
		}
	}

	return unknownBusiness(biz)
}

func unknownBusiness(biz int) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "no business %d is known", biz)
}

// readBiz reads the business of a path.
func readBiz(r *http.Request, f *strictjson.Faults) int {
	text := r.PathValue("biz")
	n, fault := parseBiz(text)
	if fault != "" {
		f.Add("biz", "%s", fault)
	}
	return n
}

func parseBiz(s string) (int, string) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > math.MaxInt32 || strconv.Itoa(n) != s {
		return 0, "must be the number of a business, is " + strconv.Quote(clip(s))
	}
	return n, ""
}

// isJSON reads the type of a document. Without one it is YAML, of which JSON is a part.
func isJSON(contentType string) (yes bool, fault string) {
	if contentType == "" {
		return false, ""
	}
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case kind == "application/json":
		return true, ""
	case isYAML(kind):
		return false, ""
	}
	return false, fmt.Sprintf("must be application/yaml or application/json, is %q", clip(contentType))
}

func isYAML(kind string) bool {
	switch kind {
	case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
		return true
	}
	return false
}

// wantsYAML reports whether a caller names YAML before JSON.
func wantsYAML(accept []string) bool {
	for entry := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, _, err := mime.ParseMediaType(entry)
		switch {
		case err != nil:
		case isYAML(kind):
			return true
		case kind == "application/json", kind == "application/*", kind == "*/*":
			return false
		}
	}
	return false
}

func renderPlan(p *topology.Plan) planBody {
	items := func(list []topology.Item) []planItem {
		out := make([]planItem, 0, len(list))
		for _, it := range list {
			out = append(out, planItem(it))
		}
		return out
	}
	return planBody{Added: items(p.Added), Changed: items(p.Changed), Removed: items(p.Removed)}
}

func renderTree(h record.BusinessHead, sets []index.SetCount) treeBody {
	b := treeBody{Biz: h.ID, Name: h.Name, Sets: []setBody{}}
	for i := range sets {
		s := &sets[i]
		set := setBody{ID: s.ID, Name: s.Name, Env: int(s.Env), Counts: countsBody(s.Counts), Modules: []moduleBody{}}
		for j := range s.Modules {
			m := &s.Modules[j]
			set.Modules = append(set.Modules, moduleBody{
				ID: m.ID, Name: m.Name, ServiceTemplate: m.ServiceTemplate, Services: m.Services,
				Counts: countsBody(m.Counts),
			})
		}
		b.Sets = append(b.Sets, set)
		b.Counts.Processes += s.Processes
		b.Counts.Running += s.Running
		b.Counts.Stopped += s.Stopped
		b.Counts.Unregistered += s.Unregistered
		b.Counts.Hosted += s.Hosted
	}

	return b
}
