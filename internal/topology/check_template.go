package topology

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
)

// Limits of configuration templates. They are what BlueKing's clients can store.
const (
	maxTemplateName = 128 // 32 characters in any script
	maxFileName     = 255
	maxBindings     = 100_000 // of one template
)

// templates checks the configuration templates, and that what they are bound to exists.
func (c *checker) templates(b *Business) {
	if len(b.Templates) == 0 {
		return
	}

	processes := map[int]*Process{}
	b.each(func(s processAt) { processes[s.process.ID] = s.process })
	ids, names := map[int]int{}, map[string]int{}
	for i := range b.Templates {
		t, path := &b.Templates[i], fmt.Sprintf("config_templates[%d]", i)
		c.id(path+".id", t.ID)
		if first, twice := ids[t.ID]; twice {
			c.fault(path+".id", "%d is already the id of config_templates[%d]", t.ID, first)
		} else {
			ids[t.ID] = i
		}
		if first, twice := names[t.Name]; twice && t.Name != "" {
			c.fault(path+".name", "%q is already the name of config_templates[%d]", t.Name, first)
		} else {
			names[t.Name] = i
		}
		c.template(t, path)

		// A process with a template gets its files through that template.
		c.bindings(path+".bind.templates", t.Templates, nil)
		c.bindings(path+".bind.processes", t.Processes, func(id int) string {
			switch p := processes[id]; {
			case p == nil:
				return fmt.Sprintf("there is no process %d", id)
			case p.Template != 0:
				return fmt.Sprintf("process %d has template %d: bind to that", id, p.Template)
			}
			return ""
		})
	}
}

func (c *checker) template(t *ConfigTemplate, path string) {
	word := func(key, s string, most int) {
		why := checkText(s, most)
		if why == "" && strings.ContainsAny(s, " \u00a0\u3000") {
			why = fmt.Sprintf("%q has a space", s)
		}
		if why != "" {
			c.fault(path+"."+key, "%s", why)
		}
	}

	word("name", t.Name, maxTemplateName)
	word("file_name", t.FileName, maxFileName)

	for _, x := range []struct{ key, name string }{{"owner", t.Owner}, {"group", t.Group}} {
		if x.name == "" {
			continue
		}
		word(x.key, x.name, maxShort)
		if err := gozzard.ValidateName(x.name); err != nil {
			c.fault(path+"."+x.key, "cannot be the name of an account or a group: %v", err)
		}
	}
	if strings.ContainsAny(t.FileName, `/\`) {
		c.fault(path+".file_name", "%q must be the name of a file, without folders", t.FileName)
	}

	switch why := checkLine(t.Path, maxPath); {
	case t.Path == "":
		c.fault(path+".abs_path", "required")
	case why != "":
		c.fault(path+".abs_path", "%s", why)
	case !cleanPath(t.Path):
		c.fault(path+".abs_path", "%q is not a clean absolute path", t.Path)
	}

	if _, err := gozzard.ParseFileMode(t.Mode); t.Mode != "" && err != nil {
		c.fault(path+".mode", `%+.40q is not three or four octal digits up to 0777, such as "0644"`, t.Mode)
	}
}

// bindings checks a list of ids. If problem is not nil, it says why a template cannot be bound to an id.
func (c *checker) bindings(path string, list []int, problem func(id int) string) {
	if len(list) > maxBindings {
		c.fault(path, "has %d entries, at most %d are allowed", len(list), maxBindings)
		return
	}

	seen := map[int]bool{}
	for i, id := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case id < 1 || id > maxID:
			c.number(at, id, 1, maxID)
		case seen[id]:
			c.fault(at, "%d is in the list already", id)
		case problem != nil:
			if why := problem(id); why != "" {
				c.fault(at, "%s", why)
			}
		}
		seen[id] = true
	}
}
