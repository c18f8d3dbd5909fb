package blueking

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// paths is the table of routes by path, with {} for every part that is a number and * for one that may be any word.
type paths map[string]served

// anyWord is the place of the only part that may be any word: the stage of a gateway, as in /api/bk-gse/prod/api.
const anyWord = 2

type served struct {
	routes  []*Route // one for each method
	names   []string // of the numbers, in the order of the path
	gateway bool
}

// add adds a route below a prefix. Two routes for one method of one path, and a fixed part that is a number, are
// mistakes of the program.
func (t paths) add(p Prefix, r *Route) {
	whole := p.Path + "/" + cmp.Or(r.Path, r.Name)
	var path strings.Builder
	s := served{gateway: p.Gateway}
	for i, part := range strings.Split(strings.Trim(whole, "/"), "/") {
		path.WriteByte('/')
		if part == "*" && i != anyWord {
			panic("blueking: a * at another place in " + whole)
		}
		if name, ok := strings.CutPrefix(part, "{"); ok {
			s.names = append(s.names, strings.TrimSuffix(name, "}"))
			path.WriteString("{}")
			continue
		}
		if _, ok := parseNumber(part); ok {
			panic("blueking: a fixed number in " + whole)
		}
		path.WriteString(part)
	}

	if have, ok := t[path.String()]; ok {
		s.routes = have.routes
	}

	for _, m := range r.methods() {
		if s.route(m) != nil {
			panic("blueking: two routes at " + whole)
		}
	}

	s.routes = append(s.routes[:len(s.routes):len(s.routes)], r)
	t[path.String()] = s
}

// find looks a path up. It ignores empty parts; a path with an escape, "." or ".." is not found.
func (t paths) find(r *http.Request) (served, []number, bool) {
	escaped := r.URL.EscapedPath()
	if strings.ContainsAny(escaped, "%\x00") {
		return served{}, nil, false
	}

	var parts []string
	var numbers []number
	for part := range strings.SplitSeq(escaped, "/") {
		switch n, ok := parseNumber(part); {
		case part == "":
		case part == "." || part == "..":
			return served{}, nil, false
		case ok:
			numbers = append(numbers, number{value: n})
			parts = append(parts, "{}")
		default:
			parts = append(parts, part)
		}
	}

	s, ok := t["/"+strings.Join(parts, "/")]
	if !ok && len(parts) > anyWord {
		parts[anyWord] = "*"
		s, ok = t["/"+strings.Join(parts, "/")]
	}
	if !ok || len(s.names) != len(numbers) {
		return served{}, nil, false
	}

	for i := range numbers { // a path in the table has as many names as numbers
		numbers[i].name = s.names[i]
	}

	return s, numbers, true
}

// parseNumber reads a part of a path that is a number without leading zeros.
func parseNumber(s string) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func (r *Route) methods() []string {
	switch {
	case r.Methods != nil:
		return r.Methods
	case r.Read:
		return []string{http.MethodGet, http.MethodPost}
	}
	return []string{http.MethodPost}
}

// route is the route for a method, nil if there is none.
func (s *served) route(method string) *Route {
	for _, r := range s.routes {
		if slices.Contains(r.methods(), method) {
			return r
		}
	}
	return nil
}

func (s *served) methods() string {
	var all []string
	for _, r := range s.routes {
		all = append(all, r.methods()...)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
