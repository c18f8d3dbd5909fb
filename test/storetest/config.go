package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/record"
)

// ConfigRecord is a store of configuration files with its audit.
type ConfigRecord interface {
	configfile.Store
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunConfigs runs the contract of configfile.Store. open returns a new, empty store and closes it at the end of the test.
func RunConfigs(t *testing.T, open func(*testing.T) ConfigRecord) {
	for _, c := range []struct {
		name string
		test func(*testing.T, ConfigRecord)
	}{
		{"templates", configTemplates}, {"versions", configVersions}, {"old versions", configOldVersions},
		{"bindings", configBindings}, {"limits", configLimits},
		{"rendered files", configInstances},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func configAudit(act string) gozzard.AuditRow {
	return gozzard.AuditRow{At: start, Caller: gozzard.Caller{App: "app", User: "me"}, Act: "config:" + act, Targets: 1}
}

func configTemplate(biz int, name string) record.ConfigTemplate {
	return record.ConfigTemplate{Biz: biz, Name: name, FileName: "n-${LocalInstID}.conf", Path: "/data/配置", Owner: "root",
		Group: "wheel", Mode: "0644", LineSeparator: "LF",
		Trail: record.Trail{Created: start, CreatedBy: "me", Updated: start, UpdatedBy: "me"}}
}

// addTemplate records a template of a business.
func addTemplate(t *testing.T, s ConfigRecord, biz int, name string, taken ...int64) record.ConfigTemplate {
	t.Helper()
	c := configTemplate(biz, name)
	must(t, s.AddConfigTemplate(t.Context(), &c, taken, configAudit("template:add")))
	return c
}

func configTemplates(t *testing.T, s ConfigRecord) {
	first := addTemplate(t, s, 2, "nginx")
	other := addTemplate(t, s, 3, "nginx") // another business may have the same name
	second := addTemplate(t, s, 2, "common", other.ID+1, other.ID+2)
	if first.ID == 0 || second.ID != other.ID+3 {
		t.Fatalf("ids %d, %d, %d", first.ID, other.ID, second.ID)
	}
	again := configTemplate(2, "nginx")
	wantKind(t, s.AddConfigTemplate(t.Context(), &again, nil, configAudit("x")), gozzard.ErrConflict)

	// Change one.
	first.FileName, first.Mode, first.Updated, first.UpdatedBy = "x", "0600", start.Add(time.Hour), "you"
	must(t, s.SaveConfigTemplate(t.Context(), first, configAudit("template:save")))
	second.Name = "nginx"
	wantKind(t, s.SaveConfigTemplate(t.Context(), second, configAudit("x")), gozzard.ErrConflict)
	second.Name = "common"
	strange := second
	strange.Biz = 3
	wantKind(t, s.SaveConfigTemplate(t.Context(), strange, configAudit("x")), gozzard.ErrNotFound)
	list, err := s.ConfigTemplates(t.Context(), 2)
	must(t, err)
	equal(t, "templates", list, []record.ConfigTemplate{first, second})

	// Remove one: its bindings go, its versions stay.
	v := record.ConfigVersion{Biz: 2, Template: second.ID, Content: "x", Draft: true}
	must(t, s.SaveConfigVersion(t.Context(), &v, configAudit("version:add")))
	_, _, err = s.BindConfig(t.Context(), 2, second.ID, record.ConfigObject{}, []record.ConfigBinding{
		{Biz: 2, Template: second.ID, Object: record.ConfigObject{Kind: record.ConfigOfProcess, ID: 44}}}, configAudit("bind"))
	must(t, err)
	wantKind(t, s.RemoveConfigTemplate(t.Context(), 3, second.ID, configAudit("x")), gozzard.ErrNotFound)
	must(t, s.RemoveConfigTemplate(t.Context(), 2, second.ID, configAudit("template:remove")))
	wantKind(t, s.RemoveConfigTemplate(t.Context(), 2, second.ID, configAudit("x")), gozzard.ErrNotFound)
	bound, err := s.ConfigBindings(t.Context(), 2, second.ID)
	must(t, err)
	equal(t, "bindings of a removed template", bound, []record.ConfigBinding(nil))
	if _, err := s.ConfigVersion(t.Context(), 2, v.ID); err != nil {
		t.Error(err)
	}

	rows, err := s.Audit(t.Context(), 20)
	must(t, err)
	var acts []string
	for i := range rows {
		acts = append(acts, strings.TrimPrefix(rows[i].Act, "config:"))
	}
	equal(t, "the audit", acts, []string{"template:remove", "bind", "version:add", "template:save", "template:add",
		"template:add", "template:add"})
}

func configVersions(t *testing.T, s ConfigRecord) {
	tpl := addTemplate(t, s, 2, "nginx")
	format := "nginx"
	draft := record.ConfigVersion{Biz: 2, Template: tpl.ID, Description: "一", Content: "a\x00\xff\r\n\t${x}", Draft: true, Format: &format,
		Trail: record.Trail{Created: start, CreatedBy: "me", Updated: start, UpdatedBy: "me"}}
	must(t, s.SaveConfigVersion(t.Context(), &draft, configAudit("version:add")))
	second := record.ConfigVersion{Biz: 2, Template: tpl.ID, Active: true}
	wantKind(t, s.SaveConfigVersion(t.Context(), &second, configAudit("x")), gozzard.ErrConflict)
	uses, err := s.ConfigUses(t.Context(), 2)
	must(t, err)
	if uses[tpl.ID].Versions {
		t.Error("a draft counts as a version")
	}

	// The draft becomes active; another active version replaces it.
	draft.Draft, draft.Active, draft.Updated = false, true, start.Add(time.Minute)
	must(t, s.SaveConfigVersion(t.Context(), &draft, configAudit("version:save")))
	got, err := s.ConfigVersion(t.Context(), 2, draft.ID)
	must(t, err)
	equal(t, "the version", got, draft)
	must(t, s.SaveConfigVersion(t.Context(), &second, configAudit("version:add")))
	list, err := s.ConfigVersions(t.Context(), 2, tpl.ID)
	must(t, err)
	if len(list) != 2 || list[0].ID != second.ID || !list[0].Active || list[0].Format != nil || list[1].Active || list[1].Draft {
		t.Errorf("versions %+v", list)
	}
	active, err := s.ActiveConfigVersions(t.Context(), 2)
	must(t, err)
	equal(t, "active versions", active, map[int64]int64{tpl.ID: second.ID})

	// Nothing of another business.
	if _, err := s.ConfigVersion(t.Context(), 3, draft.ID); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Errorf("a version of another business: %v", err)
	}
	strange := draft
	strange.Biz = 3
	wantKind(t, s.SaveConfigVersion(t.Context(), &strange, configAudit("x")), gozzard.ErrNotFound)
}

// configOldVersions: of a template that changes every day the oldest versions go, never the active one.
func configOldVersions(t *testing.T, s ConfigRecord) {
	tpl := addTemplate(t, s, 2, "nginx")
	oldest := record.ConfigVersion{Biz: 2, Template: tpl.ID, Active: true, Content: "oldest"}
	must(t, s.SaveConfigVersion(t.Context(), &oldest, configAudit("version:add")))
	for range record.MaxConfigVersions + 5 {
		v := record.ConfigVersion{Biz: 2, Template: tpl.ID}
		must(t, s.SaveConfigVersion(t.Context(), &v, configAudit("version:add")))
	}
	list, err := s.ConfigVersions(t.Context(), 2, tpl.ID)
	must(t, err)
	if len(list) != record.MaxConfigVersions+1 || list[len(list)-1].ID != oldest.ID {
		t.Errorf("%d versions are left, the oldest is %d, want %d", len(list), list[len(list)-1].ID, oldest.ID)
	}
}

func configBindings(t *testing.T, s ConfigRecord) {
	one, two := addTemplate(t, s, 2, "one"), addTemplate(t, s, 2, "two")
	process := func(id int) record.ConfigObject { return record.ConfigObject{Kind: record.ConfigOfProcess, ID: id} }
	template := record.ConfigObject{Kind: record.ConfigOfTemplate, ID: 26}
	bind := func(id int64, of record.ConfigObject, deleted, created int, want ...record.ConfigBinding) {
		t.Helper()
		for i := range want {
			want[i].Biz, want[i].Created, want[i].CreatedBy = 2, start, "me"
		}
		d, c, err := s.BindConfig(t.Context(), 2, id, of, want, configAudit("bind"))
		must(t, err)
		equal(t, "deleted and created", []int{d, c}, []int{deleted, created})
	}
	at := func(id int64, o record.ConfigObject) record.ConfigBinding {
		return record.ConfigBinding{Template: id, Object: o}
	}

	bind(one.ID, record.ConfigObject{}, 0, 4, at(one.ID, process(1)), at(one.ID, process(2)), at(one.ID, process(3)), at(one.ID, template))
	bind(one.ID, record.ConfigObject{}, 2, 1, at(one.ID, process(1)), at(one.ID, template), at(one.ID, process(9)), at(one.ID, process(9)))
	bind(0, template, 0, 1, at(one.ID, template), at(two.ID, template))
	list, err := s.ConfigBindingsOf(t.Context(), 2, []record.ConfigObject{template, process(9), process(2)})
	must(t, err)
	var found []string
	for i := range list {
		found = append(found, fmt.Sprintf("%d %v %t %s", list[i].Template-one.ID, list[i].Object, list[i].Created.Equal(start), list[i].CreatedBy))
	}
	equal(t, "bindings of objects", found, []string{"0 {TEMPLATE 26} true me", "0 {INSTANCE 9} true me", "1 {TEMPLATE 26} true me"})
	uses, err := s.ConfigUses(t.Context(), 2)
	must(t, err)
	equal(t, "uses", uses[one.ID].Bound, map[record.ConfigObjectKind]int{record.ConfigOfProcess: 2, record.ConfigOfTemplate: 1})
	bind(0, template, 2, 0)
	if list, err := s.ConfigBindingsOf(t.Context(), 3, []record.ConfigObject{process(9)}); err != nil || len(list) > 0 {
		t.Errorf("bindings of another business: %v, %v", list, err)
	}
}

// configLimits: the contents of a business do not fill the record.
func configLimits(t *testing.T, s ConfigRecord) {
	tpl := addTemplate(t, s, 2, "large")
	content := strings.Repeat("x", 32<<20) // above what a door takes, so that few are enough
	var err error
	n := 0
	for ; err == nil && n < record.MaxConfigBytes/len(content)+2; n++ {
		v := record.ConfigVersion{Biz: 2, Template: tpl.ID, Content: content}
		err = s.SaveConfigVersion(t.Context(), &v, configAudit("version:add"))
	}
	wantKind(t, err, gozzard.ErrInvalid)
	if n != record.MaxConfigBytes/len(content)+1 {
		t.Errorf("%d versions of %d bytes were taken", n, len(content))
	}

	// What belongs to a deleted template makes room.
	must(t, s.RemoveConfigTemplate(t.Context(), 2, tpl.ID, configAudit("template:remove")))
	other := addTemplate(t, s, 2, "other")
	v := record.ConfigVersion{Biz: 2, Template: other.ID, Content: content}
	must(t, s.SaveConfigVersion(t.Context(), &v, configAudit("version:add")))
}

// configInstances: files at a place replace each other. The newest are kept, and the one that was released last.
func configInstances(t *testing.T, s ConfigRecord) {
	file := func(process, inst int, content string) record.ConfigInstance {
		return record.ConfigInstance{Template: 7, Version: 3, Process: process, Inst: inst, Name: "n.conf", Path: "/data/配置", Content: content,
			Hash: sha256.Sum256([]byte(content)), Trail: record.Trail{Created: start, CreatedBy: "me"}}
	}
	add := func(biz int, files ...record.ConfigInstance) []record.ConfigInstance {
		t.Helper()
		must(t, s.AddConfigInstances(t.Context(), biz, files))
		return files
	}

	first := add(2, file(44, 1, "same\x00\xff"), file(45, 2, "same\x00\xff"))
	add(3, file(44, 1, "of another business"))
	must(t, s.ReleaseConfigs(t.Context(), 2, []int64{first[0].ID}))
	must(t, s.ReleaseConfigs(t.Context(), 3, []int64{first[1].ID})) // not of that business
	for i := range record.MaxConfigKept + 4 {
		add(2, file(44, 1, fmt.Sprint("later ", i)))
	}

	// What is left at each place.
	slots := []record.ConfigSlot{{Template: 7, Process: 44, Inst: 1}, {Template: 7, Process: 45, Inst: 2}, {Template: 7, Process: 46, Inst: 3}}
	list, err := s.ConfigInstances(t.Context(), 2, slots)
	must(t, err)
	latest, released := 0, 0
	hashes := [][32]byte{sha256.Sum256([]byte("later 0"))}
	for i := range list {
		if list[i].Latest {
			latest++
		}
		if list[i].Released {
			released++
		}
		hashes = append(hashes, list[i].Hash)
	}
	equal(t, "files, latest and released", []int{len(list), latest, released}, []int{record.MaxConfigKept + 2, 2, 1})
	got, err := s.ConfigInstance(t.Context(), 2, first[0].ID)
	must(t, err)
	want := first[0]
	want.Content, want.Latest, want.Released = "", false, true
	equal(t, "the released file", got, want)
	_, err = s.ConfigInstance(t.Context(), 3, first[0].ID)
	wantKind(t, err, gozzard.ErrNotFound)

	// The contents, each once; that of a removed file is gone.
	texts, err := s.ConfigTexts(t.Context(), 2, hashes)
	must(t, err)
	if len(texts) != record.MaxConfigKept+1 || texts[first[0].Hash] != "same\x00\xff" {
		t.Errorf("contents %q", texts)
	}

	// What a host has.
	if x, err := s.ConfigSnapshot(t.Context(), 2, first[0].ID); err != nil || x != nil {
		t.Errorf("a snapshot before there is one: %+v, %v", x, err)
	}
	for i, content := range []string{"a", "b\xff"} {
		must(t, s.SaveConfigSnapshot(t.Context(), &record.ConfigSnapshot{Biz: 2, Instance: first[0].ID, Job: int64(i + 1), Content: content,
			Hash: sha256.Sum256([]byte(content)), Updated: start.Add(time.Duration(i) * time.Minute)}))
	}
	x, err := s.ConfigSnapshot(t.Context(), 2, first[0].ID)
	must(t, err)
	if x == nil || x.Content != "b\xff" || x.Job != 2 || !x.Created.Equal(start) || !x.Updated.Equal(start.Add(time.Minute)) {
		t.Errorf("the snapshot is %+v", x)
	}
}
