package topology

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Naming has the values of the names in the texts of a process.
type Naming struct {
	SetName, ModuleName, Alias string
	Local, Inst                int // see Numbers
}

// Define makes the definition of one instance of a process. The work path, the pid file, the commands and the values of env
// are templates; Naming.value lists the names that they may use. An attribute that cannot be rendered is an error that
// names it.
//
// Values go into commands as they are, without quotes, because Define does not know which quotes are around the
// expression. That is safe: Check rejects a process that uses the name of its set, its module or its own if that name has
// characters which mean something to a shell.
func (d *Definer) Define(ctx context.Context, p *Process, n Naming) (*gozzard.Spec, error) {
	var fault error
	render := func(attribute, text string) string {
		if fault != nil {
			return ""
		}
		out, err := d.render(ctx, n, text)
		switch {
		case err != nil:
			fault = fmt.Errorf("%s of process %d cannot be rendered: %w", attribute, p.ID, err)
		case strings.ContainsRune(out, 0): // an expression can make one
			fault = fmt.Errorf("%s of process %d has a NUL character when it is rendered", attribute, p.ID)
		}
		return out
	}

	s := p.more(n, render)
	s.Policy.StartCheckSecs = cmp.Or(p.StartCheckSecs, s.Policy.StartCheckSecs)
	s.Policy.OpTimeout = cmp.Or(p.Timeout, s.Policy.OpTimeout)
	s.Identity.ProcName = cmp.Or(p.FuncName, p.Name)
	s.Identity.SetupPath, s.Identity.PIDPath = render("work_path", p.WorkPath), render("pid_file", p.PIDFile)
	s.Identity.User = p.User
	s.Control.Start, s.Control.Stop = render("start_cmd", p.Start), render("stop_cmd", p.Stop)
	s.Control.Restart, s.Control.Reload = render("restart_cmd", p.Restart), render("reload_cmd", p.Reload)
	s.Control.Kill = render("face_stop_cmd", p.ForceStop)
	if fault != nil {
		return nil, fault
	}

	for attribute, path := range map[string]string{"work_path": s.Identity.SetupPath, "pid_file": s.Identity.PIDPath} {
		if path != "" && (!cleanPath(path) || checkLine(path, maxPath) != "") {
			return nil, fmt.Errorf("%s of process %d becomes %q, which is not a clean absolute path", attribute, p.ID, path)
		}
	}
	return &s, nil
}

// Missing lists the attributes that an action needs and that the process does not have, by their names in documents.
func Missing(p *Process, a gozzard.Action) []string {
	command, key := "", ""
	switch a {
	case gozzard.ActionStart, gozzard.ActionHost:
		command, key = p.Start, "start_cmd"
	case gozzard.ActionStop:
		command, key = p.Stop, "stop_cmd"
	case gozzard.ActionRestart:
		command, key = p.Restart, "restart_cmd"
	case gozzard.ActionReload:
		command, key = p.Reload, "reload_cmd"
	case gozzard.ActionKill:
		command, key = p.ForceStop, "face_stop_cmd"
	default:
		return nil
	}

	var missing []string
	for _, need := range []struct{ key, value string }{
		{key, command}, {"work_path", p.WorkPath}, {"pid_file", p.PIDFile}, {"user", p.User},
	} {
		if need.value == "" {
			missing = append(missing, need.key)
		}
	}

	return missing
}

// value is the value of a name, as text. Each has its current name, and one that older texts use.
func (n Naming) value(name string) (string, bool) {
	switch name {
	case "bk_set_name", "SetName":
		return n.SetName, true
	case "bk_module_name", "ModuleName":
		return n.ModuleName, true
	case "bk_process_name", "FuncID":
		return n.Alias, true
	}
	number, ok := n.number(name)
	return strconv.Itoa(number), ok
}

// number is the value of a name that is a number.
func (n Naming) number(name string) (int, bool) {
	switch name {
	case "inst_id", "InstID":
		return n.Inst, true
	case "inst_id_0", "InstID0":
		return n.Inst - 1, true
	case "local_inst_id", "LocalInstID":
		return n.Local, true
	case "local_inst_id0", "LocalInstID0":
		return n.Local - 1, true
	}
	return 0, false
}

// maxPlaceholder limits the length of a name with the spaces around it, between ${ and }. Without a limit, a text with
// many "${" would take quadratic time.
const maxPlaceholder = 32

// expand renders a text that has only names in it, which nearly all have. It reports false if the text has anything else:
// then the template engine has to render it.
func (n Naming) expand(text string) (string, bool) {
	if !onlyNames(text) {
		return "", false
	}
	begin := strings.Index(text, "${")
	if begin < 0 {
		return text, true
	}

	var b strings.Builder
	for ; begin >= 0; begin = strings.Index(text, "${") {
		b.WriteString(text[:begin])
		text = text[begin:]
		name, _, closed := strings.Cut(text[2:min(len(text), 2+maxPlaceholder)], "}")
		value, known := n.value(strings.Trim(name, " "))
		if !closed || !known {
			return "", false
		}
		b.WriteString(value)
		text = text[2+len(name)+1:]
	}

	b.WriteString(text)
	return b.String(), true
}

// onlyNames reports whether a text has no part of a template except ${...}: no control line, comment, tag or joined line.
func onlyNames(text string) bool {
	for _, mark := range []string{"<%", "</%", "<&", "</&", "\\\n", "\\\r\n"} {
		if strings.Contains(text, mark) {
			return false
		}
	}
	if strings.HasPrefix(text, "#") { // a line that names the coding of the text is left out
		return false
	}
	if !strings.ContainsAny(text, "%#") {
		return true
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimLeft(line, " \t")
		if strings.HasPrefix(line, "%") || strings.HasPrefix(line, "##") {
			return false
		}
	}
	return true
}
