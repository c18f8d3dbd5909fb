package configfile

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

const (
	rendersAtOnce = 4 // of jobs of the whole server: each may take some seconds and megabytes
	// maxRendering is the time that one job has for all its templates. A usual one takes some microseconds.
	maxRendering = 10 * time.Minute
	maxCompiled  = 1000
)

// limits bound what one template may use.
func limits() mako.Limits {
	return mako.Limits{Text: record.MaxConfigContent, Output: record.MaxConfigContent, Memory: 64 << 20, Steps: 10_000_000,
		Time: 5 * time.Second}
}

// renderer renders templates for process instances of one business, as it was when the renderer was made. It is not for use by
// several goroutines at a time.
type renderer struct {
	f        *Files
	rec      *record.Business
	included func(name string) (string, error)
	spots    map[int]topology.Spot
	numbers  map[int]topology.Numbers
	trees    map[topology.Env]*topology.Tree
	compiled map[string]*mako.Template
	spent    time.Duration
	preview  bool // it has a turn already, and templates have the variable HELP
	partial  bool // rec is only what the caller may see: templates that use the tree are rejected
}

// newRenderer makes a renderer. templates and active are those of the business.
func (f *Files) newRenderer(ctx context.Context, rec *record.Business, templates []record.ConfigListed, active map[int64]int64) *renderer {
	r := &renderer{f: f, rec: rec, spots: spotsOf(&rec.Business), numbers: map[int]topology.Numbers{},
		trees: map[topology.Env]*topology.Tree{}, compiled: map[string]*mako.Template{}}
	for _, n := range rec.Numbers {
		r.numbers[n.Process] = n
	}

	r.included = func(name string) (string, error) {
		for i := range templates {
			t := &templates[i]
			if t.Name != name {
				continue
			}
			if active[t.ID] == 0 {
				return "", noActive(t.Name)
			}
			v, err := f.o.Store.ConfigVersion(ctx, t.Biz, active[t.ID])
			return mako.Blanks(v.Content), err
		}
		return "", fault(record.ConfigNoInclude, name, gozzard.Errorf(gozzard.ErrInvalid, "the included template %q does not exist", name))
	}
	return r
}

// spotsOf finds the processes of a business.
func spotsOf(b *topology.Business) map[int]topology.Spot {
	spots := map[int]topology.Spot{}
	for i := range b.Sets {
		for j := range b.Sets[i].Modules {
			m := &b.Sets[i].Modules[j]
			for k := range m.Instances {
				for p := range m.Instances[k].Processes {
					process := &m.Instances[k].Processes[p]
					spots[process.ID] = topology.Spot{Set: &b.Sets[i], Module: m, Service: &m.Instances[k], Process: process}
				}
			}
		}
	}
	return spots
}

func noActive(name string) error {
	return fault(record.ConfigNoActive, name, gozzard.Errorf(gozzard.ErrInvalid, "the configuration template %q has no active version", name))
}

