package policy

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gozzard/gozzard"
)

// commands checks the commands of a definition.
func (p *Policy) commands(acct account, s *gozzard.Spec) error {
	c := &s.Control
	var all []error
	for _, cmd := range []struct{ name, text string }{
		{"start_cmd", c.Start}, {"stop_cmd", c.Stop}, {"restart_cmd", c.Restart}, {"reload_cmd", c.Reload},
		{"kill_cmd", c.Kill}, {"version_cmd", c.Version}, {"health_cmd", c.Health},
	} {
		if strings.TrimSpace(cmd.text) == "" {
			continue
		}
		check := p.plainCommand
		if p.Shell {
			check = p.shellCommand
		}
		all = append(all, check(acct, s.Identity.SetupPath, cmd.name, cmd.text))
	}

	return together(all...)
}

// plainCommand checks a command that runs without a shell, by the path of its program. The host asks again about the
// file that it executes.
func (p *Policy) plainCommand(acct account, dir, name, text string) error {
	words, ok := plainWords(text)
	if !ok {
		return allowedBy(p.rejectBecause(setShell, "only a program by its path and plain arguments are",
			"%s with the words of a shell", name), "true")
	}

	real, err := walk(absolute(dir, words[0]), nil)
	switch {
	case errors.Is(err, fs.ErrPermission) && !acct.root: // an agent that is not root may see less than the account
		return nil
	case err != nil:
		return p.rejectBecause(setPathPrefixes, err.Error(), "%s with program %s", name, quoted(words[0]))
	}
	return p.program(acct, executed{command: name, file: real})
}

// shellCommand checks the programs and scripts that the text of a command names, if it runs as root. An account that
// can replace one of them, or a folder of its path, would become root with the next start. The check knows the words
// that stand in the text; it does not know what the shell makes of variables and patterns, nor what a script executes.
func (p *Policy) shellCommand(acct account, dir, name, text string) error {
	if !acct.root || !p.TrustedPaths {
		return nil
	}
	for _, file := range programs(dir, text) {
		if _, err := walk(file, rootOnly); err != nil {
			return p.rejectBecause(setTrustedPaths, err.Error(), "%s as root", name)
		}
	}
	return nil
}

// absolute is the path of a word in a folder.
func absolute(dir, word string) string {
	if filepath.IsAbs(word) {
		return filepath.Clean(word)
	}
	if dir == "" {
		dir = rootFolder()
	}
	return filepath.Join(dir, word)
}

// plainWords splits a command at its blanks, if a shell would only do that and start the program, which must be named
// by its path. The result is the program and its arguments.
func plainWords(text string) (words []string, ok bool) {
	if !isPlain(strings.ReplaceAll(strings.TrimSpace(text), " ", "")) {
		return nil, false
	}
	words = strings.Fields(text)
	if len(words) > 1 && words[0] == "exec" {
		words = words[1:]
	}
	return words, len(words) > 0 && strings.ContainsRune(words[0], '/') && !strings.ContainsRune(words[0], '=') &&
		words[0][0] != '-'
}

// isPlain reports whether nothing in a text has a meaning for a shell.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return false
		}
		return !strings.ContainsRune("_./:=,@%+-", r)
	})
}
