package configfile

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// releasedWith finds the files that were released last with given versions of their templates. The files are sorted by id.
func releasedWith(files []record.ConfigInstance, versions map[int64]int64) map[record.ConfigSlot]*record.ConfigInstance {
	found := map[record.ConfigSlot]*record.ConfigInstance{}
	for i := range files {
		if c := &files[i]; c.Released && versions[c.Template] == c.Version {
			found[c.Slot()] = c
		}
	}
	return found
}

// again records earlier files as the newest ones, so that the record says what hosts have after a rollback.
func (w *work) again(ctx context.Context, files []made) error {
	list := make([]record.ConfigInstance, len(files))
	for i := range files {
		list[i] = files[i].file
		list[i].ID, list[i].Latest, list[i].Released = 0, false, false
		list[i].Created, list[i].CreatedBy = w.f.o.Now(), w.j.Caller.User
	}
	if err := w.f.o.Store.AddConfigInstances(ctx, w.j.Biz, list); err != nil {
		return err
	}
	for i := range files {
		files[i].file = list[i]
	}
	return nil
}

// digestOf is the digest that a file has on its host.
func digestOf(t *record.ConfigListed, c *record.ConfigInstance) string {
	content, err := lineEnds(t).Apply([]byte(c.Content))
	if err != nil { // it could not have been released
		return ""
	}
	return gozzard.FileDigest(content)
}

// checkBack rejects a rollback that names other versions than those of its templates.
func (f *Files) checkBack(ctx context.Context, biz int, c record.ConfigChoice) error {
	for template, version := range c.Back {
		list, err := f.o.Store.ConfigVersions(ctx, biz, template)
		if err != nil {
			return err
		}
		if !slices.Contains(c.Templates, template) || !slices.ContainsFunc(list, func(v record.ConfigVersion) bool { return v.ID == version }) {
			return fault(record.ConfigNoVersion, "", gozzard.Errorf(gozzard.ErrNotFound,
				"configuration template %d of business %d has no version %d", template, biz, version))
		}
	}
	return nil
}
