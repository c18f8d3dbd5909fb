package configfile

import (
	"context"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Bindings lists what a template is bound to.
func (f *Files) Bindings(ctx context.Context, caller gozzard.Caller, biz int, template int64) ([]record.ConfigBinding, error) {
	t, err := f.Template(ctx, caller, biz, template)
	if err != nil || !t.Fixed {
		if err != nil {
			return nil, err
		}
		return f.o.Store.ConfigBindings(ctx, biz, template)
	}

	rec, err := f.business(ctx, caller, biz)
	if err != nil {
		return nil, err
	}
	var list []record.ConfigBinding
	for i := range rec.Business.Templates {
		if d := &rec.Business.Templates[i]; int64(d.ID) == template {
			for _, o := range objectsOf(d) {
				list = append(list, record.ConfigBinding{Biz: biz, Template: template, Object: o})
			}
		}
	}
	return list, nil
}

// objectsOf are the objects that a template of a document is bound to.
func objectsOf(t *topology.ConfigTemplate) (list []record.ConfigObject) {
	for _, id := range t.Processes {
		list = append(list, record.ConfigObject{Kind: record.ConfigOfProcess, ID: id})
	}
	for _, id := range t.Templates {
		list = append(list, record.ConfigObject{Kind: record.ConfigOfTemplate, ID: id})
	}
	return list
}

// BindTemplate makes objects what a template is bound to. It answers how many bindings were removed and added.
func (f *Files) BindTemplate(ctx context.Context, caller gozzard.Caller, biz int, template int64,
	objects []record.ConfigObject) (deleted, created int, err error) {
	if err := mayEdit(caller, biz); err != nil {
		return 0, 0, err
	}
	if _, err := f.editable(ctx, caller, biz, template); err != nil {
		return 0, 0, err
	}

	want := make([]record.ConfigBinding, len(objects))
	for i, o := range objects {
		want[i] = record.ConfigBinding{Biz: biz, Template: template, Object: o, Trail: f.changed(caller, record.Trail{})}
	}
	row, err := f.audit(caller, "bind", template, fmt.Sprint(objects[:min(len(objects), 100)]))
	if err != nil {
		return 0, 0, err
	}
	return f.o.Store.BindConfig(ctx, biz, template, record.ConfigObject{}, want, row)
}

// BindObject makes templates those of an object. Templates of the topology document stay bound as the document says.
func (f *Files) BindObject(ctx context.Context, caller gozzard.Caller, biz int, object record.ConfigObject,
	templates []int64) (deleted, created int, err error) {
	if err := mayEdit(caller, biz); err != nil {
		return 0, 0, err
	}
	rec, err := f.business(ctx, caller, biz)
	if err != nil {
		return 0, 0, err
	}
	known, err := f.templates(ctx, &rec, biz)
	if err != nil {
		return 0, 0, err
	}

	var want []record.ConfigBinding
	for _, id := range templates {
		i := slices.IndexFunc(known, func(t record.ConfigListed) bool { return t.ID == id })
		if i < 0 {
			return 0, 0, noTemplate(biz, id)
		}
		if known[i].Fixed {
			if !boundInDocument(&rec, id, object) {
				return 0, 0, gozzard.Errorf(gozzard.ErrInvalid,
					"configuration template %d is in the topology document of business %d: bind it there", id, biz)
			}
			continue
		}
		want = append(want, record.ConfigBinding{Biz: biz, Template: id, Object: object, Trail: f.changed(caller, record.Trail{})})
	}
	row, err := f.audit(caller, "bind", 0, fmt.Sprint(object, templates[:min(len(templates), 100)]))
	if err != nil {
		return 0, 0, err
	}
	return f.o.Store.BindConfig(ctx, biz, 0, object, want, row)
}

func boundInDocument(rec *record.Business, template int64, object record.ConfigObject) bool {
	for i := range rec.Business.Templates {
		if t := &rec.Business.Templates[i]; int64(t.ID) == template {
			return slices.Contains(objectsOf(t), object)
		}
	}
	return false
}

// AddRefs adds to the rows of a business the templates that are bound to their processes outside of the topology document.
func (f *Files) AddRefs(ctx context.Context, biz int, rows []topology.Row) error {
	bound, err := f.boundTo(ctx, biz, rows)
	if err != nil || len(bound) == 0 {
		return err
	}
	stored, err := f.o.Store.ConfigTemplates(ctx, biz)
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		row.Configs = slices.Clone(row.Configs)
		for j := range stored {
			t := &stored[j]
			fixed := slices.ContainsFunc(row.Configs, func(c topology.ConfigRef) bool { return int64(c.ID) == t.ID })
			if !fixed && bound[boundKey{t.ID, objectOf(row)}] {
				row.Configs = append(row.Configs, topology.ConfigRef{ID: int(t.ID), Name: t.Name, FileName: t.FileName})
			}
		}
	}
	return nil
}

// boundKey names a binding.
type boundKey struct {
	template int64
	object   record.ConfigObject
}

// objectOf is the object by which templates are bound to a process: its process template, or the process itself without one.
func objectOf(r *topology.Row) record.ConfigObject {
	if r.Template != 0 {
		return record.ConfigObject{Kind: record.ConfigOfTemplate, ID: r.Template}
	}
	return record.ConfigObject{Kind: record.ConfigOfProcess, ID: r.Process}
}

// boundTo reads the bindings of processes, except those in the topology document.
func (f *Files) boundTo(ctx context.Context, biz int, rows []topology.Row) (map[boundKey]bool, error) {
	seen := map[record.ConfigObject]bool{}
	var objects []record.ConfigObject
	for i := range rows {
		if o := objectOf(&rows[i]); !seen[o] {
			seen[o] = true
			objects = append(objects, o)
		}
	}
	list, err := f.o.Store.ConfigBindingsOf(ctx, biz, objects)
	bound := map[boundKey]bool{}
	for i := range list {
		bound[boundKey{list[i].Template, list[i].Object}] = true
	}
	return bound, err
}
