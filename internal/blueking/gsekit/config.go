package gsekit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

type configPage struct {
	Count int          `json:"count"`
	List  []configInfo `json:"list"`
}

// configInfo is a template of a configuration file. What a call does not answer is left out.
type configInfo struct {
	ID  int64 `json:"config_template_id"`
	Biz any   `json:"bk_biz_id"` // a number, or a text in the answer to a creation, as callers know it
	configFields
	Relations  *relations        `json:"relation_count,omitempty"`
	IsBound    *bool             `json:"is_bound,omitempty"`
	HasRelease *bool             `json:"has_release,omitempty"`
	HasVersion *bool             `json:"has_version,omitempty"`
	Permission *configPermission `json:"permission,omitempty"`
	trail
}

// configFields are what a caller can change of a template.
type configFields struct {
	Name          string `json:"template_name"`
	FileName      string `json:"file_name"`
	Path          string `json:"abs_path"`
	Owner         string `json:"owner"`
	Group         string `json:"group"`
	Mode          string `json:"filemode"`
	LineSeparator string `json:"line_separator"`
}

type relations struct {
	Instance int `json:"INSTANCE"`
	Template int `json:"TEMPLATE"`
}

// configPermission says what the caller may do. Templates in the topology document cannot be changed here.
type configPermission struct {
	Edit   bool `json:"edit_config_template"`
	Delete bool `json:"delete_config_template"`
}

// trail is when and by which user something was made and changed. A topology document has no authors.
type trail struct {
	CreatedAt *string `json:"created_at"`
	CreatedBy *string `json:"created_by"`
	UpdatedAt *string `json:"updated_at"`
	UpdatedBy *string `json:"updated_by"`
}

func trailOf(t *record.Trail, c clock) trail {
	out := trail{CreatedAt: c.show(t.Created), UpdatedAt: c.show(t.Updated)}
	if !t.Created.IsZero() {
		out.CreatedBy, out.UpdatedBy = &t.CreatedBy, &t.UpdatedBy
	}
	return out
}

func fieldsOf(t *record.ConfigTemplate) configFields {
	return configFields{Name: t.Name, FileName: t.FileName, Path: t.Path, Owner: t.Owner, Group: t.Group, Mode: t.Mode,
		LineSeparator: t.LineSeparator}
}

// templateOf is a template with how it is used.
func templateOf(caller gozzard.Caller, t *record.ConfigListed, c clock) configInfo {
	bound, may := t.IsBound(), !t.Fixed && caller.Rights.MayBusinessHosts(gozzard.ActionConfigure, t.Biz)
	return configInfo{
		ID: t.ID, Biz: t.Biz, configFields: fieldsOf(&t.ConfigTemplate),
		Relations:  &relations{t.Bound[record.ConfigOfProcess], t.Bound[record.ConfigOfTemplate]},
		IsBound:    &bound,
		HasRelease: &t.Released, HasVersion: &t.Versions, Permission: &configPermission{may, may},
		trail: trailOf(&t.Trail, c),
	}
}

// utc is how most calls write times.
func utc() clock { return clock{timeUTC, time.UTC} }

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

	// Select the templates that have every search term.
	all, err := s.configs.Templates(ctx, r.Caller, r.biz)
	if err != nil {
		return nil, err
	}

	terms := strings.FieldsFunc(strings.ToLower(search), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
	var fit []record.ConfigListed
	for _, t := range all {
		name, file := strings.ToLower(t.Name), strings.ToLower(t.FileName)
		if !slices.ContainsFunc(terms, func(term string) bool {
			return !strings.Contains(name, term) &&
				!strings.Contains(file, term)
		}) {
			fit = append(fit, t)
		}
	}

	// Sort them and render the page.
	sortTemplates(fit, order, nil)
	return templatePage(r.Caller, fit, start, limit, clock{timeLocal, s.zone}), nil
}

