package gsekit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// templateDiffers reports whether a service template was changed in CMDB after its modules got it.
func (s *server) templateDiffers(ctx context.Context, r *request) (any, error) {
	template := must(r.form, "service_template_id", integer(1, maxID))
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.differs(ctx, r, &rec, int(template))
}

// templatesDiffer is templateDiffers for all service templates of a business: a list of objects with one key.
func (s *server) templatesDiffer(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	var templates []int
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		if m != nil && m.ServiceTemplate != 0 && !slices.Contains(templates, m.ServiceTemplate) {
			templates = append(templates, m.ServiceTemplate)
		}
	})
	slices.Sort(templates)

	out := []map[string]bool{}
	for _, template := range templates {
		differs, err := s.differs(ctx, r, &rec, template)
		if err != nil {
			return nil, err
		}
		out = append(out, map[string]bool{fmt.Sprint(template): differs})
	}
	return out, nil
}

// differs asks CMDB about the modules of a service template. The templates of a document have nothing to differ from.
func (s *server) differs(ctx context.Context, r *request, rec *record.Business, template int) (bool, error) {
	modules := []int{}
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		if m != nil && m.ServiceTemplate == template {
			modules = append(modules, m.ID)
		}
	})
	if len(modules) == 0 || rec.Source != record.SourceCMDB || s.cmdb == nil {
		return false, nil
	}

	data, err := s.cmdb.Read(ctx, "list_service_template_difference", map[string]any{"bk_biz_id": r.biz,
		"bk_module_ids": modules, "partial_compare": true})
	if err != nil {
		return false, r.fromCMDB(err)
	}
	var rows []struct {
		Differs bool `json:"has_difference"`
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		return false, &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: err,
			Message: "CMDB answered list_service_template_difference with data of another form"}
	}
	for _, row := range rows {
		if row.Differs {
			return true, nil
		}
	}
	return false, nil
}
