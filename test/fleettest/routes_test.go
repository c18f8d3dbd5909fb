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
	before := requestCounts(t, s)
	for _, r := range routes {
		for _, as := range []string{"", credentials(t, s)} {
			status, body := askRoute(t, s, r, as)
			if unrouted(body) || status == http.StatusMethodNotAllowed || status >= 500 && status != 503 {
				t.Errorf("%s %s of %s: %d %.300s", r.Method, r.Path, r.Door, status, body)
			}
			if envelope := strings.HasPrefix(body, `{"result":`); envelope != (r.Door != "api" && r.Door != "console") {
				t.Errorf("%s %s of %s is answered by another door: %d %.300s", r.Method, r.Path, r.Door, status, body)
			}
		}
		after := requestCounts(t, s)
		checkCounts(t, r, before, after)
		before = after
		doors[r.Door]++
	}

	if len(doors) != 5 || doors["console"] != 3 || doors["api"] < 50 || doors["gse"] < 50 || doors["job"] < 30 || doors["gsekit"] < 50 {
		t.Errorf("the doors have %v routes", doors)
	}
	t.Logf("routes by door: %v", doors)
}

// checkCounts checks that both requests to a route were counted there, and nowhere else.
func checkCounts(t *testing.T, r server.Route, before, after map[string]int) {
	t.Helper()
	want := 2
	switch r.Name {
	case "/metrics":
		want = 3 // and the request of the test before
	case "/api/v1/events/stream", "/api/v1/live/stream":
		want = 1 // streams are not counted, rejected requests are
	}
	if got := after[r.Name] - before[r.Name]; got != want {
		t.Errorf("%s %s of %s was counted %d times as %s, want %d", r.Method, r.Path, r.Door, got, r.Name, want)
	}
	for _, name := range []string{"unknown", "other"} {
		if after[name] != before[name] {
			t.Errorf("%s %s of %s was counted as %s", r.Method, r.Path, r.Door, name)
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
	return strings.Contains(body, "The content does not exist") || strings.Contains(body, "this path does not exist")
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
