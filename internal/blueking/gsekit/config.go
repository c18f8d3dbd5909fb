package gsekit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

type configPage struct {
	Count int          `json:"count"`
	List  []configInfo `json:"list"`
}

// configInfo is a template of a configuration file. There are no versions and releases, and the topology has no
// authors.
type configInfo struct {
	ID            int              `json:"config_template_id"`
	Biz           int              `json:"bk_biz_id"`
	Name          string           `json:"template_name"`
	FileName      string           `json:"file_name"`
	Path          string           `json:"abs_path"`
	Owner         string           `json:"owner"`
	Group         string           `json:"group"`
	Mode          string           `json:"filemode"`
	LineSeparator string           `json:"line_separator"`
	Relations     relations        `json:"relation_count"`
	IsBound       bool             `json:"is_bound"`
	HasRelease    bool             `json:"has_release"`
	HasVersion    bool             `json:"has_version"`
	Permission    configPermission `json:"permission"`
	CreatedAt     *string          `json:"created_at"`
	CreatedBy     *string          `json:"created_by"`
	UpdatedAt     *string          `json:"updated_at"` // of the topology
	UpdatedBy     *string          `json:"updated_by"`
}

type relations struct {
	Instance int `json:"INSTANCE"`
	Template int `json:"TEMPLATE"`
}

// configPermission: templates are part of the topology and cannot be changed here.
type configPermission struct {
	Edit   bool `json:"edit_config_template"`
	Delete bool `json:"delete_config_template"`
}

// business reads a business. An unknown business is empty.
func (s *server) business(ctx context.Context, r *request) (record.Business, error) {
	rec, err := s.plane.Business(ctx, r.Caller, r.biz)
	if err != nil && gozzard.KindOf(err) == gozzard.ErrNotFound {
		return record.Business{}, nil
	}
	return rec, err
}

// configTemplateList lists the templates of a business in pages, the newest first unless the request has an order.
func (s *server) configTemplateList(ctx context.Context, r *request) (any, error) {
	// Read the request.
	start, limit := r.page(false)
	search, _ := opt(r.form, "search", text)
	order, _ := opt(r.form, "ordering", text)

	if err := r.err(); err != nil {
		return nil, err
	}

	// Read the business.
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	// Select the templates that have every search term.
	terms := strings.FieldsFunc(strings.ToLower(search), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
	var fit []topology.ConfigTemplate
	for _, t := range rec.Business.Templates {
		name, file := strings.ToLower(t.Name), strings.ToLower(t.FileName)
		if !slices.ContainsFunc(terms, func(term string) bool {
			return !strings.Contains(name, term) &&
				!strings.Contains(file, term)
		}) {
			fit = append(fit, t)
		}
	}

	// Sort them and render the page.
	sortTemplates(fit, order)
	out := configPage{Count: len(fit), List: []configInfo{}}
	updated := clock{timeLocal, s.zone}.show(rec.At)
	for _, t := range fit[min(start, len(fit)):min(start+limit, len(fit))] {
		out.List = append(out.List, configInfo{
			ID: t.ID, Biz: r.biz, Name: t.Name, FileName: t.FileName, Path: t.Path, Owner: t.Owner, Group: t.Group,
			Mode: t.Mode, LineSeparator: "LF",
			Relations: relations{len(t.Processes), len(t.Templates)}, IsBound: len(t.Processes)+len(t.Templates) > 0,
			UpdatedAt: updated,
		})
	}

	return out, nil
}

// sortTemplates sorts by keys that are separated by commas. It ignores unknown keys; templates with equal keys are
// sorted by age, the newest first.
func sortTemplates(list []topology.ConfigTemplate, order string) {
	slices.SortFunc(list, func(a, b topology.ConfigTemplate) int {
		for key := range strings.SplitSeq(order, ",") {
			key, descending := strings.CutPrefix(strings.TrimSpace(key), "-")
			var by int
			switch key {
			case "config_template_id":
				by = cmp.Compare(a.ID, b.ID)
			case "template_name":
				by = cmp.Compare(a.Name, b.Name)
			case "file_name":
				by = cmp.Compare(a.FileName, b.FileName)
			case "abs_path":
				by = cmp.Compare(a.Path, b.Path)
			}
			if descending {
				by = -by
			}
			if by != 0 {
				return by
			}
		}
		return cmp.Compare(b.ID, a.ID)
	})
}
