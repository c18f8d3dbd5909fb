//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestProcessesAreChangedInCMDB: what GSEKit's page of attributes changes goes to CMDB as GSEKit sends it, once, and is in the
// audit. CMDB's own errors come back. A caller without the right, an account that is not granted, a process that is not in
// the business and a business from a document are rejected, and CMDB is not asked.
func TestProcessesAreChangedInCMDB(t *testing.T) {
	t.Parallel() // it mostly waits
	k := startKit(t, ft.CMDBProcess{ID: 41, Alias: "nginx", Set: "s", Module: 21, Service: 5, IP: "127.0.0.1"})
	k.flush()
	admin := &tenant{API: k.API, t: t}

	for _, c := range []struct {
		path string
		body ft.J
		data string
		call string
	}{
		{"create_process_instance", ft.J{"service_instance_id": 5, "process_property": ft.J{"bk_process_name": "java", "user": "nobody"}}, "[99]",
			`create_process_instance {"bk_biz_id":2,"processes":[{"process_info":{"bk_process_name":"java","user":"nobody"}}],"service_instance_id":5}`},
		{"update_process_instance", ft.J{"process_property": ft.J{"bk_process_id": 41, "timeout": 9}}, "null",
			`update_process_instance {"bk_biz_id":2,"processes":[{"bk_process_id":41,"timeout":9}]}`},
		{"delete_process_instance", ft.J{"process_instance_ids": []int{41}}, "null",
			`delete_process_instance {"bk_biz_id":2,"process_instance_ids":[41]}`},
		{"create_process_template", ft.J{"service_template_id": 7, "process_property": ft.J{"user": "nobody", "timeout": nil}}, "[99]",
			`batch_create_proc_template {"bk_biz_id":2,"processes":[{"spec":{"timeout":{"as_default_value":false,"value":null},` +
				`"user":{"as_default_value":true,"value":"nobody"}}}],"service_template_id":7}`},
		{"update_process_template", ft.J{"process_template_id": 8,
			"process_property": ft.J{"bind_info": []ft.J{{"row_id": 1, "port": "80"}}}}, "null",
			`update_proc_template {"bk_biz_id":2,"process_property":{"bind_info":{"as_default_value":true,"value":` +
				`[{"port":{"as_default_value":true,"value":"80"},"row_id":1}]}},"process_template_id":8}`},
		{"delete_process_template", ft.J{"process_template_ids": []int{8}}, "null",
			`delete_proc_template {"bk_biz_id":2,"process_templates":[8]}`},
	} {
		before := len(k.cmdb.Writes())
		var data json.RawMessage
		if code, text := admin.kitData(http.MethodPost, "process/"+c.path+"/", c.body, &data); code != 0 || string(data) != c.data {
			t.Errorf("%s: %s", c.path, text)
		}
		if got := k.cmdb.Writes()[before:]; !slices.Equal(got, []string{c.call}) {
			t.Errorf("%s: CMDB was sent %q, want %q", c.path, got, c.call)
		}
	}
	if _, text := admin.native(http.MethodGet, "/api/v1/audit?limit=100", nil, nil); !strings.Contains(text, "cmdb:delete_process_instance 2") {
		t.Errorf("the audit does not have the changes: %s", text)
	}

	// What CMDB rejects, and what does not get there.
	limited := newTenant(t, k.Server, "limited", ft.J{"role": "admin", "businesses": []int{2}, "accounts": []string{"nobody"}})
	viewer := newTenant(t, k.Server, "viewer", ft.J{"role": "viewer", "businesses": []int{2}})
	applyTopology(t, k.API, 3, "biz: 3\nname: c\n")
	create := func(instance int, property ft.J) ft.J {
		return ft.J{"service_instance_id": instance, "process_property": property}
	}
	made := len(k.cmdb.Writes())
	for _, c := range []struct {
		by   *tenant
		path string
		body ft.J
		code int
		says string
	}{
		{admin, "process/create_process_instance/", create(5, ft.J{"bk_process_name": "taken"}), 1199014, "the name is taken"},
		{admin, "process/create_process_instance/", create(99, ft.J{"bk_process_name": "x"}), 4100001, "flush_process"},
		{admin, "process/create_process_instance/", ft.J{"service_instance_id": 5}, 4100001, "process_property"},
		{admin, "process/delete_process_instance/", ft.J{"process_instance_ids": []int{}}, 4100001, "process_instance_ids"},
		{viewer, "process/create_process_instance/", create(5, ft.J{"bk_process_name": "x"}), 4100403, "may not change business 2"},
		{limited, "process/create_process_instance/", create(5, ft.J{"bk_process_name": "x", "user": "root"}), 4100403, "account root"},
		{limited, "process/update_process_instance/", ft.J{"process_property": ft.J{"bk_process_id": 41, "start_cmd": "x"}}, 4100403, "account root"},
		{limited, "process/delete_process_instance/", ft.J{"process_instance_ids": []int{41}}, 4100403, "account root"},
		{admin, "../3/process/create_process_instance/", create(5, ft.J{"bk_process_name": "x"}), 4100015, "topology apply"},
	} {
		path := "/o/bk_gsekit/api/2/" + c.path
		if rest, other := strings.CutPrefix(c.path, "../3/"); other {
			path = "/o/bk_gsekit/api/3/" + rest
		}
		var ans struct {
			Code int `json:"code"`
		}
		if _, text := c.by.native(http.MethodPost, path, c.body, &ans); ans.Code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s %v: %s", c.path, c.body, text)
		}
	}
	if got := k.cmdb.Writes(); len(got) != made {
		t.Errorf("CMDB was sent %q", got[made:])
	}
}

