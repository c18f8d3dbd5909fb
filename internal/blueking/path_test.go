package blueking_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

// app is a door with numbers in its paths, its own error sentences and no message for success.
func app(t testing.TB) *blueking.Handler {
	t.Helper()

	echo := func(name string) func(context.Context, *blueking.Call) (any, error) {
		return func(_ context.Context, c *blueking.Call) (any, error) {
			biz, inPath := c.Number("biz")
			job, _ := c.Number("job")
			q, err := c.Query()
			if err != nil {
				return nil, err
			}
			text := q.Get("text")
			return fmt.Sprintf("%s of %d (%v), job %d, %q, hash %.4x", name, biz, inPath, job, text.Text(), c.Hash), nil
		}
	}

	both := []string{"bus", "app"}
	return blueking.New(blueking.Door{
		Prefixes: []blueking.Prefix{{Path: "/bus", Family: "bus"}, {Path: "/app/{biz}", Family: "app"}},
		Routes: []blueking.Route{
			{Name: "list", Path: "job", Families: both, Methods: []string{http.MethodGet},
				Access: blueking.AccessUser, MaxBody: 100, Handle: echo("list")},
			{Name: "create", Path: "job", Families: both, Methods: []string{http.MethodPost},
				Access: blueking.AccessUser, MaxBody: 100, Handle: echo("create")},
			{Name: "retry", Path: "job/{job}/retry", Families: both, Bodiless: true, Access: blueking.AccessUser,
				MaxBody: 100, Handle: echo("retry")},
			{Name: "fails", Families: both, Bodiless: true, Access: blueking.AccessUser, MaxBody: 100,
				Handle: func(context.Context, *blueking.Call) (any, error) {
					return nil, gozzard.Errorf(gozzard.ErrConflict, "no")
				}},
		},
		DescribeError: func(w blueking.Words, err error) (blueking.Number, string) {
			return blueking.Number{Code: 7}, w.Language.String() + " " + w.Error(err)
		},
		Quiet: true, Auth: book(t), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

func TestNumbersInPaths(t *testing.T) {
	h := app(t)
	ask := func(method, path string) reply {
		r := httptest.NewRequest(method, path, nil)
		if method == http.MethodPost {
			r = post(path, "{}")
		}
		r.Header.Set("X-Bkapi-Authorization", "{"+good+"}")
		if !h.Owns(r) {
			return reply{status: http.StatusNotFound}
		}
		return do(t, h, r)
	}

	hashes := map[string]string{}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/app/2/job?text=a", `list of 2 (true), job 0, "a"`},
		{"POST", "/app/2/job/?text=%5B1%5D", `create of 2 (true), job 0, ""`},
		{"POST", "/bus/job", `create of 0 (false), job 0, ""`},
		{"POST", "//app//2/job/9007199254740993/retry/", `retry of 2 (true), job 9007199254740993, ""`},
		{"POST", "/app/3/job/9007199254740993/retry/", `retry of 3 (true), job 9007199254740993, ""`},
		{"POST", "/app/0/job/0/retry", `retry of 0 (true), job 0, ""`},
		{"POST", "/bus/job/5/retry", `retry of 0 (false), job 5, ""`},
	} {
		r := ask(c.method, c.path)
		got, _ := r.env["data"].(string)
		if r.status != 200 || len(got) < len(c.want) || got[:len(c.want)] != c.want || r.message() != "" {
			t.Errorf("%s %s: %v", c.method, c.path, r.env)
		}
		if c.method == "POST" {
			hash := got[len(got)-8:]
			if first := hashes[hash]; first != "" && c.want[:6] == "retry " {
				t.Errorf("%s and %s are the same request", first, c.path)
			}
			hashes[hash] = c.path
		}
	}

	for _, path := range []string{"/app/job", "/app/x/job", "/app/-2/job", "/app/02/job", "/app/2/job/x/retry",
		"/app/2/job/1", "/app/2/job/1/retry/1", "/app/2/2/job",
		"/app/99999999999999999999/job", "/bus/2/job", "/app/{}/job", "/app/2/job/{}/retry"} {
		if r := ask("POST", path); r.status != http.StatusNotFound {
			t.Errorf("%s is served: %v", path, r.env)
		}
	}

	r := do(t, h, httptest.NewRequest("DELETE", "/app/2/job", nil))
	if r.status != 405 || r.header.Get("Allow") != "GET, POST" {
		t.Errorf("%d %v", r.status, r.header)
	}
	if r := do(t, h, post("/app/2/job/1/retry", "", "X-Bkapi-Authorization", "{"+good+"}")); r.code() != 0 {
		t.Errorf("an empty body: %v", r.env)
	}
	if r := do(t, h, post("/app/2/job", "", "X-Bkapi-Authorization", "{"+good+"}")); r.code() != 7 ||
		r.message() != " body is empty: a JSON object is expected" {
		t.Errorf("an empty body where one is needed: %v", r.env)
	}

	if r := do(t, h, post("/app/2/fails", "", "X-Bkapi-Authorization", "{"+good+"}", "Accept-Language",
		"xx, en;q=0.5")); r.status != 200 || r.code() != 7 || r.message() != "en no" {
		t.Errorf("%v", r.env)
	}
}

func TestRoutesThatAreMistakes(t *testing.T) {
	handle := func(context.Context, *blueking.Call) (any, error) { return nil, nil }
	route := func(name, path string) blueking.Route {
		return blueking.Route{Name: name, Path: path, Families: []string{"f"}, Access: blueking.AccessUser,
			MaxBody: 1, Handle: handle}
	}

	for name, routes := range map[string][]blueking.Route{
		"two at one path":          {route("a", ""), route("b", "a")},
		"two with one number":      {route("a", "x/{a}"), route("b", "x/{b}")},
		"a fixed part is a number": {route("a", "x/12")},
		"no name":                  {route("", "x")},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			blueking.New(blueking.Door{Prefixes: []blueking.Prefix{{Path: "/p", Family: "f"}}, Routes: routes,
				Auth: book(t), Log: slog.New(slog.DiscardHandler)})
		}()
	}
}
