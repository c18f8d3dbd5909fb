package api

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// Configs has the configuration files of businesses.
type Configs interface {
	Templates(ctx context.Context, caller gozzard.Caller, biz int) ([]record.ConfigListed, error)
	Template(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigListed, error)
	Versions(ctx context.Context, caller gozzard.Caller, biz int, template int64) ([]record.ConfigVersion, error)
	Bindings(ctx context.Context, caller gozzard.Caller, biz int, template int64) ([]record.ConfigBinding, error)
	Apply(ctx context.Context, caller gozzard.Caller, want *record.ConfigWanted, dry bool) (record.ConfigApplied, error)
	RemoveTemplate(ctx context.Context, caller gozzard.Caller, biz int, id int64) error
	Rendered(ctx context.Context, caller gozzard.Caller, biz int, template int64, process, local int,
		content *string) (record.ConfigRendered, error)
}

// getConfigTemplates lists the templates of a business.
func (a *api) getConfigTemplates(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	biz, _, err := a.configQuery(r, "")
	if err != nil {
		return err
	}
	list, err := a.Configs.Templates(r.Context(), caller, biz)
	if err != nil {
		return err
	}
	out := client.ConfigTemplates{Count: len(list), Templates: make([]client.ConfigTemplate, len(list))}
	for i := range list {
		out.Templates[i] = configTemplate(&list[i])
	}
	return answer(w, http.StatusOK, out)
}

// configQuery reads the business of a query, and the id in the path.
func (a *api) configQuery(r *http.Request, name string) (biz int, id int64, err error) {
	q, err := a.readQuery(r)
	if err != nil {
		return 0, 0, err
	}
	biz = q.biz()
	if name != "" {
		text := r.PathValue(name)
		if id, err = strconv.ParseInt(text, 10, 64); err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
			q.faults.Add(name, "must be the id of a %s, is %q", name, clip(text))
		}
	}
	return biz, id, q.faults.Err()
}

// biz is the business that a query must name.
func (q *query) biz() int {
	n, fault := parseBiz(q.one("biz"))
	if fault != "" {
		q.faults.Add("biz", "%s", fault)
	}
	return n
}

func configTemplate(t *record.ConfigListed) client.ConfigTemplate {
	bound := 0
	for _, n := range t.Bound {
		bound += n
	}
	return client.ConfigTemplate{ID: t.ID, Name: t.Name, FileName: t.FileName, Folder: t.Path, Owner: t.Owner, Group: t.Group, Mode: t.Mode,
		LineEnds: strings.ToLower(t.LineSeparator), Bound: bound, Ready: t.Versions, Released: t.Released, InDocument: t.Fixed,
		Updated: client.At(t.Updated), UpdatedBy: t.UpdatedBy}
}

// getConfigTemplate reads one template.
func (a *api) getConfigTemplate(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	biz, id, err := a.configQuery(r, "template")
	if err != nil {
		return err
	}
	t, err := a.Configs.Template(r.Context(), caller, biz, id)
	if err != nil {
		return err
	}
	versions, err := a.Configs.Versions(r.Context(), caller, biz, id)
	if err != nil {
		return err
	}
	bindings, err := a.Configs.Bindings(r.Context(), caller, biz, id)
	if err != nil {
		return err
	}

	out := client.ConfigTemplateDetail{ConfigTemplate: configTemplate(&t), Versions: make([]client.ConfigVersion, len(versions)),
		Bind: client.ConfigBind{Processes: []int{}, Templates: []int{}}}
	for i := range versions {
		v := &versions[i]
		state := "former"
		switch {
		case v.Active:
			state, out.Content = "active", v.Content
		case v.Draft:
			state = "draft"
		}
		out.Versions[i] = client.ConfigVersion{ID: v.ID, Description: v.Description, State: state, Size: len(v.Content),
			Updated: client.At(v.Updated), UpdatedBy: v.UpdatedBy}
	}
	for _, b := range bindings {
		if b.Object.Kind == record.ConfigOfProcess {
			out.Bind.Processes = append(out.Bind.Processes, b.Object.ID)
		} else {
			out.Bind.Templates = append(out.Bind.Templates, b.Object.ID)
		}
	}
	return answer(w, http.StatusOK, out)
}

