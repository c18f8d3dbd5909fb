package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// serve starts a server that answers with a handler, and a client of it.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := client.New(srv.URL+"/", client.Credentials{AppCode: "app", AppSecret: "s", Username: "阿牛"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewRefuses(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:8080", "ftp://x", "http://example.com", "http://10.0.0.1:80",
		"http://u:p@127.0.0.1", "http://127.0.0.1?x=1", "://"} {
		if _, err := client.New(url, client.Credentials{}); gozzard.KindOf(err) != gozzard.ErrInvalid || err == nil {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, url := range []string{"http://127.0.0.1:1", "http://[::1]:1", "http://localhost",
		"https://example.com/gozzard/"} {
		if _, err := client.New(url, client.Credentials{}); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestOperateSendsOneRequestWhateverHappens(t *testing.T) {
	var keys []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) == 1 { // the answer is lost
			panic(http.ErrAbortHandler)
		}
		if len(keys) == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}

		var creds map[string]string
		if err := json.Unmarshal([]byte(r.Header.Get("X-Bkapi-Authorization")), &creds); err != nil ||
			creds["bk_username"] != "阿牛" || creds["bk_app_secret"] != "s" {
			t.Errorf("credentials are %v: %v", creds, err)
		}

		body, _ := io.ReadAll(r.Body)
		const want = `{"action":"start","namespace":"ns","names":["web"],"hosts":[{"cloud":0,"ip":"10.0.0.1"}],"when_offline":"wait","wait_seconds":2}`
		if r.Method != "POST" || r.URL.Path != "/api/v1/operations" || string(body) != want {
			t.Errorf("request is %s %s %s", r.Method, r.URL.Path, body)
		}

		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"task_id":"GSETASK:20240102030405:1","targets":1}`)
	})

	zero := 0
	a, err := c.Operate(t.Context(), client.Operation{Action: "start",
		Offline: client.Offline{Wait: 1500 * time.Millisecond},
		Selection: client.Selection{Namespace: "ns", Names: []string{"web"},
			Hosts: []client.Host{{Cloud: &zero, IP: "10.0.0.1"}}}})
	if err != nil || a.TaskID != "GSETASK:20240102030405:1" || a.Targets != 1 {
		t.Errorf("accepted %+v, %v", a, err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("keys are %q", keys)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   gozzard.ErrorKind
		text   string
	}{
		"of the API": {400,
			`{"error":{"kind":"invalid","message":"wrong","faults":[{"path":"names[0]","text":"bad"}]}}`,
			gozzard.ErrInvalid, "wrong; names[0]: bad"},
		"of a proxy":   {502, `<html>`, gozzard.ErrUnavailable, "502"},
		"login page":   {302, ``, gozzard.ErrInternal, "302"},
		"unauthorised": {401, ``, gozzard.ErrUnauthenticated, "401"},
		"not JSON":     {200, `hello`, gozzard.ErrInternal, "does not answer like"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://203.0.113.1/steal")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := cl.Hosts(t.Context(), 0, 10)
			if gozzard.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error is %v of kind %s", err, gozzard.KindOf(err))
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	c, err := client.New("http://127.0.0.1:1", client.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context()); gozzard.KindOf(err) != gozzard.ErrUnavailable ||
		!strings.Contains(err.Error(), "http://127.0.0.1:1") {
		t.Errorf("error is %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := c.Operate(ctx, client.Operation{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestAllProcessesTurnsPages(t *testing.T) {
	const total = 2*client.MaxPage + 5
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var start int
		_ = json.Unmarshal([]byte(r.URL.Query().Get("start")), &start)
		page := client.ProcessPage{Count: total}
		for i := start; i < min(total, start+client.MaxPage); i++ {
			page.Processes = append(page.Processes, client.Process{PID: int32(i)})
		}
		if next := start + len(page.Processes); next < total {
			page.Next = next
		}
		_ = json.NewEncoder(w).Encode(page)
	})

	n := 0
	for p, err := range c.AllProcesses(t.Context(), client.ProcessQuery{Names: []string{"a b&c"}}) {
		if err != nil || int(p.PID) != n {
			t.Fatalf("row %d is %d: %v", n, p.PID, err)
		}
		n++
	}

	if n != total {
		t.Errorf("%d rows", n)
	}
}

func TestWait(t *testing.T) {
	var polls atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := polls.Add(1)
		if n == 2 { // a server that restarts
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		task := client.Task{ID: "GSETASK:20240102030405:1", Final: n > 3,
			Counts: client.Counts{Targets: 2, Done: int(min(n, 2)), Running: int(max(0, 2-n))}}
		if r.URL.Query().Get("show") != "none" {
			task.Attempts = []client.Attempt{{Verdict: client.Done}, {Verdict: client.Noted}}
		}
		_ = json.NewEncoder(w).Encode(task)
	})

	var seen []int
	task, err := c.Wait(t.Context(), "GSETASK:20240102030405:1",
		func(t client.Task) { seen = append(seen, t.Counts.Done) })
	if err != nil || !task.Final || len(task.Attempts) != 2 || len(seen) != 3 {
		t.Errorf("task %+v, progress %v, %v", task, seen, err)
	}
}

// TestWholeTask reads a task page by page, and one of an earlier version at once.
func TestWholeTask(t *testing.T) {
	const total = 2*client.MaxPage + 5
	pages := true
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("limit") && !pages {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"kind":"invalid","message":"limit: unknown field"}}`))
			return
		}
		place, _ := strconv.Atoi(q.Get("cursor"))
		end := total
		if q.Has("limit") {
			end = min(total, place+client.MaxPage)
		}
		task := client.Task{ID: "GSETASK:20240102030405:1", Counts: client.Counts{Targets: total, Running: total}}
		for i := place; i < end; i++ {
			task.Attempts = append(task.Attempts, client.Attempt{Name: strconv.Itoa(i), Verdict: client.Done})
		}
		if end < total {
			task.Next = strconv.Itoa(end)
		}
		_ = json.NewEncoder(w).Encode(task)
	})

	for _, pages = range []bool{true, false} {
		task, err := c.WholeTask(t.Context(), "GSETASK:20240102030405:1")
		if err != nil || len(task.Attempts) != total || task.Next != "" {
			t.Fatalf("pages %v: %d attempts, next %q, %v", pages, len(task.Attempts), task.Next, err)
		}
		for i, a := range task.Attempts {
			if a.Name != strconv.Itoa(i) {
				t.Fatalf("pages %v: attempt %d is %s", pages, i, a.Name)
			}
		}
		if pages && (!task.Final || task.Counts != client.Counts{Targets: total, Done: total}) {
			t.Errorf("the counts are not those of the attempts: %+v", task.Counts)
		}
	}
}