// configTemplatesList is configTemplateList without a search. Templates with given ids come first.
func (s *server) configTemplatesList(ctx context.Context, r *request) (any, error) {
	start, limit := r.page(true)
	order, _ := opt(r.form, "ordering", text)
	first := map[int64]bool{}
	for _, id := range list(r.form, "binding_config_template_ids", anyInt()) {
		first[id] = true
	}
	if err := r.err(); err != nil {
		return nil, err
	}

	all, err := s.configs.Templates(ctx, r.Caller, r.biz)
	if err != nil {
		return nil, err
	}
	sortTemplates(all, order, first)
	return templatePage(r.Caller, all, start, limit, utc()), nil
}

func templatePage(caller gozzard.Caller, list []record.ConfigListed, start, limit int, c clock) configPage {
	out := configPage{Count: len(list), List: []configInfo{}}
	for _, t := range list[min(start, len(list)):min(start+limit, len(list))] {
		out.List = append(out.List, templateOf(caller, &t, c))
	}
	return out
}

// sortTemplates sorts by keys that are separated by commas, those with given ids first. It ignores unknown keys; templates with
// equal keys are sorted by age, the newest first.
func sortTemplates(list []record.ConfigListed, order string, first map[int64]bool) {
	slices.SortFunc(list, func(a, b record.ConfigListed) int {
		if first[a.ID] != first[b.ID] {
			if first[a.ID] {
				return -1
			}
			return 1
		}
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
			case "updated_at":
				by = a.Updated.Compare(b.Updated)
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

// templateID is the id of the template in the path.
func (r *request) templateID() int64 { return r.pathInt(r.Call, "config_template_id") }

// configTemplateRetrieve is one template.
func (s *server) configTemplateRetrieve(ctx context.Context, r *request) (any, error) {
	id := r.templateID()
	if err := r.err(); err != nil {
		return nil, err
	}
	t, err := s.configs.Template(ctx, r.Caller, r.biz, id)
	if err != nil {
		return nil, err
	}
	out := templateOf(r.Caller, &t, utc())
	out.HasRelease = nil
	return out, nil
}

// configTemplateCreate records a template.
func (s *server) configTemplateCreate(ctx context.Context, r *request) (any, error) {
	t := record.ConfigTemplate{Biz: r.biz}
	r.readTemplate(&t, true)
	if err := r.err(); err != nil {
		return nil, err
	}
	if err := s.configs.AddTemplate(ctx, r.Caller, &t); err != nil {
		return nil, err
	}
	return configInfo{ID: t.ID, Biz: strconv.Itoa(t.Biz), configFields: fieldsOf(&t), trail: trailOf(&t.Trail, utc())}, nil
}

// readTemplate reads the fields of a template that are given, or all of them.
func (f *form) readTemplate(t *record.ConfigTemplate, all bool) {
	for _, x := range []struct {
		name string
		to   *string
	}{
		{"template_name", &t.Name}, {"file_name", &t.FileName}, {"abs_path", &t.Path}, {"owner", &t.Owner}, {"group", &t.Group},
		{"filemode", &t.Mode}, {"line_separator", &t.LineSeparator},
	} {
		if v := f.get(x.name); all || v.Exists() {
			*x.to = must(f, x.name, filled)
		}
	}
}

// configTemplateUpdate changes a template: all of its fields with PUT, some with PATCH.
func (s *server) configTemplateUpdate(all bool) handler {
	return func(ctx context.Context, r *request) (any, error) {
		id := r.templateID()
		var given record.ConfigTemplate
		r.readTemplate(&given, all) // finds all faults before anything is changed
		if err := r.err(); err != nil {
			return nil, err
		}
		t, err := s.configs.SaveTemplate(ctx, r.Caller, r.biz, id, func(t *record.ConfigTemplate) { r.readTemplate(t, all) })
		if err != nil {
			return nil, err
		}
		return fieldsOf(&t), nil
	}
}

// configTemplateDelete removes a template and its bindings.
func (s *server) configTemplateDelete(ctx context.Context, r *request) (any, error) {
	id := r.templateID()
	if err := r.err(); err != nil {
		return nil, err
	}
	return nil, s.configs.RemoveTemplate(ctx, r.Caller, r.biz, id)
}
