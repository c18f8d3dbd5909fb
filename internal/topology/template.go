package topology

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
)

// Definer makes definitions. It keeps the templates that it has read, because the instances of a business have few different
// ones. The zero value is ready. It is not for use by several goroutines at a time.
type Definer struct {
	templates map[string]*mako.Template
	steps     uint64 // for each template, if not 0
	spent     time.Duration
}

const (
	maxKept = 10_000 // templates that a Definer keeps
	// maxSpent is the time that one Definer has for all its templates. One request may render a million of them, and a usual one
	// takes some microseconds.
	maxSpent = 30 * time.Second
)

// attributeLimits bound the templates in attributes: they are lines of text.
func attributeLimits() mako.Limits {
	return mako.Limits{Text: maxCommand, Output: maxCommand, Memory: 4 << 20, Steps: 50_000, Time: 2 * time.Second}
}

// attributeNames are the names that templates in attributes may use.
var attributeNames = []string{"inst_id", "inst_id_0", "local_inst_id", "local_inst_id0", "bk_set_name", "bk_module_name",
	"bk_process_name", "InstID", "InstID0", "LocalInstID", "LocalInstID0", "SetName", "ModuleName", "FuncID"}

// render renders a text of a process.
func (d *Definer) render(ctx context.Context, n Naming, text string) (string, error) {
	if out, done := n.expand(text); done {
		return out, nil
	}
	if d.spent > maxSpent {
		return "", &mako.RenderError{Message: fmt.Sprintf("the templates of this request took more than %v together", maxSpent)}
	}
	begin := time.Now()
	defer func() { d.spent += time.Since(begin) }()

	t := d.templates[text]
	if t == nil {
		var err error
		if t, err = mako.Compile(text, attributeLimits()); err != nil {
			return "", err
		}
		if d.templates == nil || len(d.templates) >= maxKept {
			d.templates = map[string]*mako.Template{}
		}
		d.templates[text] = t
	}
	limits := attributeLimits()
	if d.steps > 0 {
		limits.Steps = d.steps
	}
	return t.Render(ctx, n.context(), limits)
}

// context has the names for a template.
func (n Naming) context() *mako.Context {
	values := make(map[string]mako.Value, len(attributeNames))
	for _, name := range attributeNames {
		if number, ok := n.number(name); ok {
			values[name] = mako.Int(number)
			continue
		}
		text, _ := n.value(name)
		values[name] = mako.String(text)
	}
	return &mako.Context{Values: values, Now: time.Now(), Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		Unknown: n.unknown}
}

// unknown says what to write instead of a name that attributes do not have. A variable of the shell is the usual one.
func (n Naming) unknown(name string) string {
	if near := nearName(name, attributeNames); near != "" {
		return fmt.Sprintf("there is no variable %s, did you mean %s?", name, near)
	}
	return fmt.Sprintf("there is no variable %s; a variable of the shell is $%s, without braces", name, name)
}

// mentions reports whether a text uses the name of its set, of its module or of its process. A text that is no template cannot
// be rendered, so it mentions nothing.
func mentions(text string) (set, module, alias bool) {
	spelled := func(name string) bool { return strings.Contains(text, name) }
	if !slices.ContainsFunc([]string{"SetName", "bk_set_name", "ModuleName", "bk_module_name", "FuncID", "bk_process_name"}, spelled) {
		return false, false, false
	}

	t, err := mako.Compile(text, attributeLimits())
	if err != nil {
		return false, false, false
	}
	uses := func(current, old string) bool {
		return slices.Contains(t.Names(), current) || slices.Contains(t.Names(), old)
	}
	return uses("bk_set_name", "SetName"), uses("bk_module_name", "ModuleName"), uses("bk_process_name", "FuncID")
}
