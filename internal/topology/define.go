package topology

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Naming is what the texts of a process may name.
type Naming struct {
	SetName, ModuleName, Alias string
	Local, Inst                int
}

// Define makes the definition under which one instance of a process is operated. In its work path, pid file and
// commands ${name} stands for a part of the naming, by one of the names in Naming.value; any other ${...} stays as
// it is and is the shell's. Nothing is evaluated, and a value is not looked into again.
//
// Values go into commands as they are, without quotes: nobody can tell from outside which quotes a command is
// inside of. That is safe because Check refuses a process that names its set or module while that has a character
// which means something to a shell, and aliases never have one.
func Define(p *Process, n Naming) *gozzard.Spec {
	policy := gozzard.DefaultPolicy()
	policy.StartCheckSecs = cmp.Or(p.StartCheckSecs, policy.StartCheckSecs)
	policy.OpTimeout = cmp.Or(p.Timeout, policy.OpTimeout)
	return &gozzard.Spec{
		Identity: gozzard.Identity{
			ProcName:  cmp.Or(p.FuncName, p.Name),
			SetupPath: n.expand(p.WorkPath),
			PIDPath:   n.expand(p.PIDFile),
			User:      p.User,
		},
		Control: gozzard.Control{
			Start:   n.expand(p.Start),
			Stop:    n.expand(p.Stop),
			Restart: n.expand(p.Restart),
			Reload:  n.expand(p.Reload),
			Kill:    n.expand(p.ForceStop),
		},
		Policy: policy,
	}
}

// Missing lists the attributes that an action needs and the process lacks, by their names in documents.
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
	for _, need := range []struct{ key, value string }{{key, command}, {"work_path", p.WorkPath},
		{"pid_file", p.PIDFile}, {"user", p.User}} {
		if need.value == "" {
			missing = append(missing, need.key)
		}
	}

	return missing
}

// value is what a name stands for: today's names first, then those of older texts.
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

// maxPlaceholder is how long what stands between ${ and } may be to be a name with some blanks around it.
const maxPlaceholder = 32

// expand puts values in place of names. Blanks around a name are allowed, as in the texts that come from CMDB.
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
		if !closed || !known { // it may hold the beginning of a name itself: ${a${inst_id}
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

// mentions reports whether a text names its set or its module.
func mentions(text string) (set, module bool) {
	if !strings.Contains(text, "${") {
		return false, false
	}
	const markSet, markModule = "\x00s", "\x00m" // no text has NUL
	text = Naming{SetName: markSet, ModuleName: markModule}.expand(text)
	return strings.Contains(text, markSet), strings.Contains(text, markModule)
}
