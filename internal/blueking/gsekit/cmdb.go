package gsekit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// This file has the calls that CMDB answers: changes of processes and of their templates. They need a CMDB, and a business
// that comes from it. The server asks CMDB with its own credentials, so it checks the rights of the caller first.

// plain is a value of a request as it was sent.
func plain(v *strictjson.Value) any {
	switch {
	case v.IsObject():
		out := map[string]any{}
		v.Members(func(name string, m strictjson.Value) { out[name] = plain(&m) })
		return out
	case v.IsList():
		out := []any{}
		v.List(v.Len(), func(e *strictjson.Value) { out = append(out, plain(e)) })
		return out
	case v.IsString():
		return v.Text()
	case v.IsNumber():
		return json.Number(v.Text())
	case v.IsBool():
		return v.Bool()
	}
	return nil
}

// property reads the attributes of a process. account is its user; given is false if it has none.
func (f *form) property() (attributes map[string]any, account string, given bool) {
	found := f.nest("process_property", func(in *form) {
		attributes, _ = plain(&in.object).(map[string]any)
		account, given = opt(in, "user", text)
	})
	if !found {
		f.fault("process_property", f.lang.say(sayRequired))
	}
	return attributes, account, given
}

// asTemplate is attributes in the form that templates of CMDB have: each with a value, and whether it replaces that of the
// processes.
func asTemplate(attributes map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range attributes {
		if rows, ok := value.([]any); ok && name == "bind_info" {
			list := []any{}
			for _, row := range rows {
				binding, _ := row.(map[string]any)
				id, has := binding["row_id"]
				delete(binding, "row_id")
				made := asTemplate(binding)
				if has {
					made["row_id"] = id
				}
				list = append(list, made)
			}
			out[name] = map[string]any{"value": list, "as_default_value": len(list) > 0}
			continue
		}
		out[name] = map[string]any{"value": value, "as_default_value": value != nil}
	}
	return out
}

// change is a change of CMDB that a caller wants.
type change struct {
	call    string
	body    map[string]any
	account *string                               // that the attributes name
	touches func(p *topology.Process) bool        // which of the recorded processes it changes
	within  func(m *topology.Module, in int) bool // which module or service instance it adds to; nil if to none
}

// write makes a change of CMDB if the business comes from there and the caller may make it.
func (s *server) write(ctx context.Context, r *request, c change) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.plane.Business(ctx, r.Caller, r.biz)
	if err != nil {
		return nil, err
	}
	if err := s.mayWrite(r, &rec, &c); err != nil {
		return nil, err
	}

	c.body["bk_biz_id"] = r.biz
	data, err := s.cmdb.Write(ctx, r.Caller, r.biz, c.call, c.body)
	if err != nil {
		return nil, r.fromCMDB(err)
	}
	return data, nil
}

// mayWrite rejects a change for which there is no CMDB or no right. A change needs the rights of one that is made in a
// document: to change the business, and to the accounts of the processes before and after it.
func (s *server) mayWrite(r *request, rec *record.Business, c *change) error {
	switch {
	case !r.Caller.Rights.MayBusiness(r.biz):
		return gozzard.Errorf(gozzard.ErrAppForbidden, "app %s may not change business %d", r.Caller.App, r.biz)
	case rec.Source == record.SourceFile:
		return fail(codeUnreachable, r.lang.say(sayFromDocument, r.biz, r.biz))
	case s.cmdb == nil:
		return fail(codeUnreachable, r.lang.say(sayNoCMDB))
	}

	var accounts []string
	if c.account != nil {
		accounts = append(accounts, *c.account)
	}
	known := c.within == nil
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		for i := 0; m != nil && i < len(m.Instances); i++ {
			known = known || c.within(m, m.Instances[i].ID)
			for j := range m.Instances[i].Processes {
				if p := &m.Instances[i].Processes[j]; c.touches(p) {
					accounts = append(accounts, p.User)
				}
			}
		}
	})
	if !known { // another business may have it
		return fail(codeInvalid, r.lang.say(sayNotInBusiness, r.biz))
	}
	for _, account := range accounts {
		if !r.Caller.Rights.MayRunAs(r.biz, account) {
			return gozzard.Errorf(gozzard.ErrAppForbidden,
				"app %s may not change a process of business %d: its grants do not include the account %s", r.Caller.App,
				r.biz, gozzard.CanonicalAccount(account))
		}
	}
	return nil
}

