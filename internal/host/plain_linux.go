package host

import "strings"

// plainExec splits a start command that only executes another program: "exec /path/to/program" with plain arguments
// that a shell would not change. Such a program is started without the shell, which saves half of the cost of a
// start. ok is false for all other commands.
func plainExec(text string) (args []string, ok bool) {
	rest, ok := strings.CutPrefix(text, "exec ")
	if !ok || strings.ContainsFunc(rest, func(r rune) bool { return !isPlain(r) }) {
		return nil, false
	}
	args = strings.Fields(rest)
	// Only by path: searching PATH is the task of the shell. A word with = before the program would be a variable.
	if len(args) == 0 || !strings.Contains(args[0], "/") || strings.ContainsAny(args[0], "=") || args[0][0] == '-' {
		return nil, false
	}
	return args, true
}

func isPlain(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune(" _./:=,@%+-", r)
}
