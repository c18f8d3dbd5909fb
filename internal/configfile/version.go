package configfile

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/record"
)

// help is the variable that lists all variables. Only a preview has it.
const help = "${HELP}"

// Versions lists the versions of a template, newest first.
func (f *Files) Versions(ctx context.Context, caller gozzard.Caller, biz int, template int64) ([]record.ConfigVersion, error) {
	if _, err := f.Template(ctx, caller, biz, template); err != nil {
		return nil, err
	}
	return f.o.Store.ConfigVersions(ctx, biz, template)
}

// Version is one version. It stays when its template is deleted.
func (f *Files) Version(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigVersion, error) {
	if !caller.Rights.SeesBusiness(biz) {
		return record.ConfigVersion{}, fault(record.ConfigNoVersion, "", gozzard.Errorf(gozzard.ErrNotFound,
			"business %d has no version %d of a configuration file", biz, id))
	}
	v, err := f.o.Store.ConfigVersion(ctx, biz, id)
	return v, asFault(err, gozzard.ErrNotFound, record.ConfigNoVersion, "")
}

// AddVersion records the first version of a template, or the next one: a draft, or an active version. As in GSEKit it is not
// checked for safety here: what is rendered is always checked.
func (f *Files) AddVersion(ctx context.Context, caller gozzard.Caller, v *record.ConfigVersion) error {
	if err := mayEdit(caller, v.Biz); err != nil {
		return err
	}
	if _, err := f.Template(ctx, caller, v.Biz, v.Template); err != nil {
		return err
	}
	if err := checkVersion(v); err != nil {
		return err
	}

	v.ID, v.Draft, v.Trail = 0, !v.Active, f.changed(caller, record.Trail{})
	row, err := f.audit(caller, "version:add", v.Template, v.Description)
	if err != nil {
		return err
	}
	return asFault(f.o.Store.SaveConfigVersion(ctx, v, row), gozzard.ErrConflict, record.ConfigDraftExists, "")
}

// SaveVersion changes a version. change gets it as it is.
func (f *Files) SaveVersion(ctx context.Context, caller gozzard.Caller, biz int, id int64,
	change func(v *record.ConfigVersion)) (record.ConfigVersion, error) {
	if err := mayEdit(caller, biz); err != nil {
		return record.ConfigVersion{}, err
	}
	v, err := f.Version(ctx, caller, biz, id)
	if err != nil {
		return v, err
	}

	// Check the new content.
	change(&v)
	if v.Draft == v.Active {
		return v, fault(record.ConfigBothStates, "", gozzard.Errorf(gozzard.ErrInvalid, "a version is either a draft or active"))
	}
	if err := checkVersion(&v); err != nil {
		return v, err
	}
	if strings.Contains(v.Content, help) {
		return v, fault(record.ConfigHelpInside, "", gozzard.Errorf(gozzard.ErrInvalid,
			"%s is for previews only: remove it before you save the content", help))
	}
	if err := mako.Check(mako.Blanks(v.Content)); err != nil {
		return v, renderFault(err)
	}

	// Record it.
	v.Trail = f.changed(caller, v.Trail)
	row, err := f.audit(caller, "version:save", v.Template, v.Description)
	if err != nil {
		return v, err
	}
	err = asFault(f.o.Store.SaveConfigVersion(ctx, &v, row), gozzard.ErrConflict, record.ConfigDraftExists, "")
	return v, asFault(err, gozzard.ErrNotFound, record.ConfigNoVersion, "")
}

// CloneVersion makes the draft of a template a copy of a version. A draft that exists is overwritten.
func (f *Files) CloneVersion(ctx context.Context, caller gozzard.Caller, biz int, id int64,
	description string) (record.ConfigVersion, error) {
	if err := mayEdit(caller, biz); err != nil {
		return record.ConfigVersion{}, err
	}
	source, err := f.Version(ctx, caller, biz, id)
	if err != nil {
		return source, err
	}
	list, err := f.o.Store.ConfigVersions(ctx, biz, source.Template)
	if err != nil {
		return source, err
	}

	draft := record.ConfigVersion{Biz: biz, Template: source.Template, Draft: true}
	for i := range list {
		if list[i].Draft {
			draft = list[i]
		}
	}
	draft.Description, draft.Content, draft.Trail = description, source.Content, f.changed(caller, draft.Trail)
	if err := checkVersion(&draft); err != nil {
		return draft, err
	}
	row, err := f.audit(caller, "version:clone", source.Template, description)
	if err != nil {
		return draft, err
	}
	return draft, asFault(f.o.Store.SaveConfigVersion(ctx, &draft, row), gozzard.ErrConflict, record.ConfigDraftExists, "")
}

// checkVersion checks the texts of a version.
func checkVersion(v *record.ConfigVersion) error {
	format := ""
	if v.Format != nil {
		format = *v.Format
	}
	for _, x := range []struct {
		name, text string
		most       int
	}{{"content", v.Content, record.MaxConfigContent}, {"description", v.Description, maxAbout}, {"file_format", format, maxText}} {
		if len(x.text) > x.most {
			return gozzard.Errorf(gozzard.ErrInvalid, "%s has %d bytes; at most %d are allowed", x.name, len(x.text), x.most)
		}
		if !utf8.ValidString(x.text) || strings.ContainsRune(x.text, 0) {
			return gozzard.Errorf(gozzard.ErrInvalid, "%s must be text in UTF-8 without NUL characters", x.name)
		}
	}
	return nil
}