// TestGSEKitPages calls what GSEKit's pages call, in their order, as a stranger would: the page opens, a business and a scope
// are chosen, processes are listed and started, a template is made, bound, generated, released and compared, and the
// statistics show what was done.
func TestGSEKitPages(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	fx := ft.NewDaemon(t, t.TempDir(), "pages_proc")
	applyTopology(t, d.API, 2, "biz: 2\nname: shop\nclouds: [{id: 0, name: default area}]\nsets:\n  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: ["+
		place(5, 1, "one", 46, fx, ", proc_num: 1")+"]}]}\n")
	page := &tenant{API: d.API, t: t}
	ask := func(method, path string, body any, want ...string) string {
		t.Helper()
		var ans struct {
			Result bool            `json:"result"`
			Data   json.RawMessage `json:"data"`
		}
		_, text := page.native(method, path, body, &ans)
		if !ans.Result {
			t.Fatalf("%s %s: %s", method, path, text)
		}
		for _, part := range want {
			if !strings.Contains(string(ans.Data), part) {
				t.Errorf("%s %s does not have %s: %s", method, path, part, text)
			}
		}
		return string(ans.Data)
	}
	const api = "/api/2/"
	scope := ft.J{"bk_set_env": "3", "bk_set_ids": []int{5}}

	// The page opens, and a scope is chosen.
	ask("GET", "/api/0/meta/footer/", nil, `"copyright"`)
	ask("GET", "/api/0/meta/get_user_info/", nil, `"is_superuser":true`)
	ask("GET", "/api/0/cmdb/biz_list/", nil, `"bk_biz_name":"shop"`)
	ask("POST", "/meta/visit/", ft.J{"bk_biz_id": 2}, "null")
	ask("GET", api+"meta/process_filter_choices/", nil, `"default area"`)
	ask("GET", api+"meta/job_filter_choices/", nil, `"job_action_choices"`)
	ask("GET", api+"cmdb/set_list/?bk_set_env=3", nil, `"bk_set_name":"s"`)
	ask("POST", api+"cmdb/module_list/", ft.J{"bk_set_ids": []int{5}}, `"bk_module_name":"web"`)
	ask("POST", api+"cmdb/service_instance/", ft.J{"bk_module_ids": []int{21}}, `"service_instance_name":"one"`)
	ask("GET", api+"cmdb/batch_check_service_template_difference/", nil, "[]")
	ask("POST", api+"process/process_instance_simple/", ft.J{"scope": scope}, `"bk_process_id":46`)
	ask("GET", api+"process/process_instance/?service_instance_id=5", nil, `"bk_process_id":46`)

	// Processes are started, and their state is read.
	wait := func(path string, body ft.J) string {
		t.Helper()
		var made struct {
			ID int64 `json:"job_id"`
		}
		if err := json.Unmarshal([]byte(ask("POST", api+path, body)), &made); err != nil {
			t.Fatal(err)
		}
		answer := ""
		ft.Until(t, time.Minute, func() string { return path + ": " + answer }, func() bool {
			answer = ask("POST", fmt.Sprintf("%sjob/%d/job_status/", api, made.ID), ft.J{})
			return !strings.Contains(answer, `"status":"pending"`) && !strings.Contains(answer, `"status":"running"`)
		})
		ask("GET", fmt.Sprintf("%smeta/job_task_filter_choices/?job_id=%d", api, made.ID), nil, `"pages_proc"`)
		ask("GET", fmt.Sprintf("%sjob/%d/job_task_statistics/", api, made.ID), nil)
		ask("POST", fmt.Sprintf("%sjob/%d/job_task/", api, made.ID), ft.J{"page": 1, "pagesize": 10}, `"count":1`)
		return answer
	}
	if got := wait("process/operate_process/", ft.J{"op_type": "start", "scope": scope}); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("start: %s", got)
	}
	ask("POST", api+"process/sync_process_status/", ft.J{})
	ask("POST", api+"process/process_status/", ft.J{"page": 1, "pagesize": 50, "scope": scope}, `"process_status":1`, `"count":1`)

	// A template gets a version and a process, and becomes a file.
	folder := t.TempDir()
	var template struct {
		ID int64 `json:"config_template_id"`
	}
	if err := json.Unmarshal([]byte(ask("POST", api+"config_template/", ft.J{"template_name": "pages", "file_name": "p.conf", "abs_path": folder,
		"owner": "root", "group": "root", "filemode": "0644", "line_separator": "LF"})), &template); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%sconfig_template/%d/", api, template.ID)
	ask("POST", at+"create_config_version/", ft.J{"description": "d", "content": "id ${bk_process_id}\n", "is_active": true})
	ask("GET", at+"list_version/", nil, `"is_active":true`)
	ask("POST", api+"config_version/preview/", ft.J{"content": "id ${bk_process_id}\n", "bk_process_id": 46}, `id 46`)
	ask("POST", at+"bind_template_to_process/", ft.J{"process_object_list": []ft.J{{"process_object_type": "INSTANCE", "process_object_id": 46}}},
		`"created_relations_count":1`)
	ask("GET", api+"config_template/?page=1&pagesize=10", nil, `"is_bound":true`)
	chosen := ft.J{"scope": scope, "config_template_id": template.ID}
	if got := wait("config_template/generate_config/", chosen); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("generate: %s", got)
	}
	ask("POST", api+"config_instance/list_config_instances/", chosen, `"status":"generated"`)
	if got := wait("config_template/diff_config/", chosen); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("diff of what was never released: %s", got)
	}
	if got := wait("config_template/release_config/", chosen); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("release: %s", got)
	}
	if got, err := os.ReadFile(folder + "/p.conf"); err != nil || string(got) != "id 46\n" {
		t.Errorf("the released file has %q, %v", got, err)
	}
	if got := wait("config_template/diff_config/", chosen); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("diff: %s", got)
	}

	// The page of statistics shows the jobs.
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	from, until := day(time.Now().Add(-24*time.Hour))+" 00:00:00", day(time.Now().Add(24*time.Hour))+" 23:59:59"
	ask("POST", "/meta/job_count_statistics_with_orm/", ft.J{"exclude_conditions": ft.J{}, "group_by": []string{"job_action"},
		"filter_conditions": ft.J{"start_time__gte": from, "start_time__lte": until}},
		`{"count":1,"job_action":"start"}`, `{"count":1,"job_action":"release"}`)
	ask("POST", "/meta/trend_statistics/", ft.J{"start_time": from, "end_time": until, "job_object": "configfile"}, `"count":4`)
	ask("POST", "/meta/frequency_statistics/", ft.J{"start_time": from, "end_time": until, "group_by": "created_by"}, `"count":5`)
	ask("GET", api+"meta/users/", nil, `"username"`)
	wait("process/operate_process/", ft.J{"op_type": "stop", "scope": scope})
}
