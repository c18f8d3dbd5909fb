package api

import (
	"bytes"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
	"github.com/gozzard/gozzard/internal/topology"
)

// getBusinesses lists the businesses, ordered by id.
func (a *api) getBusinesses(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	if err := a.noQuery(r); err != nil {
		return err
	}

	list := client.BusinessList{Businesses: []client.Business{}}
	for _, h := range a.Plane.Businesses(caller) {
		list.Businesses = append(list.Businesses, client.Business{ID: h.ID, Name: h.Name, Version: h.Version,
			Source: h.Source, At: client.At(h.At), Left: h.Left})
	}

	list.Count = len(list.Businesses)
	return answer(w, http.StatusOK, list)
}

// putTopology replaces a business by a topology document.
func (a *api) putTopology(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query and the headers.
	q, err := a.readQuery(r)
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

	// Read the document.
	doc, err := readBody(w, r, maxTopologyBody)
	if err != nil {
		return err
	}
	if req.Business, err = parseTopology(doc, asJSON, biz); err != nil {
		return err
	}

	// Apply it.
	req.Hash, req.Size = requestHash(r, doc), len(doc)
	done, err := a.Plane.ApplyTopology(r.Context(), req)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderApplied(biz, &req, &done))
}

// deleteTopology removes a business, under the same rules as a document that has nothing in it.
func (a *api) deleteTopology(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	biz := readBiz(r, q.faults)
	req := record.ApplyRequest{
		Caller: caller, Source: record.SourceRemoved, DryRun: q.flag("dry_run"), Prune: q.flag("prune"),
		Business: &topology.Business{ID: biz}, Hash: requestHash(r, nil),
	}
	if q.values.Has("version") {
		base := int64(q.number("version", 0, 0, math.MaxInt))
		req.Base = &base
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	done, err := a.Plane.ApplyTopology(r.Context(), req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, renderApplied(biz, &req, &done))
}

func renderApplied(biz int, req *record.ApplyRequest, done *record.ApplyAnswer) client.Applied {
	return client.Applied{
		Biz: biz, Version: done.Version, DryRun: req.DryRun, Applied: done.Applied, Plan: renderPlan(&done.Plan),
		Managed: done.Hosted, Named: done.Named, TaskID: taskname.Of(done.Pruned),
		Rejected: done.Rejected, Warnings: done.Warnings,
	}
}

// parseTopology parses the document of a business.
func parseTopology(doc []byte, asJSON bool, biz int) (*topology.Business, error) {
	if asJSON {
		if _, err := strictjson.Parse(doc); err != nil { // YAML accepts more than JSON allows
			return nil, err
		}
	}

	b, err := topology.Parse(doc, topology.Flat{Names: specjson.FlatNames(), Read: specjson.ReadProcess})
	if err != nil {
		return nil, err
	}
	if b.ID != biz {
		text := fmt.Sprintf("is %d in the document and %d in the path", b.ID, biz)
		return nil, &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: "biz", Text: text}}}
	}

	return b, nil
}

// getTopology reads the document of a business, in YAML if the caller accepts that and not JSON.
func (a *api) getTopology(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Find the business.
	q, err := a.readQuery(r)
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

	// Write its document.
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

func unknownBusiness(biz int) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "no business %d is known", biz)
}

// readBiz reads the id of a business from the path.
func readBiz(r *http.Request, f *strictjson.Faults) int {
	n, fault := parseBiz(r.PathValue("biz"))
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

// isJSON reports whether a document is JSON, by its media type. Without a type it is YAML, which includes JSON.
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

// wantsYAML reports whether an Accept header has YAML before JSON.
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

func renderPlan(p *topology.Plan) client.Plan {
	items := func(list []topology.Item) []client.PlanItem {
		out := make([]client.PlanItem, 0, len(list))
		for _, it := range list {
			out = append(out, client.PlanItem(it))
		}
		return out
	}
	return client.Plan{Added: items(p.Added), Changed: items(p.Changed), Removed: items(p.Removed)}
}
