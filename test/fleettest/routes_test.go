//go:build linux

package fleettest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/server"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// programRoutes asks the built program for its table of routes.
func programRoutes(t *testing.T) (routes []server.Route) {
	t.Helper()
	out, err := exec.Command(ft.Binary(t), "server", "--print-routes").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			t.Fatalf("a route is printed as %q", line)
		}
		routes = append(routes, server.Route{Method: f[0], Path: f[1], Door: f[2], Name: f[3]})
	}
	return routes
}

// TestEveryRouteOfTheProgram: every route of the built program is answered by its door, with credentials and without.
// The program counts its requests by route, so the counters show which route has answered.
func TestEveryRouteOfTheProgram(t *testing.T) {
	t.Parallel() // it mostly waits
	routes := programRoutes(t)
	if known, err := server.Routes(); err != nil || len(known) != len(routes) {
		t.Fatalf("the program prints %d routes, its table has %d: %v", len(routes), len(known), err)
	}

	s := ft.StartServer(t, "")
	doors := map[string]int{}
	as := []string{"", credentials(t, s)}
	for first := range routeGroups {
		before, want := requestCounts(t, s), map[string]int{}
		for i := first; i < len(routes); i += routeGroups { // neighbours have the same name, or a similar one
			r := routes[i]
			for _, caller := range as {
				status, body := askRoute(t, s, r, caller)
				if unrouted(body) || status == http.StatusMethodNotAllowed || status >= 500 && status != 503 {
					t.Errorf("%s %s of %s: %d %.300s", r.Method, r.Path, r.Door, status, body)
				}
				if envelope := strings.HasPrefix(body, `{"result":`); envelope != !slices.Contains([]string{"api", "console", "docs"}, r.Door) {
					t.Errorf("%s %s of %s is answered by another door: %d %.300s", r.Method, r.Path, r.Door, status, body)
				}
			}
			want[r.Name] += countsOf(r)
			doors[r.Door]++
		}
		checkCounts(t, want, before, requestCounts(t, s))
	}

	if len(doors) != 6 || doors["console"] != 3 || doors["docs"] != 6 || doors["api"] < 50 || doors["gse"] < 50 || doors["job"] < 30 || doors["gsekit"] < 50 {
		t.Errorf("the doors have %v routes", doors)
	}
	t.Logf("routes by door: %v", doors)
}

// routeGroups is the number of groups in which the routes are asked. The counters, a long text, are read between groups.
const routeGroups = 16

// countsOf is how many of two requests to a route are counted.
func countsOf(r server.Route) int {
	switch r.Name {
	case "/api/v1/events/stream", "/api/v1/live/stream":
		return 1 // streams are not counted, rejected requests are
	}
	return 2
}

// checkCounts checks that all requests to routes were counted there, and nowhere else.
func checkCounts(t *testing.T, want, before, after map[string]int) {
	t.Helper()
	for name, n := range after {
		wanted := want[name]
		if name == "/metrics" {
			wanted++ // and the request of the test before
		}
		if n-before[name] != wanted {
			t.Errorf("%d requests were counted as %s, want %d", n-before[name], name, wanted)
		}
	}
	for name := range want {
		if _, counted := after[name]; !counted {
			t.Errorf("no request was counted as %s", name)
		}
	}
}

func credentials(t *testing.T, s *ft.Server) string {
	t.Helper()
	b, err := json.Marshal(ft.J{"bk_app_code": s.Cred.AppCode, "bk_app_secret": s.Cred.Secret,
		"bk_username": s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// askRoute sends one request to a route.
func askRoute(t *testing.T, s *ft.Server, r server.Route, credentials string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var body io.Reader = http.NoBody
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, s.Cred.URL+r.Sample(), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if credentials != "" {
		req.Header.Set("X-Bkapi-Authorization", credentials)
	}

	res, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.Path, err)
	}
	defer res.Body.Close()
	if strings.HasSuffix(r.Path, "/stream") { // it goes on until its reader ends
		defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	}
	b, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("%s %s: %v", r.Method, r.Path, err)
	}
	return res.StatusCode, string(b)
}

// unrouted reports whether an answer is the one for a path without a route.
func unrouted(body string) bool {
	return strings.Contains(body, "The content does not exist") || strings.Contains(body, "this path does not exist") ||
		strings.Contains(body, "API not found")
}

var requestCount = regexp.MustCompile(`(?m)^gozzard_http_requests_total\{(.*)\} (\d+)$`)
var routeLabel = regexp.MustCompile(`route="([^"]*)"`)

// requestCounts reads how many requests each route has answered.
func requestCounts(t *testing.T, s *ft.Server) map[string]int {
	t.Helper()
	_, text := s.Get(t, "/metrics")
	counts := map[string]int{}
	for _, m := range requestCount.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		label := routeLabel.FindStringSubmatch(m[1])
		if err != nil || label == nil {
			t.Fatalf("%s: %v", m[0], err)
		}
		counts[label[1]] += n
	}
	if len(counts) == 0 {
		t.Fatalf("no counts of requests in %.500s", text)
	}
	return counts
}
