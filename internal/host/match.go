package host

import (
	"path"
	"strings"
)

// commBytes is the length to which the kernel cuts the name of a program.
const commBytes = 15

// names are all names of a process.
type names struct {
	comm string // as the kernel stores it, cut
	exe  string // path, "" when unreadable
	args []string
}

// match reports whether a process has a name: the name of its executable, of its first argument, of the script that
// an interpreter runs, or the name that the kernel stores. A cut name decides only when no complete name
// contradicts it.
func (n names) match(want string) bool {
	// A complete name matches exactly.
	whole := n.whole()
	for _, w := range whole {
		if w == want {
			return true
		}
	}

	// So does the name that the kernel stores, or its beginning if the name was cut.
	if n.comm == want {
		return true
	}
	if len(want) <= commBytes || n.comm != want[:commBytes] {
		return false
	}

	// The cut name must not be the beginning of another complete name.
	for _, w := range whole {
		if len(w) > commBytes && w[:commBytes] == n.comm {
			return false
		}
	}

	return true
}

// whole lists the complete names.
func (n names) whole() []string {
	var out []string
	interpreted := false
	if n.exe != "" {
		out = append(out, path.Base(n.exe))
		interpreted = isInterpreter(path.Base(n.exe))
	}
	if len(n.args) > 0 && n.args[0] != "" {
		out = append(out, path.Base(n.args[0]))
		interpreted = interpreted || n.exe == "" && isInterpreter(path.Base(n.args[0]))
	}
	if s := n.script(); interpreted && s != "" {
		out = append(out, s)
	}

	return out
}

// script is the first argument that is not a flag, at the place where interpreters expect it.
func (n names) script() string {
	for i := 1; i < len(n.args) && i <= 3; i++ {
		if a := n.args[i]; a != "" && a[0] != '-' {
			return path.Base(a)
		}
	}
	return ""
}

// isInterpreter reports whether the first argument of a program is the script that it runs. Only for these programs
// an argument counts as a name: an editor that has the file of a service open is not the service.
func isInterpreter(base string) bool {
	switch strings.TrimRight(base, "0123456789.-") {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox", "python", "pypy", "perl", "ruby", "node",
		"nodejs", "php", "php-cli", "java", "lua", "luajit", "tclsh", "mono", "dotnet", "Rscript", "R", "guile", "deno", "bun":
		return true
	}
	return false
}

// shown is the name of the process for messages.
func (n names) shown() string {
	if len(n.args) > 0 && n.args[0] != "" && !strings.Contains(n.args[0], " ") { // with a blank it is a title
		if s := cleanCmdline([]string{path.Base(n.args[0])}); len(s) <= 64 {
			return s
		}
	}
	return cleanCmdline([]string{n.comm})
}
