package conform

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/server"
)

// suites are all requests.
func suites(t *testing.T) (all []*suite) {
	t.Helper()
	for _, name := range Names {
		s, err := load(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestSuitesAreStrict: the files have no key that is not read, every named form exists, and every request says what it
// expects.
func TestSuitesAreStrict(t *testing.T) {
	for _, name := range Names {
		b, err := requests.ReadFile("requests/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(new(suite)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	reference := regexp.MustCompile(`"@(\w+)"`)
	for _, s := range suites(t) {
		for _, q := range append(s.Requests, s.Operate...) {
			text, err := json.Marshal([]any{q.Data, q.Answer})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
				if s.Shapes[m[1]] == nil {
					t.Errorf("%s: %s names the form @%s, which does not exist", s.API, q.label(), m[1])
				}
			}
			if (q.Data == nil) == (!q.Rejected && q.Answer == nil) {
				t.Errorf("%s: %s expects nothing, or two things", s.API, q.label())
			}
		}
	}
}

// TestEveryRouteIsAsked: each route of BlueKing's APIs that our server has is sent at least one request.
func TestEveryRouteIsAsked(t *testing.T) {
	routes, err := server.Routes()
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	vars := Vars{"biz": 2, "job": 7, "task": "GSETASK:1"}
	for _, s := range suites(t) {
		for _, p := range s.Prefixes {
			for _, q := range append(s.Requests, s.Operate...) {
				if q.in(p) {
					path, _, _ := strings.Cut(q.path(p, vars), "?")
					asked[q.method()+" "+strings.TrimRight(path, "/")] = true
				}
			}
		}
	}

	n := 0
	parameter := regexp.MustCompile(`\{[a-z_]*\}|\*`)
	for _, r := range routes {
		if r.Door != "gse" && r.Door != "job" && r.Door != "gsekit" {
			continue
		}
		n++
		parts := parameter.Split(strings.TrimRight(r.Path, "/"), -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern := regexp.MustCompile("^" + r.Method + " " + strings.Join(parts, "[^/]+") + "$")
		found := false
		for one := range asked {
			found = found || pattern.MatchString(one)
		}
		// A call that only reads takes GET with its values in the query, too: one such request for each API is enough.
		if !found && !(r.Method == "GET" && asked["POST "+strings.TrimRight(parameter.ReplaceAllString(r.Path, "prod"), "/")]) {
			t.Errorf("no request asks %s %s of %s", r.Method, r.Path, r.Door)
		}
	}
	if n < 150 {
		t.Errorf("only %d routes were compared", n)
	}
}
