//go:build linux

package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// request is what one caller asked for, and what the door answered.
type request struct {
	door, action string
	daemons      []*daemon
	sent         time.Time
	acked        time.Time         // zero when no door acknowledged it
	final        time.Time         // when the caller saw the last verdict, zero when it never did
	task         string            // "" for jobs, whose tasks the caller does not see
	lost         string            // why the door does not know the task any more
	verdicts     map[string]string // by the key of the result: what the door says in the end
}

// numbers are the op_type of GSE and Job.
var numbers = map[string]int{"start": 0, "stop": 1, "query": 2, "manage": 3, "unmanage": 4, "restart": 7, "reload": 8,
	"kill": 9}

// ask sends a request again and again with one idempotency key until it is acknowledged.
func (s *soak) ask(q *request, path string, body ft.J, taskField string) bool {
	key := fmt.Sprintf("soak-%d", s.marks.Add(1))
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ans, err := s.server.TryWith(path, body, http.Header{"Idempotency-Key": {key}})
		if err != nil {
			continue
		}
		if ans.Code != 0 {
			s.t.Errorf("%s: %s", path, ans.Raw)
			return false
		}
		var d map[string]any
		if json.Unmarshal(ans.Data, &d) != nil || d[taskField] == nil {
			s.t.Errorf("%s: no %s in %s", path, taskField, ans.Raw)
			return false
		}
		q.task, q.acked = fmt.Sprint(d[taskField]), time.Now()
		return true
	}
	return false
}

// gse sends one action on one or more daemons through the GSE door. The first form uses the registered definition; the
// other forms carry one, which is spec, or the usual one when spec is nil.
func (s *soak) gse(q *request, spec ft.J) {
	const base = "/api/c/compapi/v2/gse/"
	item := func(d *daemon) ft.J {
		carried := spec
		if spec == nil {
			carried = d.spec("", "")
		}
		return ft.J{"meta": ft.J{"namespace": d.space, "name": d.process}, "op_type": numbers[q.action], "spec": carried,
			"hosts": []ft.J{{"ip": address(d.host), "bk_cloud_id": 0}}}
	}

	// Send it.
	var ok bool
	switch d := q.daemons[0]; {
	case len(q.daemons) > 1:
		var items []ft.J
		for _, d := range q.daemons {
			items = append(items, item(d))
		}
		ok = s.ask(q, base+"operate_proc_multi/", ft.J{"proc_operate_req": items}, "task_id")
	case spec == nil && (d.nopid || s.marks.Add(1)%2 == 0):
		ok = s.ask(q, base+"operate_proc/", ft.J{"meta": ft.J{"namespace": d.space, "name": d.process},
			"op_type": numbers[q.action], "hosts": []ft.J{ft.Host(d.host)}}, "task_id")
	default:
		ok = s.ask(q, base+"operate_proc_v2/", item(d), "task_id")
	}

	if ok {
		s.pollGSE(q)
	}
}

// pollGSE polls the result until every verdict is final.
func (s *soak) pollGSE(q *request) {
	s.poll(q, func() (map[string]ft.Entry, string) {
		ans, err := s.server.Try("get_proc_operate_result", ft.J{"task_id": q.task})
		out := map[string]ft.Entry{}
		switch {
		case err != nil:
			return nil, ""
		case ans.Code != 0:
			return nil, string(ans.Raw)
		case json.Unmarshal(ans.Data, &out) != nil:
			return nil, ""
		}
		return out, ""
	})
}

// poll asks for results until all are final. look returns nil for no answer.
func (s *soak) poll(q *request, look func() (out map[string]ft.Entry, lost string)) {
	for end := s.overAt.Add(4 * time.Minute); time.Now().Before(end); time.Sleep(150 * time.Millisecond) {
		out, lost := look()
		if lost != "" {
			q.lost = lost
			return
		}
		open := len(out) == 0
		for _, e := range out {
			open = open || e.Code == 115 || strings.Contains(e.Msg, "not known yet")
		}
		if !open {
			q.verdicts = map[string]string{}
			for k, e := range out {
				q.verdicts[k] = fmt.Sprintf("%d %s", e.Code, e.Msg)
			}
			q.final = time.Now()
			return
		}
	}
}

