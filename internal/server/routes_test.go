package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeDoor owns paths below a prefix.
func fakeDoor(name, prefix string, routes ...Route) door {
	for i := range routes {
		routes[i].Door = name
	}
	return door{
		name: name, routes: routes,
		handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }),
		owns:    func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, prefix) },
	}
}

func TestRoutesHaveOneOwner(t *testing.T) {
	last := fakeDoor("last", "/last/", Route{Method: "GET", Path: "/last/x"})
	for name, tt := range map[string]struct {
		doors []door
		want  string // the error, "" for none
	}{
		"as it should be": {[]door{fakeDoor("a", "/a/", Route{Method: "GET", Path: "/a/{id}"}), last}, ""},
		"no door serves it": {[]door{fakeDoor("a", "/a/", Route{Method: "GET", Path: "/login"}), last},
			"cannot serve GET /login of a: the request would go to last"},
		"another door is before it": {
			[]door{fakeDoor("greedy", "/"), fakeDoor("a", "/a/", Route{Method: "PUT", Path: "/a/x"}), last},
			"cannot serve PUT /a/x of a: the request would go to greedy"},
		"two owners": {[]door{fakeDoor("a", "/x/", Route{Method: "GET", Path: "/x/{id}"}),
			fakeDoor("b", "/x/", Route{Method: "GET", Path: "/x/{name}"})},
			"cannot serve GET /x/{name}: both a and b own its path"},
		"two owners of one path by method": {[]door{fakeDoor("a", "/x", Route{Method: "GET", Path: "/x"}),
			fakeDoor("b", "/x", Route{Method: "POST", Path: "/x"})},
			"cannot serve POST /x: both a and b own its path"},
		"twice": {[]door{fakeDoor("a", "/x", Route{Method: "GET", Path: "/x"}, Route{Method: "GET", Path: "/x"})},
			"cannot serve GET /x: it is in the table twice"},
	} {
		_, err := newRouter(tt.doors...)
		if got := errText(err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Every route of a real server reaches a handler of its own door.
func TestEveryRouteIsServed(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	routes, err := Routes()
	if err != nil {
		t.Fatal(err)
	}

	doors := map[string]int{}
	for _, r := range routes {
		doors[r.Door]++
		if w := ask(s, r.Method, r.Sample()); isUnrouted(w.Body.String()) || w.Code == http.StatusMethodNotAllowed {
			t.Errorf("%s %s of %s: %d %s", r.Method, r.Path, r.Door, w.Code, w.Body)
		}
	}
	for _, name := range []string{"api", "job", "gsekit", "gse"} {
		if doors[name] == 0 {
			t.Errorf("no route of %s is in the table", name)
		}
	}
}

func ask(s *Server, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	return w
}

// isUnrouted reports whether a body is the answer to a path that no door has.
func isUnrouted(body string) bool {
	return strings.Contains(body, "The content does not exist") || strings.Contains(body, "this path does not exist") ||
		strings.Contains(body, "API not found")
}

// An unknown path is answered in the form of the door that its prefix belongs to.
func TestUnknownPaths(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	const gse, native, gateway = "The content does not exist", "this path does not exist", `"code":1640401,"message":"API not found`
	for path, want := range map[string]string{
		"/nothing": gse, "/index.html": gse, "/login": gse, "/login/oidc/": gse, "/login/oidc/other": gse,
		"/api/v2/nothing": gateway, "/api/bk-gse/prod/api/v2/nothing": gateway, "/api/bk-gse": gse, "/api/2/nothing": gse, "/esb/api/v3/nothing": gse, "/healthz/": gse,
		"/api/c/compapi/v2/gse/nothing/": gse, "/api/c/compapi/v2/job/nothing/": gse,
		"/api/v1/nothing": native, "/api/v1/": native,
	} {
		if w := ask(s, "GET", path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}

	// The console owns its own paths, and nothing beside them.
	if w := ask(s, "GET", "/"); w.Code != http.StatusFound || w.Header().Get("Location") != "/console/" {
		t.Errorf("GET /: %d %s", w.Code, w.Header().Get("Location"))
	}
	if w := ask(s, "GET", "/consoles"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), gse) {
		t.Errorf("GET /consoles: %d %s", w.Code, w.Body)
	}

	// A double slash counts as one, and the request keeps its body.
	if w := ask(s, "POST", "//api//c/compapi/v2/gse/get_proc_status//"); isUnrouted(w.Body.String()) ||
		w.Code != http.StatusOK {
		t.Errorf("double slashes: %d %s", w.Code, w.Body)
	}
	if w := ask(s, "POST", "/login/oidc"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("POST /login/oidc: %d %s", w.Code, w.Body)
	}
}
