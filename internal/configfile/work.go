package configfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Work implements waves.Worker.
func (f *Files) Work(ctx context.Context, j *record.Job, tasks []*record.JobTask, steps record.JobSteps) error {
	open := slices.DeleteFunc(slices.Clone(tasks), func(t *record.JobTask) bool { return t.State.Final() })
	if len(open) == 0 {
		return nil
	}
	if text := withdrawn(j); text != "" {
		return f.failAll(open, steps.Save, record.ReasonRefused, text)
	}
	w, err := f.newWork(ctx, j, open)
	if err != nil {
		if gozzard.KindOf(err) == gozzard.ErrNotFound {
			return f.failAll(open, steps.Save, record.ReasonGone, "the business is not there any more")
		}
		return err
	}
	w.steps = steps

	for _, part := range partsOf(j.Work, open, j.Choice.Rollout) {
		// What has happened since decides whether this part is done, too.
		if err := steps.Renew(); err != nil {
			return err
		}
		if reason, message := w.halted(tasks, part[0]); message != "" {
			if err := f.failAll(part, steps.Save, reason, message); err != nil {
				return err
			}
			continue
		}

		begin(part, f.o.Now())
		if err := w.do(ctx, part); err != nil {
			begin(part, f.o.Now()) // all of it is done again
			return err
		}
		if err := steps.Save(part); err != nil {
			return err
		}
	}
	return nil
}

// begin makes tasks running.
func begin(tasks []*record.JobTask, now time.Time) {
	for _, t := range tasks {
		t.State, t.Reason, t.Message, t.Started = record.JobRunning, record.ReasonNone, "", now
	}
}

// do does tasks of a job together. The caller records how they ended.
func (w *work) do(ctx context.Context, part []*record.JobTask) error {
	switch w.j.Work {
	case record.WorkGenerate:
		return w.generate(ctx, part)
	case record.WorkRelease:
		if err := w.steps.Save(part); err != nil { // hosts may take their time
			return err
		}
		return w.release(ctx, part)
	case record.WorkDiff:
		return w.diff(ctx, part)
	}
	return w.f.failAll(part, func([]*record.JobTask) error { return nil }, record.ReasonInternal, "unknown work")
}

// failAll ends tasks with one reason.
func (f *Files) failAll(tasks []*record.JobTask, save func([]*record.JobTask) error, reason record.JobReason, message string) error {
	for _, t := range tasks {
		t.State, t.Reason, t.Message, t.Ended = record.JobFailed, reason, message, f.o.Now()
	}
	return save(tasks)
}

// work is a job on configuration files with what it needs of the record.
type work struct {
	f         *Files
	j         *record.Job
	steps     record.JobSteps
	rec       record.Business
	templates []record.ConfigListed
	active    map[int64]int64
	versions  map[int64]*record.ConfigVersion // that were read
	bound     map[boundKey]bool
	renderer  *renderer
}

func (f *Files) newWork(ctx context.Context, j *record.Job, tasks []*record.JobTask) (*work, error) {
	w := &work{f: f, j: j, versions: map[int64]*record.ConfigVersion{}, bound: map[boundKey]bool{}}
	visible, err := f.business(ctx, j.Caller, j.Biz)
	if err != nil {
		return nil, err
	}
	if w.rec, err = f.wholeBusiness(ctx, j.Caller, j.Biz); err != nil {
		return nil, err
	}
	if w.templates, err = f.templates(ctx, &w.rec, j.Biz); err != nil {
		return nil, err
	}
	if w.active, err = f.o.Store.ActiveConfigVersions(ctx, j.Biz); err != nil {
		return nil, err
	}
	w.renderer = f.newRenderer(ctx, &w.rec, w.templates, w.active)
	w.renderer.only(&visible)

	// Read what the templates are bound to.
	seen := map[record.ConfigObject]bool{}
	var objects []record.ConfigObject
	for _, t := range tasks {
		if at, known := w.renderer.spots[t.Process]; known && !seen[objectAt(at)] {
			seen[objectAt(at)] = true
			objects = append(objects, objectAt(at))
		}
	}
	list, err := f.o.Store.ConfigBindingsOf(ctx, j.Biz, objects)
	for i := range list {
		w.bound[boundKey{list[i].Template, list[i].Object}] = true
	}
	for i := range w.rec.Business.Templates {
		t := &w.rec.Business.Templates[i]
		for _, o := range objectsOf(t) {
			w.bound[boundKey{int64(t.ID), o}] = true
		}
	}
	return w, err
}

// objectAt is the object by which templates are bound to a process.
func objectAt(s topology.Spot) record.ConfigObject {
	return objectOf(&topology.Row{Process: s.Process.ID, Template: s.Process.Template})
}

// chosen are the templates of a task: of those that are bound to its process, the ones that the job names, or all.
func (w *work) chosen(at topology.Spot) (list []*record.ConfigListed) {
	for i := range w.templates {
		t := &w.templates[i]
		named := len(w.j.Choice.Templates) == 0 || slices.Contains(w.j.Choice.Templates, t.ID)
		if named && w.bound[boundKey{t.ID, objectAt(at)}] {
			list = append(list, t)
		}
	}
	return list
}

