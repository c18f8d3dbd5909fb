package host

import "strings"

// plainExec splits a start command that only has its shell become another program: exec /path/to/program and
// arguments, nothing in it that a shell would read another meaning into. Such a program is started without the
// shell, which is half of the cost of a start. ok is false for all other texts.
func plainExec(text string) (args []string, ok bool) {
	rest, ok := strings.CutPrefix(text, "exec ")
	if !ok || strings.ContainsFunc(rest, func(r rune) bool { return !isPlain(r) }) {
		return nil, false
	}
	args = strings.Fields(rest)
	// By path: looking it up is the shell's. A word with = in front of the program would be a variable.
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
