package gozzard

import (
	"path"
	"strings"
)

// NamesProgram reports whether somebody wrote the name of the program. Otherwise it is the one that was read from the start
// command, and says nothing about a program that executes another one in its place. A name that is written and says the same
// as the command is no different: documents leave it out.
func (s *Spec) NamesProgram() bool { return s.Identity.ProcName != ProgramOf(s.Control.Start) }

// ProgramOf is the name of the program that a command executes, as the system will show it. It is "" if that cannot be
// read from the text.
func ProgramOf(command string) string {
	for word := range strings.FieldsSeq(command) {
		name, _, assigned := strings.Cut(word, "=")
		if word == "exec" || assigned && isVariable(name) {
			continue
		}

		word = strings.Trim(word, "'\"")
		base := path.Base(word)
		if strings.ContainsFunc(word, func(r rune) bool { return !PlainRune(r) }) || shellWords[base] || base == "/" ||
			base == "." || base == ".." {
			return ""
		}
		return base
	}
	return ""
}

// isVariable reports whether a shell takes a text for the name of a variable.
func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// PlainRune reports whether a character means nothing to a shell.
func PlainRune(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("_./:=,@%+-", r)
}

// shellWords begin a command that is no program, or that executes another one.
var shellWords = map[string]bool{"cd": true, "if": true, "for": true, "while": true, "case": true, "export": true,
	"set": true, "source": true, ".": true, "test": true, "trap": true, "ulimit": true, "umask": true, "eval": true,
	"nohup": true, "env": true, "sudo": true, "su": true, "setsid": true, "nice": true, "command": true, "true": true,
	"false": true, "echo": true, "until": true, "read": true, "wait": true}
