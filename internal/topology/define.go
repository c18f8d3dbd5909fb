package topology

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Naming has the values of the placeholders in the texts of a process.
type Naming struct {
	SetName, ModuleName, Alias string
	Local, Inst                int // see Numbers
}

// Define makes the definition of one instance of a process. It replaces the placeholders ${name} in the work path, the
// pid file and the commands; Naming.value lists the names. Any other ${...} stays as it is, for the shell. Define
// evaluates nothing, and does not replace placeholders inside of values.
//
// Values go into commands as they are, without quotes, because Define does not know which quotes are around the
// placeholder. That is safe: Check rejects a process with the placeholder of a set or module if that name has
// characters which mean something to a shell, and aliases never have such characters.
func Define(p *Process, n Naming) *gozzard.Spec {
	s := p.more(n)
	s.Policy.StartCheckSecs = cmp.Or(p.StartCheckSecs, s.Policy.StartCheckSecs)
	s.Policy.OpTimeout = cmp.Or(p.Timeout, s.Policy.OpTimeout)
	s.Identity.ProcName = cmp.Or(p.FuncName, p.Name)
	s.Identity.SetupPath, s.Identity.PIDPath = n.expand(p.WorkPath), n.expand(p.PIDFile)
	s.Identity.User = p.User
	s.Control.Start, s.Control.Stop = n.expand(p.Start), n.expand(p.Stop)
	s.Control.Restart, s.Control.Reload = n.expand(p.Restart), n.expand(p.Reload)
	s.Control.Kill = n.expand(p.ForceStop)
	return &s
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

// value is the value of a placeholder. Each has its current name, and one that older texts use.
func (n Naming) value(name string) (string, bool) {
	switch name {
	case "inst_id", "InstID":
		return strconv.Itoa(n.Inst), true
	case "inst_id_0", "InstID0":
		return strconv.Itoa(n.Inst - 1), true
	case "local_inst_id", "LocalInstID":
		return strconv.Itoa(n.Local), true
	case "local_inst_id0", "LocalInstID0":
		return strconv.Itoa(n.Local - 1), true
	case "bk_set_name", "SetName":
		return n.SetName, true
	case "bk_module_name", "ModuleName":
		return n.ModuleName, true
	case "bk_process_name", "FuncID":
		return n.Alias, true
	}
	return "", false
}

// maxPlaceholder limits the length of a name with the spaces around it, between ${ and }. Without a limit, a text with
// many "${" would take quadratic time.
const maxPlaceholder = 32

// expand replaces the placeholders in a text. Spaces around a name are allowed: texts from BlueKing CMDB have them.
func (n Naming) expand(text string) string {
	begin := strings.Index(text, "${")
	if begin < 0 {
		return text
	}

	var b strings.Builder
	for ; begin >= 0; begin = strings.Index(text, "${") {
		b.WriteString(text[:begin])
		text = text[begin:]
		name, _, closed := strings.Cut(text[2:min(len(text), 2+maxPlaceholder)], "}")
		value, known := n.value(strings.Trim(name, " "))
		if !closed || !known { // there may be a placeholder inside: ${a${inst_id}
			b.WriteString("${")
			text = text[2:]
			continue
		}
		b.WriteString(value)
		text = text[2+len(name)+1:]
	}

	b.WriteString(text)
	return b.String()
}

// mentions reports whether a text has the placeholder of its set or of its module.
func mentions(text string) (set, module bool) {
	if !strings.Contains(text, "${") {
		return false, false
	}
	const markSet, markModule = "\x00s", "\x00m" // checkCommand and checkLine reject NUL in texts
	text = Naming{SetName: markSet, ModuleName: markModule}.expand(text)
	return strings.Contains(text, markSet), strings.Contains(text, markModule)
}
