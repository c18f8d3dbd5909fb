package topology

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/gozzard/gozzard"
)

// Bounds of texts, in bytes, and of seconds: those of every other definition.
const (
	maxNameText = 256
	maxCommand  = 16 << 10
	maxPath     = 4096
	maxShort    = 255
	maxSeconds  = 86400
)

// Unusable lists the attributes of a process with which nothing can be done, by their names in documents. Set and
// module are the names of those that it stands in.
func (p *Process) Unusable(set, module string) []gozzard.Fault {
	var faults []gozzard.Fault
	note := func(key, why string) {
		if why != "" {
			faults = append(faults, gozzard.Fault{Path: key, Text: why})
		}
	}

	n := Naming{SetName: set, ModuleName: module, Alias: p.Name, Local: 1, Inst: 1}
	note("func_name", checkProgram(p.FuncName))
	note("template_id", checkNumber(p.Template, maxID))
	note("proc_num", checkNumber(p.Num, maxCount))
	note("priority", checkNumber(p.Priority, maxID))
	note("user", checkLine(p.User, maxShort))
	note("work_path", n.checkPath(p.WorkPath))
	note("pid_file", n.checkPath(p.PIDFile))
	note("start_cmd", n.checkCommand(p.Start))
	note("stop_cmd", n.checkCommand(p.Stop))
	note("restart_cmd", n.checkCommand(p.Restart))
	note("reload_cmd", n.checkCommand(p.Reload))
	note("face_stop_cmd", n.checkCommand(p.ForceStop))
	note("timeout", checkNumber(p.Timeout, maxSeconds))
	note("start_check_secs", checkNumber(p.StartCheckSecs, maxSeconds))
	return faults
}

// CheckAlias says why an alias cannot name the instances of a process to the fleet.
func (p *Process) CheckAlias() error {
	if err := gozzard.ValidateName(p.Name); err != nil {
		return err
	}
	if last := Key(0, p.Name, min(p.Count(), maxCount)).Name; len(last) > gozzard.MaxNameBytes {
		return fmt.Errorf("has %d bytes, at most %d are allowed with its instance numbers", len(p.Name),
			len(p.Name)+gozzard.MaxNameBytes-len(last))
	}
	if !norm.NFC.IsNormalString(p.Name) {
		return fmt.Errorf("%+q is not in Unicode normal form C", p.Name)
	}
	return nil
}

// checkText says what is wrong with a name that people read. It may have any sign that shows what it is.
func checkText(s string, most int) string {
	switch {
	case s == "":
		return "required"
	case strings.TrimSpace(s) != s:
		return fmt.Sprintf("%+.80q begins or ends with a blank", s)
	case !norm.NFC.IsNormalString(s):
		return fmt.Sprintf("%+.80q is not in Unicode normal form C", s)
	}
	return checkLine(s, most)
}

// checkLine says what is wrong with a text of one line, which may be empty.
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

// checkPath looks at a path as it will be, with the names in it.
func (n Naming) checkPath(p string) string {
	if p == "" {
		return ""
	}
	if why := checkLine(p, maxPath); why != "" {
		return why
	}
	if path := n.expand(p); !cleanPath(path) {
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

// checkMentions refuses a text that names a set or module whose name would mean more than itself there.
func (n Naming) checkMentions(text string) string {
	set, module := mentions(text)
	switch {
	case set && !inert(n.SetName):
		return fmt.Sprintf("names its set, but %q has characters that mean something to a shell: rename the set or write the text out", n.SetName)
	case module && !inert(n.ModuleName):
		return fmt.Sprintf("names its module, but %q has characters that mean something to a shell: rename the module or write the text out", n.ModuleName)
	}
	return ""
}

// inert reports whether a name is only itself in a command of any shell: letters, digits and _ - . @ + of ASCII,
// anything printable beyond, and inner blanks, which are left to the quotes of the command's author. It is no
// option and no folder above.
func inert(name string) bool {
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

// cleanPath accepts absolute paths of either system without empty, "." and ".." parts; one final separator is left
// to those who write folders so.
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
