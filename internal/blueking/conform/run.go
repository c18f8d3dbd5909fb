package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Send sends a request to the server that is compared and returns the status and the body of its answer. A header with
// credentials replaces those of the caller.
type Send func(ctx context.Context, method, path string, header http.Header, body []byte) (status int, answer []byte, err error)

// Options say what is sent.
type Options struct {
	APIs    []string // of Names; all if it is empty
	Prefix  string   // only paths that begin with it
	Vars    Vars
	Operate bool          // also operate a process
	Pause   time.Duration // between two polls
	Longest time.Duration // of all polls of one task
}

// Results of a row.
const (
	Agrees   = "agrees"
	Deviates = "deviates"
	Absent   = "absent"    // the server does not have the path
	Silent   = "no answer" // nothing came back
)

// Row is one request and how its answer compares with what is documented.
type Row struct {
	API        string      `json:"api"`
	Request    string      `json:"request"`
	Method     string      `json:"method"`
	Path       string      `json:"path"`
	Result     string      `json:"result"`
	Deviations []Deviation `json:"deviations,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// Run sends the requests one after the other and hands each row to take. It ends early only if the first request gets
// no answer, or if take or the context fails; what it has started by then is ended first.
func Run(ctx context.Context, send Send, o Options, take func(Row) error) error {
	names := o.APIs
	if len(names) == 0 {
		names = Names
	}
	r := &runner{send: send, Options: o, take: take}
	for _, name := range names {
		s, err := load(name)
		if err != nil {
			return err
		}
		if err := r.suite(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

type runner struct {
	Options
	send  Send
	take  func(Row) error
	heard bool // the server has answered at least once
}

// suite sends everything of one API.
func (r *runner) suite(ctx context.Context, s *suite) error {
	for _, p := range s.Prefixes {
		vars := r.vars(p)
		for i := range s.Requests {
			if err := r.one(ctx, s, p, &s.Requests[i], vars); err != nil {
				return err
			}
		}
	}
	if !r.Operate {
		return nil
	}

	var done []string
	for _, p := range s.Prefixes {
		if slices.Contains(done, p.Family) || !strings.HasPrefix(r.Vars.text(p.Path), r.Prefix) {
			continue
		}
		done = append(done, p.Family)
		if err := r.operate(ctx, s, p); err != nil {
			return err
		}
	}
	return nil
}

// vars are the values of one prefix. What its requests save is not seen by others.
func (r *runner) vars(p prefix) Vars {
	vars := Vars{"family": p.Family}
	for name, value := range r.Vars {
		vars[name] = value
	}
	return vars
}

// operate sends the requests that operate a process. All of them are sent, whatever happens: the last ones stop it and
// remove it.
func (r *runner) operate(ctx context.Context, s *suite, p prefix) error {
	vars := r.vars(p)
	ctx = context.WithoutCancel(ctx)
	var first error
	for i := range s.Operate {
		if err := r.one(ctx, s, p, &s.Operate[i], vars); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// one sends a request and takes its row.
func (r *runner) one(ctx context.Context, s *suite, p prefix, q *request, vars Vars) error {
	path := q.path(p, vars)
	if !q.in(p) || !strings.HasPrefix(path, r.Prefix) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	row := Row{API: s.API, Request: q.label(), Method: q.method(), Path: path}
	status, answer, err := r.ask(ctx, q, path, vars)
	switch {
	case err != nil && (!r.heard || ctx.Err() != nil):
		return err
	case err != nil:
		row.Result, row.Error = Silent, err.Error()
	case status == http.StatusNotFound && q.Status != http.StatusNotFound && !aboutContent(answer):
		row.Result = Absent
	default:
		row.Deviations = r.compare(s, p, q, vars, status, answer)
		row.Result = Agrees
		if len(row.Deviations) > 0 {
			row.Result = Deviates
		}
	}
	r.heard = r.heard || err == nil
	return r.take(row)
}

// noSuchPath is the code of BlueKing's gateway for a path that it does not have.
const noSuchPath = 1640401

// aboutContent reports whether an answer with the status 404 is about what was asked for: it has a code. One about a path
// has none, or that of the gateway.
func aboutContent(answer []byte) bool {
	var a struct {
		Code int `json:"code"`
	}
	return json.Unmarshal(answer, &a) == nil && a.Code != 0 && a.Code != noSuchPath
}

// ask sends a request. It repeats a poll until nothing is in work any more, and a request that the server rejects because it
// got too many: how many a server takes is no part of its APIs.
func (r *runner) ask(ctx context.Context, q *request, path string, vars Vars) (int, []byte, error) {
	header := http.Header{"Accept": {"application/json"}}
	var body []byte
	if q.method() != http.MethodGet {
		var err error
		if body, err = json.Marshal(vars.fill(q.Body)); err != nil {
			return 0, nil, fmt.Errorf("cannot encode the request: %w", err)
		}
		if !q.Plain {
			header.Set("Content-Type", "application/json")
		}
	}
	if q.Stranger {
		header.Set("X-Bkapi-Authorization", `{"bk_app_code":"no-such-app","bk_app_secret":"wrong","bk_username":"nobody"}`)
	}

	for began := time.Now(); ; {
		status, answer, err := r.send(ctx, q.method(), path, header, body)
		again := tooMany(status, answer) || q.Poll && inWork(answer)
		if err != nil || !again || time.Since(began) > r.Longest {
			return status, answer, err
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(r.Pause):
		}
	}
}

// tooMany reports whether an answer means that the caller sent too many requests. Some APIs say so with the status 200: the
// last digits of their code are then this status.
func tooMany(status int, answer []byte) bool {
	var a struct {
		Code int `json:"code"`
	}
	return status == http.StatusTooManyRequests || json.Unmarshal(answer, &a) == nil && a.Code%1000 == http.StatusTooManyRequests
}

// inWork reports whether the answer of a poll has something that is not done: an entry with the code 115, or a job of
// GSEKit that has not ended.
func inWork(answer []byte) bool {
	var a struct {
		Data struct {
			Status any `json:"status"`
			Info   struct {
				Status string `json:"status"`
			} `json:"job_info"`
		} `json:"data"`
	}
	if json.Unmarshal(answer, &a) == nil && (a.Data.Status == 115.0 || a.Data.Info.Status == "pending" || a.Data.Info.Status == "running") {
		return true
	}
	var entries struct {
		Data map[string]struct {
			Code int `json:"error_code"`
		} `json:"data"`
	}
	if json.Unmarshal(answer, &entries) != nil {
		return false
	}
	for _, e := range entries.Data {
		if e.Code == 115 {
			return true
		}
	}
	return false
}

// compare checks an answer, and saves what later requests need of it.
func (r *runner) compare(s *suite, p prefix, q *request, vars Vars, status int, answer []byte) []Deviation {
	c := &checker{shapes: s.Shapes}
	want := q.Status
	if want == 0 && !(p.Gateway && q.Rejected) {
		want = http.StatusOK
	}
	if want != 0 && status != want {
		c.found = append(c.found, Deviation{Where: "HTTP", Got: fmt.Sprint(status), Want: fmt.Sprint(want)})
	}

	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		c.note("answer", "JSON", string(answer))
		return c.found
	}
	c.check("", vars.fill(q.shape(p)), value)
	for name, path := range q.Save {
		vars.save(name, path, value)
	}
	return c.found
}
