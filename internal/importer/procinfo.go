package importer

import (
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/yamldoc"
)

// Procinfo imports the processes that an agent of GSE keeps: its file procinfo.json, or .proc of version 2.
func Procinfo(files []File, w World) (*Result, error) {
	res := &Result{}
	for _, f := range files {
		root, err := yamldoc.Parse(f.Text)
		if err != nil {
			e := err.(*yamldoc.Error)
			return nil, fault(f.Name, e.Line, "%s", e.Text)
		}
		list := root.Get("proc")
		if list == nil || list.Kind != yamldoc.List {
			return nil, fault(f.Name, 1, `must have a list "proc"`)
		}
		for i := range list.Kids {
			if list.Kids[i].Kind != yamldoc.Mapping {
				return nil, fault(f.Name, int(list.Kids[i].Line), "a process must be a mapping, is %s", list.Kids[i].Kind)
			}
			p := procinfo{file: f.Name, node: &list.Kids[i]}
			if err := p.imports(res, &w); err != nil {
				return nil, err
			}
		}
	}
	return res, nil
}

// procinfo is a process of GSE that is being imported.
type procinfo struct {
	file string
	node *yamldoc.Node
}

func (p *procinfo) get(key string) entry {
	n := p.node.Get(key)
	if n == nil {
		return entry{file: p.file, line: int(p.node.Line), key: key}
	}
	return entry{p.file, int(n.Line), key, n.Text}
}

func (p *procinfo) number(key string) (float64, error) {
	e := p.get(key)
	if e.value == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(e.value, 64)
	if err != nil || !(n >= 0 && n < 1e9) {
		return 0, fault(e.file, e.line, "%s must be a number, is %q", key, clip(e.value))
	}
	return n, nil
}

// procinfoTexts are the keys whose texts mean the same in a definition.
var procinfoTexts = []struct{ theirs, ours string }{
	{"startCmd", "command"}, {"stopCmd", "stop"}, {"restartCmd", "restart_command"}, {"reloadCmd", "reload"}, {"killCmd", "kill"},
	{"versionCmd", "version"}, {"healthCmd", "health.command"}, {"setupPath", "folder"}, {"procName", "proc_name"}, {"pidPath", "pid_file"},
}

func (p *procinfo) imports(res *Result, w *World) error {
	// Its key.
	key := p.get("valuekey")
	namespace, name, ok := strings.Cut(key.value, ":")
	if !ok || name == "" {
		namespace, name = p.get("contact").value, p.get("procName").value
	}
	if name == "" {
		return fault(p.file, int(p.node.Line), "a process has neither valuekey nor procName")
	}
	d := newDraft(res, p.file, int(p.node.Line), name)
	d.proc.Comment = name + " of " + p.file
	if namespace != "" {
		d.proc.Namespace = namespace
	}

	// What has the same meaning.
	for _, t := range procinfoTexts {
		if e := p.get(t.theirs); strings.TrimSpace(e.value) != "" {
			d.set(t.ours, e.value)
		}
	}
	if err := p.numbers(d); err != nil {
		return err
	}
	p.account(d, w)
	d.finish(w)
	return nil
}

// numbers gives times and limits.
func (p *procinfo) numbers(d *draft) error {
	for _, t := range []struct{ theirs, ours string }{{"startCheckBeginTime", "start_check"}, {"opTimeOut", "timeout"}} {
		n, err := p.number(t.theirs)
		if err != nil {
			return err
		}
		if n > 0 {
			d.seconds(t.ours, n)
		}
	}
	for _, t := range []struct{ theirs, ours string }{{"cpulmt", "cpu"}, {"memlmt", "memory"}} {
		n, err := p.number(t.theirs)
		if err != nil {
			return err
		}
		if n > 0 {
			d.set(t.ours, strconv.FormatFloat(n, 'f', -1, 64)+"%")
		}
	}

	kind := p.get("type")
	switch kind.value {
	case "", "1":
	case "2":
		d.set("restart.policy", "never")
	case "0":
		d.note(Check, kind, "the file does not have the crontab rule of a periodic process", "add it as schedule")
	default:
		return fault(kind.file, kind.line, "type must be 0, 1 or 2, is %q", clip(kind.value))
	}
	return nil
}

func (p *procinfo) account(d *draft, w *World) {
	user := p.get("user")
	switch {
	case user.value != "":
		d.account(user, user.value)
	case w.User != "":
		d.account(entry{key: "--user", value: w.User}, w.User)
	}
	for _, key := range []string{"password", "userPwd"} {
		e := p.get(key)
		if e.value == "" || e.value == ":::"+user.value+"@@@" {
			continue
		}
		e.value = "" // a report is no place for a password
		d.note(Security, e, "passwords are not imported", "remove the password from the file when the move is done")
	}
}