// fromCMDB is an error of CMDB as GSEKit answers it: with the code of CMDB.
func (r *request) fromCMDB(err error) error {
	var e interface {
		CMDBError() (code int, message string)
	}
	if !errors.As(err, &e) {
		return err
	}
	code, message := e.CMDBError()
	return fail(code, r.lang.say(sayCMDBError, message))
}

// createProcessInstance adds a process to a service instance.
func (s *server) createProcessInstance(ctx context.Context, r *request) (any, error) {
	instance := must(r.form, "service_instance_id", integer(1, maxID))
	attributes, account, _ := r.property()
	return s.write(ctx, r, change{call: "create_process_instance", account: &account,
		body:    map[string]any{"service_instance_id": instance, "processes": []any{map[string]any{"process_info": attributes}}},
		touches: func(*topology.Process) bool { return false },
		within:  func(_ *topology.Module, in int) bool { return int64(in) == instance }})
}

// updateProcessInstance changes attributes of a process.
func (s *server) updateProcessInstance(ctx context.Context, r *request) (any, error) {
	attributes, account, given := r.property()
	var id int64
	r.nest("process_property", func(in *form) { id = must(in, "bk_process_id", integer(1, maxID)) })
	c := change{call: "update_process_instance", body: map[string]any{"processes": []any{attributes}},
		touches: func(p *topology.Process) bool { return int64(p.ID) == id }}
	if given {
		c.account = &account
	}
	c.within = holds(c.touches)
	return s.write(ctx, r, c)
}

// holds reports whether a service instance has one of some processes.
func holds(touches func(p *topology.Process) bool) func(m *topology.Module, in int) bool {
	return func(m *topology.Module, in int) bool {
		for i := range m.Instances {
			if m.Instances[i].ID != in {
				continue
			}
			for j := range m.Instances[i].Processes {
				if touches(&m.Instances[i].Processes[j]) {
					return true
				}
			}
		}
		return false
	}
}

// deleteProcessInstance removes processes.
func (s *server) deleteProcessInstance(ctx context.Context, r *request) (any, error) {
	ids := r.someIDs("process_instance_ids")
	touches := func(p *topology.Process) bool { return slices.Contains(ids, p.ID) }
	return s.write(ctx, r, change{call: "delete_process_instance", body: map[string]any{"process_instance_ids": ids},
		touches: touches, within: holds(touches)})
}

// someIDs reads a list of at least one id.
func (f *form) someIDs(name string) []int {
	ids := f.ids(name)
	if len(ids) == 0 && f.sound() {
		f.fault(name, f.lang.say(sayRequired))
	}
	return ids
}

// createProcessTemplate adds a process to a service template.
func (s *server) createProcessTemplate(ctx context.Context, r *request) (any, error) {
	template := must(r.form, "service_template_id", integer(1, maxID))
	attributes, account, _ := r.property()
	return s.write(ctx, r, change{call: "batch_create_proc_template", account: &account,
		body:    map[string]any{"service_template_id": template, "processes": []any{map[string]any{"spec": asTemplate(attributes)}}},
		touches: func(*topology.Process) bool { return false }})
}

// updateProcessTemplate changes a process of a service template.
func (s *server) updateProcessTemplate(ctx context.Context, r *request) (any, error) {
	template := must(r.form, "process_template_id", integer(1, maxID))
	attributes, account, given := r.property()
	c := change{call: "update_proc_template",
		body:    map[string]any{"process_template_id": template, "process_property": asTemplate(attributes)},
		touches: func(p *topology.Process) bool { return int64(p.Template) == template }}
	if given {
		c.account = &account
	}
	return s.write(ctx, r, c)
}

// deleteProcessTemplate removes processes from a service template.
func (s *server) deleteProcessTemplate(ctx context.Context, r *request) (any, error) {
	ids := r.someIDs("process_template_ids")
	return s.write(ctx, r, change{call: "delete_proc_template", body: map[string]any{"process_templates": ids},
		touches: func(p *topology.Process) bool { return slices.Contains(ids, p.Template) }})
}
