package policy

import (
	"path/filepath"
	"strings"

	"github.com/gozzard/gozzard"
)

// commands judges the texts of a definition.
func (p *Policy) commands(who account, s *gozzard.Spec) error {
	c := &s.Control
	for _, cmd := range []struct{ name, text string }{
		{"start_cmd", c.Start}, {"stop_cmd", c.Stop}, {"restart_cmd", c.Restart}, {"reload_cmd", c.Reload},
		{"kill_cmd", c.Kill},
		{"version_cmd", c.Version}, {"health_cmd", c.Health},
	} {
		if strings.TrimSpace(cmd.text) == "" {
			continue
		}
		if !p.Shell && !plain(cmd.text) {
			return p.refuseFor(setShell, "only a program by its path and plain arguments are",
				"%s with the words of a shell", cmd.name)
		}
		if err := p.executable(who, s.Identity.SetupPath, cmd.name, cmd.text); err != nil {
			return err
		}
	}

	return nil
}

// executable judges the program that a command of root begins with, when it is named by a path: whoever can replace
// it, or a folder on the way to it, would be root by the next start. What a shell makes of the rest of the text
// nobody can know.
func (p *Policy) executable(who account, dir, name, text string) error {
	if !who.root || !p.TrustedPaths {
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

	if _, err := walk(path, onlyRoot); err != nil {
		return p.refuseFor(setTrustedPaths, err.Error(), "%s as root", name)
	}

	return nil
}

// program is the first word of a command when it is a path and nothing in it has a meaning for a shell.
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

// plain reports whether a shell would do nothing with a command but split it at its blanks and start the program
// that it names by its path.
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

func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return false
		}
		return !strings.ContainsRune("_./:=,@%+-", r)
	})
}
