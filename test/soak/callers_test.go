//go:build linux

package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// actions are what callers ask for, with their shares.
var actions = []struct {
	name  string
	share int
}{{"start", 30}, {"stop", 14}, {"restart", 12}, {"reload", 18}, {"kill", 6}, {"manage", 8}, {"unmanage", 4}, {"query", 5}}

func action(r *rand.Rand) string {
	sum := 0
	for _, a := range actions {
		sum += a.share
	}
	n := r.IntN(sum)
	for _, a := range actions {
		if n -= a.share; n < 0 {
			return a.name
		}
	}
	return "query"
}

// call is the life of one caller: one request after the other until the soak is over.
func (s *soak) call(r *rand.Rand) {
	for !s.over() {
		q := &request{action: action(r)}
		switch n := r.IntN(100); {
		case n < 35:
			q.door, q.daemons = "GSE", s.some(r, 1, ownSpace, kitSpace)
		case n < 55:
			q.door, q.daemons = "GSE multi", s.some(r, 2+r.IntN(6), ownSpace, kitSpace)
		case n < 65:
			q.door, q.daemons = "Job", s.some(r, 1+r.IntN(3), jobSpace)
			q.action = []string{"start", "start", "stop"}[r.IntN(3)]
		case n < 77:
			q.door, q.daemons = "GSEKit", s.some(r, 1+r.IntN(4), kitSpace)
			q.action = []string{"start", "start", "stop", "kill", "unmanage", "manage"}[r.IntN(6)]
			if q.action == "kill" && slices.ContainsFunc(q.daemons, func(d *daemon) bool { return !d.kill }) {
				q.action = "start" // a job without a command has no effect to compare
			}
		case n < 93:
			q.door, q.daemons = "API", s.some(r, 1, ownSpace, kitSpace)
		default:
			q.door, q.daemons = "command line", s.some(r, 1, ownSpace, kitSpace)
			if q.action == "query" {
				q.action = "start"
			}
		}
		if q.door == "GSE multi" { // it wants a pid file
			q.daemons = slices.DeleteFunc(q.daemons, func(d *daemon) bool { return d.nopid })
		}
		if len(q.daemons) > 0 {
			s.send(q, nil)
		}
		s.pause(r, 10*time.Millisecond, 300*time.Millisecond)
	}
}

// some draws different daemons of the given namespaces.
func (s *soak) some(r *rand.Rand, n int, spaces ...string) (list []*daemon) {
	for range 20 * n {
		d := s.all[r.IntN(len(s.all))]
		if slices.Contains(spaces, d.space) && !slices.Contains(list, d) {
			list = append(list, d)
		}
		if len(list) == n {
			break
		}
	}
	return list
}