// job sends start, stop or query through the door of Job.
func (s *soak) job(q *request) {
	var infos []ft.J
	for _, d := range q.daemons {
		infos = append(infos, ft.J{"setup_path": d.dir, "proc_name": "goosed", "pid_path": d.pidFile(), "account": d.account,
			"cpu_lmt": 100, "mem_lmt": 100, "ip_list": []ft.J{{"bk_cloud_id": 0, "ip": address(d.host)}}})
	}
	if !s.ask(q, "/api/c/compapi/v2/jobv3/operate_proc/",
		ft.J{"bk_biz_id": 1, "op_type": numbers[q.action], "process_infos": infos}, "bk_gse_taskid") {
		return
	}

	query := url.Values{"bk_app_code": {s.server.Cred.AppCode}, "bk_app_secret": {s.server.Cred.Secret},
		"bk_username": {s.server.Cred.Username}, "bk_biz_id": {"1"}, "bk_gse_taskid": {q.task}}
	s.poll(q, func() (map[string]ft.Entry, string) {
		res, err := s.server.Client.Get(s.server.Cred.URL + "/api/c/compapi/v2/job/get_proc_result/?" + query.Encode())
		if err != nil {
			return nil, ""
		}
		defer res.Body.Close()
		var ans struct {
			Result bool
			Data   struct {
				Status int
				Result map[string]struct {
					Code int    `json:"error_code"`
					Msg  string `json:"error_msg"`
				}
			}
			Message string
		}
		if json.NewDecoder(res.Body).Decode(&ans) != nil {
			return nil, ""
		}
		if !ans.Result {
			return nil, "Job: " + ans.Message
		}
		out := map[string]ft.Entry{}
		for k, e := range ans.Data.Result {
			out[k] = ft.Entry{Code: e.Code, Msg: e.Msg}
		}
		return out, ""
	})
}

// kit runs a GSEKit job by expression. Its tasks are found in the record.
func (s *soak) kit(q *request) {
	const base = "/api/c/compapi/v2/gsekit/api/"
	var names []string
	for _, d := range q.daemons {
		names = append(names, d.id)
	}
	action := map[string]string{"kill": "force_stop", "manage": "set_auto", "unmanage": "unset_auto"}[q.action]
	if action == "" {
		action = q.action
	}
	scope := ft.J{"bk_set_env": 3, "bk_set_name": "*", "bk_process_name": "[" + strings.Join(names, ",") + "]"}

	// Create it. A job that was sent twice would be two jobs, so it is sent once.
	ans, err := s.server.TryWith(base+"job/create_job/", ft.J{"bk_biz_id": 2, "job_object": "process",
		"job_action": action, "expression_scope": scope}, nil)
	var made struct {
		ID int64 `json:"job_id"`
	}
	if err != nil {
		return
	}
	if ans.Code != 0 || json.Unmarshal(ans.Data, &made) != nil || made.ID == 0 {
		s.t.Errorf("create_job %s: %s", action, ans.Raw)
		return
	}
	q.acked = time.Now()

	// Wait for its end.
	for end := s.overAt.Add(4 * time.Minute); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		ans, err := s.server.TryWith(base+"job/job_status/", ft.J{"bk_biz_id": 2, "job_id": made.ID}, nil)
		var job struct {
			Info struct{ Status string } `json:"job_info"`
		}
		if err != nil || json.Unmarshal(ans.Data, &job) != nil {
			continue
		}
		if ans.Code != 0 {
			q.lost = string(ans.Raw)
			return
		}
		if job.Info.Status == "succeeded" || job.Info.Status == "failed" {
			q.final = time.Now()
			return
		}
	}
}

// own sends an action through our own API.
func (s *soak) own(q *request) {
	d := q.daemons[0]
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	op := client.Operation{Action: q.action, IdempotencyKey: fmt.Sprintf("soak-%d", s.marks.Add(1)),
		Selection: client.Selection{Namespace: d.space, Names: []string{d.process},
			Hosts: []client.Host{{IP: address(d.host)}}}}
	for end := time.Now().Add(2 * time.Minute); q.task == "" && time.Now().Before(end); {
		a, err := s.native.Operate(ctx, op)
		switch {
		case err == nil:
			q.task, q.acked = a.TaskID, time.Now()
		case strings.Contains(err.Error(), "no process matches") || strings.Contains(err.Error(), "nothing matched"):
			return // it is not registered now
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
	if q.task != "" {
		s.pollOwn(ctx, q)
	}
}

// pollOwn waits for a task through our own API.
func (s *soak) pollOwn(ctx context.Context, q *request) {
	for end := s.overAt.Add(4 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		task, err := s.native.Task(ctx, q.task, time.Second, client.ShowAll)
		if err != nil {
			if strings.Contains(err.Error(), "no such task") || strings.Contains(err.Error(), "not found") {
				q.lost = err.Error()
				return
			}
			continue
		}
		if !task.Final {
			continue
		}
		open := false
		q.verdicts = map[string]string{}
		for _, a := range task.Attempts {
			open = open || a.State == "unknown"
			q.verdicts[a.Namespace+"/"+a.Name] = string(a.Code) + " " + a.Message
		}
		if !open {
			q.final = time.Now()
			return
		}
	}
}

// commandLine sends an action with the program itself.
func (s *soak) commandLine(q *request) {
	d := q.daemons[0]
	cmd := exec.Command(ft.Binary(s.t), q.action, d.process, "-n", d.space, "--host", address(d.host), "--detach",
		"-o", "json")
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(s.server.Data, "credentials.json"))
	out, err := cmd.Output()
	var a client.Accepted
	if err != nil || json.Unmarshal(out, &a) != nil || a.TaskID == "" {
		return // the server is down, or the process is not registered now
	}
	q.task, q.acked = a.TaskID, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	s.pollOwn(ctx, q)
}

func address(host int) string { return fmt.Sprintf("127.0.0.%d", host) }
