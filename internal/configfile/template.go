package configfile

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

const (
	maxText  = 256  // bytes of an account, a mode and a line separator
	maxName  = 512  // bytes of a name
	maxPath  = 4096 // bytes of a path
	maxAbout = 4096 // bytes of a description
)

// Templates lists the templates of a business by id. Of a business that does not exist there are none.
func (f *Files) Templates(ctx context.Context, caller gozzard.Caller, biz int) ([]record.ConfigListed, error) {
	rec, err := f.business(ctx, caller, biz)
	if err != nil {
		if gozzard.KindOf(err) == gozzard.ErrNotFound {
			return nil, nil
		}
		return nil, err
	}
	return f.templates(ctx, &rec, biz)
}

func (f *Files) templates(ctx context.Context, rec *record.Business, biz int) ([]record.ConfigListed, error) {
	stored, err := f.o.Store.ConfigTemplates(ctx, biz)
	if err != nil {
		return nil, err
	}
	uses, err := f.o.Store.ConfigUses(ctx, biz)
	if err != nil {
		return nil, err
	}

	list := make([]record.ConfigListed, 0, len(stored)+len(rec.Business.Templates))
	fixed := map[int64]bool{}
	for i := range rec.Business.Templates {
		t := fromDocument(rec, &rec.Business.Templates[i])
		t.Versions, t.Released = uses[t.ID].Versions, uses[t.ID].Released
		fixed[t.ID] = true
		list = append(list, t)
	}
	for i := range stored {
		if !fixed[stored[i].ID] {
			list = append(list, record.ConfigListed{ConfigTemplate: stored[i], ConfigUse: uses[stored[i].ID]})
		}
	}
	slices.SortFunc(list, func(a, b record.ConfigListed) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// fromDocument is a template of a topology document. The document has no authors.
func fromDocument(rec *record.Business, t *topology.ConfigTemplate) record.ConfigListed {
	return record.ConfigListed{
		ConfigTemplate: record.ConfigTemplate{ID: int64(t.ID), Biz: rec.Business.ID, Name: t.Name, FileName: t.FileName, Path: t.Path,
			Owner: t.Owner, Group: t.Group, Mode: t.Mode, LineSeparator: "LF", Trail: record.Trail{Updated: rec.At}},
		ConfigUse: record.ConfigUse{Bound: map[record.ConfigObjectKind]int{
			record.ConfigOfProcess: len(t.Processes), record.ConfigOfTemplate: len(t.Templates)}},
		Fixed: true,
	}
}

// Template is one template of a business.
func (f *Files) Template(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigListed, error) {
	list, err := f.Templates(ctx, caller, biz)
	if err != nil {
		return record.ConfigListed{}, err
	}
	i := slices.IndexFunc(list, func(t record.ConfigListed) bool { return t.ID == id })
	if i < 0 {
		return record.ConfigListed{}, noTemplate(biz, id)
	}
	return list[i], nil
}

// AddTemplate records a new template and gives it an id.
func (f *Files) AddTemplate(ctx context.Context, caller gozzard.Caller, t *record.ConfigTemplate) error {
	if err := mayEdit(caller, t.Biz); err != nil {
		return err
	}
	if err := checkTemplate(t); err != nil {
		return err
	}
	rec, err := f.business(ctx, caller, t.Biz)
	if err != nil {
		return err
	}
	if err := freeInDocument(&rec, t); err != nil {
		return err
	}

	var taken []int64
	for i := range rec.Business.Templates {
		taken = append(taken, int64(rec.Business.Templates[i].ID))
	}
	t.Trail = f.changed(caller, record.Trail{})
	row, err := f.audit(caller, "template:add", 0, t.Name)
	if err != nil {
		return err
	}
	return asFault(f.o.Store.AddConfigTemplate(ctx, t, taken, row), gozzard.ErrConflict, record.ConfigSameName, t.Name)
}

// freeInDocument rejects a name that a template of the document has.
func freeInDocument(rec *record.Business, t *record.ConfigTemplate) error {
	for i := range rec.Business.Templates {
		if o := &rec.Business.Templates[i]; o.Name == t.Name && int64(o.ID) != t.ID {
			return fault(record.ConfigSameName, t.Name, gozzard.Errorf(gozzard.ErrConflict,
				"business %d already has a configuration template %q", t.Biz, t.Name))
		}
	}
	return nil
}

// SaveTemplate changes a template. change gets it as it is.
func (f *Files) SaveTemplate(ctx context.Context, caller gozzard.Caller, biz int, id int64,
	change func(t *record.ConfigTemplate)) (record.ConfigTemplate, error) {
	if err := mayEdit(caller, biz); err != nil {
		return record.ConfigTemplate{}, err
	}
	known, err := f.editable(ctx, caller, biz, id)
	if err != nil {
		return record.ConfigTemplate{}, err
	}

	t := known.ConfigTemplate
	change(&t)
	t.ID, t.Biz, t.Trail = id, biz, f.changed(caller, t.Trail)
	if err := checkTemplate(&t); err != nil {
		return t, err
	}
	rec, err := f.business(ctx, caller, biz)
	if err != nil {
		return t, err
	}
	if err := freeInDocument(&rec, &t); err != nil {
		return t, err
	}
	row, err := f.audit(caller, "template:save", id, t.Name)
	if err != nil {
		return t, err
	}
	err = asFault(f.o.Store.SaveConfigTemplate(ctx, t, row), gozzard.ErrConflict, record.ConfigSameName, t.Name)
	return t, asFault(err, gozzard.ErrNotFound, record.ConfigNoTemplate, "")
}

// editable finds a template that is not in the topology document.
func (f *Files) editable(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigListed, error) {
	t, err := f.Template(ctx, caller, biz, id)
	if err == nil && t.Fixed {
		err = gozzard.Errorf(gozzard.ErrInvalid,
			"configuration template %d is in the topology document of business %d: change it there", id, biz)
	}
	return t, err
}

// RemoveTemplate removes a template and its bindings.
func (f *Files) RemoveTemplate(ctx context.Context, caller gozzard.Caller, biz int, id int64) error {
	if err := mayEdit(caller, biz); err != nil {
		return err
	}
	t, err := f.editable(ctx, caller, biz, id)
	if err != nil {
		return err
	}
	row, err := f.audit(caller, "template:remove", id, t.Name)
	if err != nil {
		return err
	}
	return asFault(f.o.Store.RemoveConfigTemplate(ctx, biz, id, row), gozzard.ErrNotFound, record.ConfigNoTemplate, "")
}

// checkTemplate checks the texts of a template and brings its path into the shortest form.
func checkTemplate(t *record.ConfigTemplate) error {
	if faults := templateFaults(t, &contractFields); len(faults) > 0 {
		return faults[0]
	}
	t.Path = path.Clean(t.Path)
	return nil
}