// made is a file of a task.
type made struct {
	task *record.JobTask
	of   *record.ConfigListed
	file record.ConfigInstance

	before *record.ConfigInstance // what the host must have now; nil: anything
}

// generate renders the files of some tasks and records them.
func (w *work) generate(ctx context.Context, tasks []*record.JobTask) error {
	// Render.
	var all []made
	for _, t := range tasks {
		if !w.f.mayConfigure(w.j.Caller, w.j.Biz, targetOf(t)) {
			failWith(t, record.ReasonRefused, fmt.Sprintf(w.j.Caller.Form("app %s may not configure this host of business %d",
				"user %s may not configure this host of business %d"), w.j.Caller.Named(), w.j.Biz))
			continue
		}
		files, err := w.renderTask(ctx, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if !w.reject(t, err) {
				return err
			}
			continue
		}
		all = append(all, files...)
	}

	// Record.
	list := make([]record.ConfigInstance, len(all))
	for i := range all {
		list[i] = all[i].file
	}
	err := w.f.o.Store.AddConfigInstances(ctx, w.j.Biz, list)
	if gozzard.KindOf(err) == gozzard.ErrInvalid { // there is no room for them
		return w.f.failAll(tasks, func([]*record.JobTask) error { return nil }, record.ReasonRefused, err.Error())
	}
	if err != nil {
		return err
	}

	done := map[*record.JobTask][]record.ConfigDone{}
	for i := range all {
		done[all[i].task] = append(done[all[i].task], doneWith(all[i].of, &list[i]))
	}
	return w.finish(tasks, done)
}

// finish ends the tasks that did not fail, and writes what all of them did.
func (w *work) finish(tasks []*record.JobTask, done map[*record.JobTask][]record.ConfigDone) error {
	for _, t := range tasks {
		if t.State == record.JobRunning {
			t.State = record.JobSucceeded
		}
		t.Ended = w.f.o.Now()
		var err error
		if t.Result, err = json.Marshal(done[t]); err != nil {
			return fmt.Errorf("cannot encode the result of a task: %w", err)
		}
	}
	return nil
}

func doneWith(t *record.ConfigListed, c *record.ConfigInstance) record.ConfigDone {
	return record.ConfigDone{Instance: c.ID, Version: c.Version, Template: c.Template, TemplateName: t.Name, Name: c.Name, Path: c.Path, Owner: t.Owner,
		CRLF: t.LineSeparator != "" && t.LineSeparator != "LF", Hash: hex.EncodeToString(c.Hash[:])}
}

// errUnbound: no template is bound to a process.
var errUnbound = errors.New("no configuration template is bound to the process")

// renderTask renders all files of a task.
func (w *work) renderTask(ctx context.Context, t *record.JobTask) (files []made, err error) {
	at, known := w.renderer.spots[t.Process]
	if !known {
		return nil, noProcess(t.Process)
	}
	templates := w.chosen(at)
	if len(templates) == 0 {
		return nil, errUnbound
	}
	for _, tpl := range templates {
		v, err := w.activeOf(ctx, tpl)
		if err != nil {
			return nil, err
		}
		c, err := w.renderer.file(ctx, &tpl.ConfigTemplate, v, at, t.Local, t.Inst)
		if err != nil {
			return nil, err
		}
		c.Hash, c.Created, c.CreatedBy = sha256.Sum256([]byte(c.Content)), w.f.o.Now(), w.j.Caller.User
		files = append(files, made{task: t, of: tpl, file: c})
	}
	return files, nil
}

// activeOf reads the active version of a template.
func (w *work) activeOf(ctx context.Context, t *record.ConfigListed) (*record.ConfigVersion, error) {
	id := w.active[t.ID]
	if id == 0 {
		return nil, noActive(t.Name)
	}
	if v := w.versions[id]; v != nil {
		return v, nil
	}
	v, err := w.f.o.Store.ConfigVersion(ctx, w.j.Biz, id)
	if err == nil {
		w.versions[id] = &v
	}
	return &v, err
}

// reject writes an error that is about a task into it. It returns false for an error of the record.
func (w *work) reject(t *record.JobTask, err error) bool {
	t.State, t.Reason, t.Message = record.JobFailed, record.ReasonNone, err.Error()
	var f *record.ConfigFault
	switch {
	case errors.Is(err, errUnbound):
		t.State, t.Reason = record.JobIgnored, record.ReasonUnbound
	case errors.As(err, &f):
		t.Reason, t.Message = reasonOf(f), f.Name
		if f.Kind == record.ConfigUnrendered && f.Line > 0 {
			t.Message = fmt.Sprintf("%d\n%s\n%s", f.Line, f.Source, f.Name)
			if f.Hint != "" { // GSEKit's pages have three lines
				t.Message += "\n" + f.Hint
			}
		}
	default:
		t.State = record.JobRunning
		return false
	}
	return true
}

// reasonOf is the reason of a task that failed with a fault.
func reasonOf(f *record.ConfigFault) record.JobReason {
	switch f.Kind {
	case record.ConfigNoActive:
		return record.ReasonNoActive
	case record.ConfigUnsafe:
		return record.ReasonUnsafe
	case record.ConfigNoInclude:
		return record.ReasonInclude
	case record.ConfigNoProcess:
		return record.ReasonGone
	}
	return record.ReasonRender
}