// render renders a text for an instance of a process.
func (r *renderer) render(ctx context.Context, text string, at topology.Spot, local, inst int) (string, error) {
	if !r.preview { // wait for a turn
		select {
		case r.f.rendering <- struct{}{}:
			defer func() { <-r.f.rendering }()
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if r.spent > maxRendering {
		return "", renderFault(&mako.RenderError{Message: "the templates of this job took too long together"})
	}
	begin := time.Now()
	defer func() { r.spent += time.Since(begin) }()

	t, err := r.compile(text)
	if err != nil {
		return "", renderFault(err)
	}
	env := r.trees[at.Set.Env]
	if env == nil {
		env = r.rec.Business.Tree(at.Set.Env)
		r.trees[at.Set.Env] = env
	}
	with := env.Context(at, local, inst, r.f.o.Now())
	if r.preview {
		topology.AddHelp(with)
	}
	if r.partial {
		with.NoTree = noTree()
	}
	out, err := t.Render(ctx, with, limits())
	if err != nil {
		return "", renderFault(err)
	}
	return out, nil
}

// compile checks a text, takes in what it includes, and compiles it. Texts of one job are often equal.
func (r *renderer) compile(text string) (*mako.Template, error) {
	if t := r.compiled[text]; t != nil {
		return t, nil
	}
	t, err := mako.Load(text, r.included, limits())
	if err != nil {
		return nil, err
	}
	if len(r.compiled) >= maxCompiled {
		clear(r.compiled)
	}
	r.compiled[text] = t
	return t, nil
}

// renderFault makes an error of a template one that callers know.
func renderFault(err error) error {
	var check *mako.CheckError
	var wrong *mako.RenderError
	switch {
	case errors.As(err, &check):
		return fault(record.ConfigUnsafe, check.Message, record.UnsafeError(check.Message))
	case errors.As(err, &wrong):
		return &record.ConfigFault{Kind: record.ConfigUnrendered, Name: wrong.Message, Line: wrong.Line, Source: wrong.Source, Hint: wrong.Hint,
			Err: gozzard.Errorf(gozzard.ErrInvalid, "the template cannot be rendered: %v", wrong)}
	}
	return err
}

// file renders a version of a template for an instance of a process.
func (r *renderer) file(ctx context.Context, t *record.ConfigTemplate, v *record.ConfigVersion, at topology.Spot, local,
	inst int) (c record.ConfigInstance, err error) {
	if c.Content, err = r.render(ctx, v.Content, at, local, inst); err != nil {
		return c, err
	}
	if c.Name, err = r.render(ctx, t.FileName, at, local, inst); err != nil {
		return c, err
	}
	if c.Path, err = r.render(ctx, t.Path, at, local, inst); err != nil {
		return c, err
	}
	c.Template, c.Version, c.Process, c.Inst = t.ID, v.ID, at.Process.ID, inst
	return c, checkPlace(&c)
}

// checkPlace rejects a rendered name that leaves its folder, and a folder that is not absolute.
func checkPlace(c *record.ConfigInstance) error {
	wrong := func(what, text string) error {
		return renderFault(&mako.RenderError{Message: what + ": " + text})
	}
	switch {
	case c.Name == "" || c.Name == "." || c.Name == ".." || len(c.Name) > 255 || strings.ContainsAny(c.Name, "/\\\x00\n\r"):
		return wrong("this cannot be the name of a file", c.Name)
	case strings.ContainsAny(c.Path, "\x00\n\r") || len(c.Path) > maxPath || !path.IsAbs(c.Path) && !isDrive(c.Path):
		return wrong("this is not the absolute path of a folder", c.Path)
	}
	c.Path = path.Clean(c.Path)
	return nil
}

// isDrive reports whether a path begins with a drive of Windows.
func isDrive(p string) bool {
	return len(p) > 2 && p[1] == ':' && strings.ContainsAny(p[2:3], `/\`)
}

// instOf is the number of an instance within its module.
func (r *renderer) instOf(process, local int) int {
	if n, ok := r.numbers[process]; ok {
		return n.Inst(local)
	}
	return local
}

// Rendered is the file of a template for one instance of a process, as a release would write it now. With content it is as if that
// were the active version. Nothing is stored.
func (f *Files) Rendered(ctx context.Context, caller gozzard.Caller, biz int, template int64, process, local int,
	content *string) (record.ConfigRendered, error) {
	t, err := f.Template(ctx, caller, biz, template)
	out := record.ConfigRendered{Template: t.ConfigTemplate}
	if err != nil {
		return out, err
	}
	_, rows := f.o.Plane.FindProcesses(caller, topology.Query{Biz: biz, Processes: []int{process}, Limit: 1})
	if len(rows) == 0 {
		return out, noProcess(process)
	}
	out.Row = rows[0]
	i := slices.IndexFunc(rows[0].Instances, func(x topology.RowInstance) bool { return x.Local == local })
	if i < 0 {
		return out, fault(record.ConfigNoProcessInstance, strconv.Itoa(process),
			gozzard.Errorf(gozzard.ErrNotFound, "process %d has no instance %d", process, local))
	}
	out.Inst = rows[0].Instances[i]

	// Read the business: the whole of it, if a release by this caller would render the same.
	partial := !caller.Rights.SeesBusinessHosts(biz)
	if partial && content == nil {
		if partial, err = f.configuresNone(ctx, caller, biz, rows); err != nil {
			return out, err
		}
	}
	read := f.wholeBusiness
	if partial {
		read = f.business
	}
	rec, err := read(ctx, caller, biz)
	if err != nil {
		return out, err
	}

	// Render it.
	templates, err := f.templates(ctx, &rec, biz)
	if err != nil {
		return out, err
	}
	active, err := f.o.Store.ActiveConfigVersions(ctx, biz)
	if err != nil {
		return out, err
	}
	v := record.ConfigVersion{}
	switch {
	case content != nil:
		v.Content = *content
		if err := checkVersion(&v); err != nil {
			return out, err
		}
	case active[template] == 0:
		return out, noActive(t.Name)
	default:
		if v, err = f.o.Store.ConfigVersion(ctx, biz, active[template]); err != nil {
			return out, err
		}
	}
	r := f.newRenderer(ctx, &rec, templates, active)
	r.partial = partial
	at, found := r.spots[process]
	if !found {
		return out, noProcess(process)
	}
	c, err := r.file(ctx, &t.ConfigTemplate, &v, at, local, out.Inst.Inst)
	if err != nil {
		return out, err
	}
	out.Path = whole(&c)
	out.Content, err = lineEnds(&t).Apply([]byte(c.Content))
	return out, err
}
