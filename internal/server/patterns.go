package server

import "strings"

// patterns finds the pattern of a path in the table of routes.
type patterns struct {
	fixed map[string]string
	open  [][]string // the parts of those with parameters
}

// newPatterns makes the patterns of routes.
func newPatterns(routes []Route) *patterns {
	p := &patterns{fixed: map[string]string{}}
	seen := map[string]bool{}
	for _, r := range routes {
		switch {
		case seen[r.Path]:
		case strings.ContainsAny(r.Path, "{*"):
			p.open = append(p.open, strings.Split(r.Path, "/"))
		default:
			p.fixed[r.Path] = r.Path
		}
		seen[r.Path] = true
	}
	return p
}

// find is the pattern of a path; "" if no route has it. BlueKing's paths may end with a slash.
func (p *patterns) find(path string) string {
	path = strings.TrimRight(path, "/")
	if pattern := p.fixed[path]; pattern != "" {
		return pattern
	}
	for _, parts := range p.open {
		if fits(parts, path) {
			return strings.Join(parts, "/")
		}
	}
	return ""
}

// fits reports whether a path has the parts of a pattern.
func fits(parts []string, path string) bool {
	for i, part := range parts {
		text, rest, more := strings.Cut(path, "/")
		open := part == "*" || strings.HasPrefix(part, "{")
		if more != (i < len(parts)-1) || part != text && (!open || text == "") {
			return false
		}
		path = rest
	}
	return true
}