// send sends a request through its door and waits for its end. It opens a window for each daemon meanwhile.
func (s *soak) send(q *request, spec ft.J) {
	q.sent = time.Now()
	at := make([]int, len(q.daemons))
	s.mu.Lock()
	s.requests = append(s.requests, q)
	for i, d := range q.daemons {
		at[i] = len(d.windows)
		d.windows = append(d.windows, window{span: span{from: q.sent}, action: q.action, door: q.door})
	}
	s.mu.Unlock()

	switch q.door {
	case "GSE", "GSE multi":
		s.gse(q, spec)
	case "Job":
		s.job(q)
	case "GSEKit":
		s.kit(q)
	case "API":
		s.own(q)
	case "command line":
		s.commandLine(q)
	}

	// A request without an answer may have been accepted all the same.
	to := time.Now()
	if q.acked.IsZero() {
		to = to.Add(90 * time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range q.daemons {
		w := &d.windows[at[i]]
		w.to, w.task = to, q.task
	}
}

// defineDaemons registers all daemons, applies the topology, and starts two thirds of them.
func (s *soak) defineDaemons() {
	r := s.random(1 << 41)
	var work sync.WaitGroup
	for part := range slices.Chunk(s.all, (len(s.all)+7)/8) {
		work.Go(func() {
			for _, d := range part {
				if d.space == ownSpace {
					s.define(d, "register_proc_info", "", "")
				}
			}
		})
	}
	work.Wait()
	s.applyTopology()

	var first, nopid, kit, job []*daemon
	for _, d := range s.all {
		switch {
		case r.IntN(3) == 0:
		case d.nopid:
			nopid = append(nopid, d)
		case d.space == ownSpace:
			first = append(first, d)
		case d.space == kitSpace:
			kit = append(kit, d)
		case d.space == jobSpace:
			job = append(job, d)
		}
	}
	s.overAt = time.Now()
	for part := range slices.Chunk(first, 40) {
		s.send(&request{door: "GSE multi", action: "start", daemons: part}, nil)
	}
	for _, d := range nopid {
		s.send(&request{door: "GSE", action: "start", daemons: []*daemon{d}}, nil)
	}
	if len(kit) > 0 {
		s.send(&request{door: "GSEKit", action: "start", daemons: kit}, nil)
	}
	if len(job) > 0 {
		s.send(&request{door: "Job", action: "start", daemons: job}, nil)
	}
}

// define registers or updates a definition. It repeats the call until the host has it. GSE wants a pid file, so
// definitions without one go through our own API, and so does every third of the others.
func (s *soak) define(d *daemon, call, name, user string) {
	set := func() (bool, string) { return s.defineGSE(d, call, name, user) }
	if d.nopid || s.marks.Add(1)%3 == 0 {
		set = func() (bool, string) { return s.defineOwn(d, name, user) }
	}
	answer := ""
	ok := s.await(3*time.Minute, func() (ok bool) {
		ok, answer = set()
		return ok
	})
	if !ok {
		s.t.Errorf("%s of %s does not succeed: %s", call, d.id, answer)
	}
}

func (s *soak) defineGSE(d *daemon, call, name, user string) (ok bool, answer string) {
	ans, err := s.server.Try(call, ft.J{"meta": ft.J{"namespace": d.space, "name": d.process},
		"hosts": []ft.J{ft.Host(d.host)}, "spec": d.spec(name, user)})
	out := map[string]ft.Entry{}
	if err != nil || ans.Code != 0 || json.Unmarshal(ans.Data, &out) != nil {
		return false, fmt.Sprint(err, string(ans.Raw))
	}
	for _, e := range out {
		ok = e.Code == 0 || e.Code == 850
	}
	return ok, string(ans.Raw)
}

func (s *soak) defineOwn(d *daemon, name, user string) (ok bool, answer string) {
	doc, err := json.Marshal(ft.J{"namespace": d.space, "name": d.process, "hosts": []ft.J{{"ip": address(d.host)}},
		"spec": d.spec(name, user)})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, err := s.native.RegisterDocument(ctx, doc)
	if err != nil {
		return false, err.Error()
	}
	task, err := s.native.Wait(ctx, a.TaskID, nil)
	return err == nil && task.Counts.Done == task.Counts.Targets, fmt.Sprintf("%v %+v", err, task.Attempts)
}

// undefine removes a definition. The process keeps running.
func (s *soak) undefine(d *daemon) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ans, err := s.server.Try("unregister_proc_info", ft.J{"meta": ft.J{"namespace": d.space, "name": d.process},
			"hosts": []ft.J{ft.Host(d.host)}})
		out := map[string]ft.Entry{}
		if err != nil || ans.Code != 0 || json.Unmarshal(ans.Data, &out) != nil {
			continue
		}
		for _, e := range out {
			if e.Code != 117 {
				return
			}
		}
	}
}

// applyTopology applies a document with the daemons of GSEKit.
func (s *soak) applyTopology() {
	var places []string
	for i, d := range s.all {
		if d.space != kitSpace {
			continue
		}
		more := ""
		for _, c := range []string{"restart", "reload"} {
			if d.has(c) {
				more += fmt.Sprintf(", %s_cmd: ./%s.sh", c, c)
			}
		}
		if d.kill {
			more += ", face_stop_cmd: ./kill.sh"
		}
		places = append(places, fmt.Sprintf("{id: %d, name: s%d, host: {ip: %s, cloud: 0}, processes: [{id: %d, name: %s, "+
			"func_name: goosed, user: %s, work_path: %s, pid_file: %s, start_cmd: ./start.sh, stop_cmd: ./stop.sh, "+
			"timeout: 20, start_check_secs: 1, priority: %d%s}]}",
			i+1, i+1, address(d.host), i+1, d.id, d.account, d.dir, d.pidFile(), 1+i%2, more))
	}
	if len(places) == 0 {
		return
	}

	doc := "biz: 2\nname: soak\nclouds: [{id: 0, name: default area}]\nsets:\n  - {id: 5, name: pond, env: 3, " +
		"modules: [{id: 21, name: geese, instances: [\n      " + strings.Join(places, ",\n      ") + "]}]}\n"
	cred, err := json.Marshal(ft.J{"bk_app_code": s.server.Cred.AppCode, "bk_app_secret": s.server.Cred.Secret,
		"bk_username": s.server.Cred.Username})
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, s.server.Cred.URL+"/api/v1/topology/2",
		strings.NewReader(doc))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Bkapi-Authorization", string(cred))
	req.Header.Set("Content-Type", "application/yaml")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("topology: %s", res.Status)
	}
}
