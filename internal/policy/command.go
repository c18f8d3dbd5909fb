package policy

import (
	"path/filepath"
	"strings"

	"github.com/gozzard/gozzard"
)

// commands checks the commands of a definition.
func (p *Policy) commands(acct account, s *gozzard.Spec) error {
	c := &s.Control
	for _, cmd := range []struct{ name, text string }{
		{"start_cmd", c.Start}, {"stop_cmd", c.Stop}, {"restart_cmd", c.Restart}, {"reload_cmd", c.Reload},
		{"kill_cmd", c.Kill}, {"version_cmd", c.Version}, {"health_cmd", c.Health},
	} {
		if strings.TrimSpace(cmd.text) == "" {
			continue
		}
		if !p.Shell && !plain(cmd.text) {
			return p.rejectBecause(setShell, "only a program by its path and plain arguments are",
				"%s with the words of a shell", cmd.name)
		}
		if err := p.executable(acct, s.Identity.SetupPath, cmd.name, cmd.text); err != nil {
			return err
		}
	}

	return nil
}

// executable checks the program at the beginning of a command that runs as root, if it is named by a path. An account
// that can replace the program, or a folder of its path, would become root with the next start. The rest of the
// command is not checked, because only the shell knows what it means.
func (p *Policy) executable(acct account, dir, name, text string) error {
	if !acct.root || !p.TrustedPaths {
		return nil
	}

	path := program(text)
	if path == "" {
		return nil
	}

	if !filepath.IsAbs(path) {
		if dir == "" {
			dir = rootFolder()
		}
		path = filepath.Join(dir, path)
	}

	if _, err := walk(path, rootOnly); err != nil {
		return p.rejectBecause(setTrustedPaths, err.Error(), "%s as root", name)
	}

	return nil
}

// program returns the first word of a command if it is a path and nothing in it has a meaning for a shell.
func program(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>", r) })
	if len(words) > 1 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) == 0 || !strings.ContainsRune(words[0], '/') || !isPlain(words[0]) ||
		strings.ContainsRune(words[0], '=') {
		return ""
	}
	return words[0]
}

// plain reports whether a shell would only split the command at its blanks and start the program, which must be named
// by its path.
func plain(text string) bool {
	if !isPlain(strings.ReplaceAll(strings.TrimSpace(text), " ", "")) {
		return false
	}
	words := strings.Fields(text)
	if len(words) > 1 && words[0] == "exec" {
		words = words[1:]
	}
	return len(words) > 0 && strings.ContainsRune(words[0], '/') && !strings.ContainsRune(words[0], '=') &&
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
