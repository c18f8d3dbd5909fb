package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/gozzard/gozzard"
)

// Limits of texts, in bytes, and of seconds. They are the same as for definitions through other doors.
const (
	maxNameText = 1024 // CMDB allows 256 characters
	maxCommand  = 16 << 10
	maxPath     = 4096
	maxShort    = 255
	maxSeconds  = 86400
)

// Unusable lists the attributes of a process that cannot be used, by their names in documents. set and module are the
// names of the set and module that it belongs to.
func (p *Process) Unusable(set, module string) []gozzard.Fault {
	var faults []gozzard.Fault
	check := func(key, why string) {
		if why != "" {
			faults = append(faults, gozzard.Fault{Path: key, Text: why})
		}
	}

	n := Naming{SetName: set, ModuleName: module, Alias: p.Name, Local: 1, Inst: 1}
	check("func_name", checkProgram(p.FuncName))
	check("func_id", checkLine(p.FuncID, maxShort))
	check("bind_info", checkBindInfo(p.BindInfo))
	check("template_id", checkNumber(p.Template, maxID))
	check("proc_num", checkNumber(p.Num, maxCount))
	check("priority", checkNumber(p.Priority, maxID))
	check("user", checkLine(p.User, maxShort))
	check("work_path", n.checkPath(p.WorkPath))
	check("pid_file", n.checkPath(p.PIDFile))
	check("start_cmd", n.checkCommand(p.Start))
	check("stop_cmd", n.checkCommand(p.Stop))
	check("restart_cmd", n.checkCommand(p.Restart))
	check("reload_cmd", n.checkCommand(p.Reload))
	check("face_stop_cmd", n.checkCommand(p.ForceStop))
	check("timeout", checkNumber(p.Timeout, maxSeconds))
	check("start_check_secs", checkNumber(p.StartCheckSecs, maxSeconds))
	return faults
}

// CheckAlias returns an error when the alias cannot be part of the keys of the process's instances.
func (p *Process) CheckAlias() error {
	if err := gozzard.ValidateProcessName(p.Name); err != nil {
		return err
	}
	if last := Key(0, p.Name, min(p.Count(), maxCount)).Name; len(last) > gozzard.MaxProcessNameBytes {
		return fmt.Errorf("has %d bytes, at most %d are allowed with its instance numbers", len(p.Name),
			len(p.Name)+gozzard.MaxProcessNameBytes-len(last))
	}
	if !norm.NFC.IsNormalString(p.Name) {
		return fmt.Errorf("%+q is not in Unicode normal form C", p.Name)
	}
	return nil
}

// checkText says what is wrong with a name that people read, or "". All visible characters are allowed, and blanks at
// its ends belong to it: CMDB has such names, and they are other names than those without.
func checkText(s string, most int) string {
	switch {
	case s == "":
		return "required"
	case strings.TrimSpace(s) == "":
		return fmt.Sprintf("%+.80q has blanks only", s)
	case !norm.NFC.IsNormalString(s):
		return fmt.Sprintf("%+.80q is not in Unicode normal form C", s)
	}
	return checkLine(s, most)
}

// checkLine says what is wrong with a text of one line, or "". The text may be empty.
func checkLine(s string, most int) string {
	switch {
	case len(s) > most:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), most)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case !gozzard.IsPlainLine(s):
		return fmt.Sprintf("%+.80q has control or direction characters", s)
	}
	return ""
}

func checkNumber(n, most int) string {
	if n < 0 || n > most {
		return fmt.Sprintf("must be 0 to %d, is %d", most, n)
	}
	return ""
}

func checkProgram(s string) string {
	if strings.ContainsAny(s, `/\`) {
		return "is the name of a program as its system shows it, not a path"
	}
	return checkLine(s, maxShort)
}

// checkBindInfo says what is wrong with a list of addresses, or "". Only its form is checked: it is passed on as it is.
func checkBindInfo(s string) string {
	var list []map[string]any
	switch {
	case s == "":
		return ""
	case len(s) > maxCommand:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), maxCommand)
	case json.Unmarshal([]byte(s), &list) != nil || list == nil:
		return fmt.Sprintf("%.80q is not a list of objects in JSON", s)
	}
	return ""
}

// checkPath checks a path as it will be after its placeholders are replaced.
func (n Naming) checkPath(p string) string {
	if p == "" {
		return ""
	}
	if why := checkLine(p, maxPath); why != "" {
		return why
	}
	// A path that cannot be rendered fails with the operation that needs it, not the whole document. A document may have very
	// many paths, so each gets few steps here.
	path, err := (&Definer{steps: 2000}).render(context.Background(), n, p)
	if err == nil && !cleanPath(path) {
		return fmt.Sprintf("%q is not a clean absolute path", path)
	}
	return n.checkMentions(p)
}

func (n Naming) checkCommand(cmd string) string {
	switch {
	case len(cmd) > maxCommand:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(cmd), maxCommand)
	case !utf8.ValidString(cmd):
		return "is not valid UTF-8"
	case strings.ContainsRune(cmd, 0):
		return "has a NUL character"
	}
	return n.checkMentions(cmd)
}

// checkMentions rejects a text with the placeholder of a set, a module or the alias, if the name of that has characters
// which mean something to a shell.
func (n Naming) checkMentions(text string) string {
	set, module, alias := mentions(text)
	switch {
	case alias && !isShellSafe(n.Alias):
		return fmt.Sprintf("has the name of its process in it, but %q has characters that mean something to a shell: "+
			"rename the process, or do not use ${bk_process_name}", n.Alias)
	case set && !isShellSafe(n.SetName):
		return fmt.Sprintf("has the name of its set in it, but %q has characters that mean something to a shell: "+
			"rename the set, or do not use ${bk_set_name}", n.SetName)
	case module && !isShellSafe(n.ModuleName):
		return fmt.Sprintf("has the name of its module in it, but %q has characters that mean something to a shell: "+
			"rename the module, or do not use ${bk_module_name}", n.ModuleName)
	}
	return ""
}

// isShellSafe reports whether a name has no special meaning in the commands of any shell: of ASCII it has only letters,
// digits, _ - . @ + and inner spaces, beyond ASCII any printable character. It does not look like an option or a hidden
// file. The author of a command has to put quotes around the placeholder of a name with spaces.
func isShellSafe(name string) bool {
	if name == "" || name[0] == '-' || name[0] == '.' {
		return false
	}
	for _, r := range name {
		switch {
		case r >= utf8.RuneSelf && unicode.IsPrint(r):
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.@+ ", r):
		default:
			return false
		}
	}
	return true
}

// cleanPath accepts absolute paths of Unix and Windows without empty, "." and ".." parts. One final separator is
// allowed, because many people write folders with one.
func cleanPath(p string) bool {
	rest, unix := strings.CutPrefix(p, "/")
	separators := "/"

	if !unix {
		if len(p) < 3 || p[0]|0x20 < 'a' || p[0]|0x20 > 'z' || p[1] != ':' || p[2] != '\\' && p[2] != '/' {
			return false
		}
		rest, separators = p[3:], `/\`
	}

	for rest != "" {
		part, tail := rest, ""
		if i := strings.IndexAny(rest, separators); i >= 0 {
			part, tail = rest[:i], rest[i+1:]
		}
		if part == "" || part == "." || part == ".." {
			return false
		}
		rest = tail
	}

	return true
}
