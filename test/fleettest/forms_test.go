//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func TestCallersForms(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 2)
	g := newRegisteredDaemon(t, d, "forms", "gzforms", nil)
	g.op(0, 0)
	agent := g.status().AgentID
	if !regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`).MatchString(agent) {
		t.Fatalf("agent id %q", agent)
	}

	query := func(targets ft.J) ft.J {
		item := ft.J{"meta": g.meta, "op_type": 2, "spec": g.fx.Spec(nil)}
		for k, v := range targets {
			item[k] = v
		}
		return item
	}

	// Each form of naming a process and its host.
	forms := []struct {
		name, path string
		body       ft.J
		key        string
	}{
		{"V2 by address", "/api/c/compapi/v2/gse/operate_proc_v2/",
			query(ft.J{"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}}), "0:127.0.0.1:gse:forms"},
		{"no v2 in the path", "/api/c/compapi/gse/operate_proc_v2",
			query(ft.J{"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}}), "0:127.0.0.1:gse:forms"},
		{"gateway by agent id", "/api/v2/proc/operate_proc_v2", query(ft.J{"agent_id_list": []string{agent}}),
			agent + ":gse:forms"},
		{"gateway stage, cloud:ip as agent id", "/api/bk-gse/prod/api/v2/proc/operate_proc_v2/",
			query(ft.J{"agent_id_list": []string{"0:127.0.0.1"}}), "0:127.0.0.1:gse:forms"},
		{"multi", "//api//v2/proc/operate_proc_multi/",
			ft.J{"proc_operate_req": []ft.J{query(ft.J{"agent_id_list": []string{agent}})}}, agent + ":gse:forms"},
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			a := d.For(t)
			ans, err := a.TryWith(f.path, f.body, nil)
			if err != nil || ans.Code != 0 || !ans.Result {
				t.Fatalf("%v %s", err, ans.Raw)
			}

			var task struct {
				ID string `json:"task_id"`
			}
			if err := json.Unmarshal(ans.Data, &task); err != nil {
				t.Fatal(err)
			}

			r := a.Await(task.ID)
			if e, ok := r[f.key]; !ok || len(r) != 1 || e.Code != 0 ||
				!strings.Contains(e.Content, fmt.Sprintf(`"pid":%d`, g.fx.PID())) {
				t.Fatalf("%v", r)
			}
		})
	}

	t.Run("credentials in a header", func(t *testing.T) {
		h := http.Header{"X-Bkapi-Authorization": {fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":%q}`, d.Cred.AppCode, d.Cred.Secret, d.Cred.Username)}}
		ans, err := d.Post("/api/v2/proc/sync_proc_status",
			[]byte(`{"meta":{"namespace":"gse"},"page":{"start":0,"limit":1000}}`), h)
		if err != nil || ans.Code != 0 {
			t.Fatalf("%v %s", err, ans.Raw)
		}
		h.Set("X-Bkapi-Authorization", strings.Replace(h.Get("X-Bkapi-Authorization"), d.Cred.Secret[:4], "0000", 1))
		ans, err = d.Post("/api/c/compapi/v2/gse/sync_proc_status/",
			[]byte(`{"meta":{"namespace":"gse"},"page":{"start":0,"limit":1000}}`), h)
		if err != nil || ans.Code != 1306000 || ans.Status != 200 || ans.Result {
			t.Fatalf("%v %s", err, ans.Raw)
		}
	})

	t.Run("agents", func(t *testing.T) {
		var rows []struct {
			ID     string `json:"bk_agent_id"`
			Status int    `json:"status_code"`
		}
		ans, err := d.TryWith("/api/v2/cluster/list_agent_state", ft.J{"agent_id_list": []string{agent}}, nil)
		if err != nil || ans.Code != 0 || json.Unmarshal(ans.Data, &rows) != nil || len(rows) != 1 ||
			rows[0].ID != agent || rows[0].Status != 2 {
			t.Fatalf("%v %s", err, ans.Raw)
		}

		ans, err = d.TryWith("/api/v2/proc/upgrade_to_agent_id",
			ft.J{"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0, "bk_agent_id": agent}}}, nil)
		if err != nil || ans.Code != 0 || !strings.Contains(string(ans.Data), "0:127.0.0.1") {
			t.Fatalf("%v %s", err, ans.Raw)
		}
	})

	t.Run("groups", func(t *testing.T) {
		group := ft.J{"id": "gse", "resource": ft.J{"cpu_pool_limit": 20, "mem_pool_limit": 20.5,
			"cpu_pool_weight": 0, "mem_pool_weight": 1}}
		req := ft.J{"meta": ft.J{"namespace": "gse"}, "hosts": []ft.J{ft.Host(1)},
			"spec": ft.J{"process_group": []ft.J{group}}}
		set := map[string]ft.Entry{}
		d.For(t).OK("set_process_group_info", req, &set)

		if e, ok := set["0:0:127.0.0.1:gse"]; !ok || e.Code != 0 {
			t.Fatalf("%v", set)
		}

		var get struct {
			Infos []struct {
				ID       string
				Resource map[string]float64
			} `json:"process_group_infos"`
		}
		d.For(t).OK("get_process_group_info", ft.J{"meta": ft.J{"namespace": "gse"}, "hosts": []ft.J{ft.Host(1)}}, &get)

		if len(get.Infos) != 1 || get.Infos[0].ID != "gse" || get.Infos[0].Resource["mem_pool_limit"] != 20.5 ||
			get.Infos[0].Resource["mem_pool_weight"] != 1 {
			t.Fatalf("%+v", get)
		}
	})
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	g := newRegisteredDaemon(t, d, "once", "gzonce", nil)
	h := http.Header{"Idempotency-Key": {"k-1"}}
	body := ft.J{"meta": g.meta, "op_type": 8, "hosts": []ft.J{ft.Host(1)}}
	tasks := make(chan string, 20)
	for range cap(tasks) {
		go func() {
			ans, err := g.TryWith("/api/c/compapi/v2/gse/operate_proc/", body, h)
			if err != nil {
				tasks <- err.Error()
				return
			}
			tasks <- string(ans.Data)
		}()
	}

	first := <-tasks
	for range cap(tasks) - 1 {
		if got := <-tasks; got != first {
			t.Fatalf("%s differs from %s", got, first)
		}
	}

	var task struct {
		ID string `json:"task_id"`
	}
	if err := json.Unmarshal([]byte(first), &task); err != nil {
		t.Fatal(err)
	}
	if e := g.Await(task.ID)[g.key]; e.Code != 0 || g.fx.Count("reload") != 1 {
		t.Fatalf("%+v, calls %v", e, g.fx.Calls())
	}

	body["op_type"] = 7
	ans, err := g.TryWith("/api/c/compapi/v2/gse/operate_proc/", body, h)
	if err != nil || ans.Code != 1306406 {
		t.Fatalf("%v %s", err, ans.Raw)
	}
}

func TestThousandItems(t *testing.T) {
	d := ft.StartDev(t, 1)
	fx := ft.NewDaemon(t, t.TempDir(), "gzmany")
	var items []ft.J
	for i := range 1000 {
		items = append(items, ft.J{"meta": ft.J{"namespace": "many", "name": fmt.Sprintf("p%d", i)}, "op_type": 2,
			"agent_id_list": []string{"0:127.0.0.1"}, "spec": fx.Spec(ft.J{"op_timeout": 60})})
	}

	items[7]["op_type"] = 6
	r := verdicts(t, d.API, d.Operate("operate_proc_multi", ft.J{"proc_operate_req": items}))
	if len(r) != 1000 {
		t.Fatalf("%d entries", len(r))
	}

	for i := range 1000 {
		e := r[fmt.Sprintf("0:127.0.0.1:many:p%d", i)]
		if i == 7 && e.Code != 832 || i != 7 && (e.Code != 0 || !strings.Contains(e.Content, `"pid":-1`)) {
			t.Fatalf("%d: %+v", i, e)
		}
	}
}
