package importer

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// unsetError is a variable of the environment that is not set here.
type unsetError struct{ name string }

func (e *unsetError) Error() string { return "the variable " + e.name + " is not set" }

// missingVariable is the name of the variable that an error is about, or "".
func missingVariable(err error) string {
	var u *unsetError
	if errors.As(err, &u) {
		return u.name
	}
	return ""
}

var isExpansion = regexp.MustCompile(`^%\(([A-Za-z0-9_]+)\)([0-9]*)([sd])`)

const maxExpanded = 64 << 10

// expand replaces %(NAME)s, %(NAME)d and %%.
func (s *supervisord) expand(e entry, vars map[string]string) (string, error) {
	text := e.value
	if !strings.Contains(text, "%") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if strings.HasPrefix(text[i:], "%%") {
			b.WriteByte('%')
			i++
			continue
		}
		m := isExpansion.FindStringSubmatch(text[i:])
		if m == nil {
			return "", fault(e.file, e.line, "%s: %q is no expansion such as %%(program_name)s; write %%%% for a percent sign", e.key, clip(text[i:]))
		}
		value, err := s.variable(e, vars, m[1])
		if err != nil {
			return "", err
		}
		b.WriteString(padded(value, m[2], m[3]))
		if b.Len() > maxExpanded {
			return "", fault(e.file, e.line, "%s is longer than %d bytes after its expansion", e.key, maxExpanded)
		}
		i += len(m[0]) - 1
	}
	return b.String(), nil
}

// padded is a value with the width of its expansion, such as 02d.
func padded(value, width, kind string) string {
	fill := " "
	if strings.HasPrefix(width, "0") && kind == "d" {
		fill = "0"
	}
	n := 0
	_, _ = fmt.Sscan(width, &n) // no number is no width
	if n = min(n, 64) - len(value); n > 0 {
		return strings.Repeat(fill, n) + value
	}
	return value
}

// variable is the value of an expansion.
func (s *supervisord) variable(e entry, vars map[string]string, name string) (string, error) {
	if v, ok := vars[name]; ok {
		return v, nil
	}
	switch {
	case name == "here":
		return path.Dir(e.file), nil
	case name == "host_node_name" && s.w.Hostname != "":
		return s.w.Hostname, nil
	case strings.HasPrefix(name, "ENV_"):
		if s.w.Env != nil {
			if v, ok := s.w.Env(name[4:]); ok {
				return v, nil
			}
		}
		return "", &unsetError{name[4:]}
	}
	return "", fault(e.file, e.line, "%s: there is no expansion %%(%s)", e.key, clip(name))
}

// pairs reads variables as supervisord writes them: KEY="value",OTHER=value.
func pairs(text string) (map[string]string, error) {
	all := map[string]string{}
	rest := strings.TrimLeft(text, " \t\n,")
	for rest != "" {
		i := strings.IndexAny(rest, "=,")
		if i <= 0 || rest[i] != '=' {
			return nil, fmt.Errorf("%q is not KEY=VALUE", clip(rest))
		}
		name := strings.TrimSpace(rest[:i])
		if name == "" || strings.ContainsAny(name, " \t\n\"'") {
			return nil, fmt.Errorf("%q is not the name of a variable", clip(name))
		}
		rest = strings.TrimLeft(rest[i+1:], " \t")

		var value strings.Builder
		n, err := pairValue(rest, &value)
		if err != nil {
			return nil, fmt.Errorf("the value of %s %w", clip(name), err)
		}
		all[name] = value.String()
		rest = strings.TrimLeft(rest[n:], " \t\n")
		if rest != "" && rest[0] != ',' {
			return nil, fmt.Errorf("there is no comma before %q", clip(rest))
		}
		rest = strings.TrimLeft(rest, " \t\n,")
	}
	return all, nil
}

// pairValue reads a value up to a comma or a blank, and returns its length.
func pairValue(s string, out *strings.Builder) (int, error) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ',', ' ', '\t', '\n':
			return i, nil
		case '"', '\'':
			n, err := quoted(s[i:], out)
			if err != nil {
				return 0, err
			}
			i += n - 1
		case '\\':
			if i++; i == len(s) {
				return 0, errors.New("ends with a backslash")
			}
			out.WriteByte(s[i])
		default:
			out.WriteByte(s[i])
		}
	}
	return len(s), nil
}
