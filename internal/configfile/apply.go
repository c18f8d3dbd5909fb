package configfile

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Apply makes a template what a document says: its fields, its active version and what it is bound to. The template is found by its
// name. With dry it only says what would change. A document that is applied again changes nothing.
func (f *Files) Apply(ctx context.Context, caller gozzard.Caller, want *record.ConfigWanted, dry bool) (record.ConfigApplied, error) {
	// Check the document.
	var out record.ConfigApplied
	t := &want.Template
	if err := mayEdit(caller, t.Biz); err != nil {
		return out, err
	}
	version := record.ConfigVersion{Biz: t.Biz, Content: want.Content, Description: want.Description, Active: true}
	if err := checkWanted(want, &version); err != nil {
		return out, err
	}
	t.Path = path.Clean(t.Path)

	// Compare it with the template.
	plan, err := f.plan(ctx, caller, want)
	if err != nil {
		return plan.ConfigApplied, err
	}
	if plan.Warnings, err = f.warnings(ctx, caller, want, plan.Template); err != nil || dry {
		return plan.ConfigApplied, err
	}
	return f.carryOut(ctx, caller, want, &plan, &version)
}

// applyPlan is what a document changes.
type applyPlan struct {
	record.ConfigApplied
	fields, content, bindings bool
	draft                     int64 // the draft that becomes the new version; 0: none
}

// plan compares a document with the template that has its name.
func (f *Files) plan(ctx context.Context, caller gozzard.Caller, want *record.ConfigWanted) (p applyPlan, err error) {
	t := &want.Template
	rec, err := f.business(ctx, caller, t.Biz)
	if err != nil {
		return p, err
	}
	if err := checkBound(&rec.Business, t.Name, want.Objects); err != nil {
		return p, err
	}
	list, err := f.Templates(ctx, caller, t.Biz)
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(list, func(x record.ConfigListed) bool { return x.Name == t.Name })
	if i < 0 {
		p.New, p.content, p.bindings = true, true, len(want.Objects) > 0
		p.Changes = []string{"new template"}
		return p, nil
	}

	now := &list[i]
	if p.Template = now.ID; now.Fixed {
		return p, gozzard.Errorf(gozzard.ErrInvalid, "configuration template %q is in the topology document of business %d: change it there",
			t.Name, t.Biz)
	}
	p.compareFields(&now.ConfigTemplate, t)
	if err := f.planVersion(ctx, want, &p); err != nil {
		return p, err
	}
	return p, f.planBindings(ctx, want, &p)
}

func (p *applyPlan) compareFields(now, want *record.ConfigTemplate) {
	for _, x := range []struct{ name, now, want string }{
		{"file_name", now.FileName, want.FileName}, {"folder", now.Path, want.Path}, {"owner", now.Owner, want.Owner},
		{"group", now.Group, want.Group}, {"mode", now.Mode, want.Mode}, {"line_ends", now.LineSeparator, want.LineSeparator},
	} {
		if x.now != x.want {
			p.fields = true
			p.Changes = append(p.Changes, fmt.Sprintf("%s: %q, was %q", x.name, x.want, x.now))
		}
	}
}

// planVersion compares the content with the active version.
func (f *Files) planVersion(ctx context.Context, want *record.ConfigWanted, p *applyPlan) error {
	versions, err := f.o.Store.ConfigVersions(ctx, want.Template.Biz, p.Template)
	if err != nil {
		return err
	}
	before := 0
	for i := range versions {
		switch v := &versions[i]; {
		case v.Draft:
			p.draft = v.ID
		case v.Active:
			if p.Version, before = v.ID, len(v.Content); v.Content == want.Content {
				return nil
			}
		}
	}
	if p.draft != 0 && !want.ReplaceDraft {
		return fault(record.ConfigDraftExists, "", gozzard.Errorf(gozzard.ErrConflict,
			"configuration template %q has a draft, version %d: a person works on it; say that it is replaced, or make it active first",
			want.Template.Name, p.draft))
	}
	p.content = true
	p.Changes = append(p.Changes, fmt.Sprintf("content: %d bytes, had %d", len(want.Content), before))
	return nil
}

// planBindings compares what the template is bound to.
func (f *Files) planBindings(ctx context.Context, want *record.ConfigWanted, p *applyPlan) error {
	if want.Objects == nil {
		return nil
	}
	bound, err := f.o.Store.ConfigBindings(ctx, want.Template.Biz, p.Template)
	if err != nil {
		return err
	}
	added := len(want.Objects)
	for i := range bound {
		if slices.Contains(want.Objects, bound[i].Object) {
			added--
		}
	}
	if removed := len(bound) - (len(want.Objects) - added); added+removed > 0 {
		p.bindings = true
		p.Changes = append(p.Changes, fmt.Sprintf("bindings: %d added, %d removed", added, removed))
	}
	return nil
}

// carryOut makes the changes of a plan. Each is recorded for itself: after an error the same document does the rest.
func (f *Files) carryOut(ctx context.Context, caller gozzard.Caller, want *record.ConfigWanted, p *applyPlan,
	version *record.ConfigVersion) (record.ConfigApplied, error) {
	t := want.Template
	switch {
	case p.New:
		if err := f.AddTemplate(ctx, caller, &t); err != nil {
			return p.ConfigApplied, err
		}
		p.Template = t.ID
	case p.fields:
		if _, err := f.SaveTemplate(ctx, caller, t.Biz, p.Template, func(x *record.ConfigTemplate) { *x = t }); err != nil {
			return p.ConfigApplied, err
		}
	}

	if p.bindings {
		if _, _, err := f.BindTemplate(ctx, caller, t.Biz, p.Template, want.Objects); err != nil {
			return p.ConfigApplied, err
		}
	}

	if !p.content {
		return p.ConfigApplied, nil
	}
	version.Template = p.Template
	if p.draft == 0 {
		err := f.AddVersion(ctx, caller, version)
		p.Version = version.ID
		return p.ConfigApplied, err
	}
	v, err := f.SaveVersion(ctx, caller, t.Biz, p.draft, func(v *record.ConfigVersion) {
		v.Content, v.Description, v.Draft, v.Active = version.Content, version.Description, false, true
	})
	p.Version = v.ID
	return p.ConfigApplied, err
}