// readConfigFields reads the body of a request about configuration files, which has no query.
func readConfigFields[T any](a *api, w http.ResponseWriter, r *http.Request, read func(root *strictjson.Value)) error {
	if err := a.noQuery(r); err != nil {
		return err
	}
	return readFields[T](w, r, maxOperationBody, read)
}

// putConfigTemplate makes a template what the request says.
func (a *api) putConfigTemplate(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var want record.ConfigWanted
	dry := false
	err := readConfigFields[client.ConfigRequest](a, w, r, func(root *strictjson.Value) {
		want = readConfig(root)
		v := root.Get("dry_run")
		dry = v.OptBool(false)
	})
	if err != nil {
		return err
	}
	done, err := a.Configs.Apply(r.Context(), caller, &want, dry)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.ConfigApplied{Template: done.Template, Version: done.Version, DryRun: dry, New: done.New,
		Changes: append([]string{}, done.Changes...), Warnings: done.Warnings})
}

// readConfig reads a template.
func readConfig(root *strictjson.Value) record.ConfigWanted {
	text := func(name string) string {
		v := root.Get(name)
		return v.Str()
	}
	optional := func(name, missing string) string {
		if v := root.Get(name); v.Given() {
			return v.Str()
		}
		return missing
	}
	biz, content, replace, bind := root.Get("biz"), root.Get("content"), root.Get("replace_draft"), root.Get("bind")
	want := record.ConfigWanted{Content: content.AnyStr(), Description: optional("description", ""), ReplaceDraft: replace.OptBool(false),
		Template: record.ConfigTemplate{Biz: int(biz.Int(1, math.MaxInt32)), Name: text("name"), FileName: text("file_name"),
			Path: text("folder"), Owner: text("owner"), Group: text("group"), Mode: optional("mode", "0644")}}
	switch ends := optional("line_ends", "lf"); ends {
	case "lf", "crlf":
		want.Template.LineSeparator = strings.ToUpper(ends)
	default:
		v := root.Get("line_ends")
		v.Fault("must be lf or crlf, is %q", clip(ends))
	}
	if bind.Given() {
		want.Objects = readConfigObjects(&bind)
	}
	return want
}

// readConfigObjects reads what a template is bound to. It is not nil.
func readConfigObjects(bind *strictjson.Value) []record.ConfigObject {
	bind.Only("processes", "templates")
	objects := []record.ConfigObject{}
	for _, x := range []struct {
		name string
		kind record.ConfigObjectKind
	}{{"processes", record.ConfigOfProcess}, {"templates", record.ConfigOfTemplate}} {
		list := bind.Get(x.name)
		list.OptList(record.MaxConfigBindings, func(e *strictjson.Value) {
			objects = append(objects, record.ConfigObject{Kind: x.kind, ID: int(e.Int(1, math.MaxInt32))})
		})
	}
	return objects
}

// deleteConfigTemplate removes a template.
func (a *api) deleteConfigTemplate(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	biz, id, err := a.configQuery(r, "template")
	if err != nil {
		return err
	}
	if err := a.Configs.RemoveTemplate(r.Context(), caller, biz, id); err != nil {
		return err
	}
	return answer(w, http.StatusOK, struct{}{})
}

// postConfigRender renders a file.
func (a *api) postConfigRender(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var biz, process, instance int
	var template int64
	var content *string
	err := readConfigFields[client.ConfigRenderRequest](a, w, r, func(root *strictjson.Value) {
		b, t, p, i, c := root.Get("biz"), root.Get("template"), root.Get("process"), root.Get("instance"), root.Get("content")
		biz, template, process = int(b.Int(1, math.MaxInt32)), t.Int(1, 1<<53), int(p.Int(1, math.MaxInt32))
		if instance = int(i.OptInt(1, 1, math.MaxInt32)); c.Given() {
			text := c.AnyStr()
			content = &text
		}
	})
	if err != nil {
		return err
	}
	f, err := a.Configs.Rendered(r.Context(), caller, biz, template, process, instance, content)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.ConfigRendered{Host: hostRef(f.Row.Host.Agent, f.Row.Host.Addr()), Path: f.Path, Owner: f.Template.Owner,
		Group: f.Template.Group, Mode: f.Template.Mode, SHA256: gozzard.FileDigest(f.Content), Content: string(f.Content), Instance: f.Inst.Inst})
}
