//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// configWork starts a job on configuration files and waits for its end. It returns the states of the tasks by process.
func (c *tenant) configWork(body ft.J) (client.ConfigJobDetail, map[int]string) {
	c.t.Helper()
	body["biz"], body["expression"] = 2, "*.*.*.*.*"
	var made client.ConfigJob
	if code, text := c.native(http.MethodPost, "/api/v1/config/jobs", body, &made); code != http.StatusAccepted {
		c.t.Fatalf("%v: %d %s", body, code, text)
	}
	var job client.ConfigJobDetail
	ft.Until(c.t, time.Minute, func() string { return fmt.Sprintf("%+v", job) }, func() bool {
		job = client.ConfigJobDetail{}
		c.native(http.MethodGet, fmt.Sprintf("/api/v1/config/jobs/%d?biz=2", made.ID), nil, &job)
		return job.Done()
	})
	states := map[int]string{}
	for _, t := range job.List {
		states[t.Process] = t.State + t.Reason
	}
	return job, states
}

// TestConfigNative applies a template, renders it, releases it to real files on two hosts, and goes back to what was released before.
func TestConfigNative(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	var places []string
	for n := 1; n <= 2; n++ {
		state := t.TempDir()
		if err := os.WriteFile(state+"/policy.yaml", []byte(filesRules(conf)), 0o600); err != nil {
			t.Fatal(err)
		}
		s.StartAgentIn(t, n, state, "")
		places = append(places, fmt.Sprintf(`{id: %d, name: s%[1]d, host: {ip: 127.0.0.%[1]d, cloud: 0}, processes: [{id: 4%[1]d, name: nginx, user: nobody,
        work_path: /data, pid_file: /run/nginx.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh}]}`, n))
	}
	applyTopology(t, s.API, 2, "biz: 2\nname: b\nsets:\n  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: ["+
		strings.Join(places, ", ")+"]}]}\n")
	applyTopology(t, s.API, 3, "biz: 3\nname: c\nsets: []\n")
	admin := &tenant{API: s.API, t: t}

	// apply makes the template have a content.
	apply := func(content string, dry bool) (out client.ConfigApplied) {
		t.Helper()
		body := ft.J{"biz": 2, "name": "nginx", "file_name": "${bk_host_innerip}.conf", "folder": conf, "owner": "nobody", "group": "nogroup",
			"mode": "0640", "content": content, "dry_run": dry, "bind": ft.J{"processes": []int{41, 42}}}
		if code, text := admin.native(http.MethodPut, "/api/v1/config/templates", body, &out); code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		return out
	}
	has := func(n int, want string) {
		t.Helper()
		if got, err := os.ReadFile(fmt.Sprintf("%s/127.0.0.%d.conf", conf, n)); err != nil || string(got) != want {
			t.Errorf("host %d has %q, %v, want %q", n, got, err, want)
		}
	}
	expect := func(what string, body ft.J, one, two string) client.ConfigJobDetail {
		t.Helper()
		job, got := admin.configWork(body)
		if got[41] != one || got[42] != two {
			t.Fatalf("%s: %v, want %s and %s: %+v", what, got, one, two, job.List)
		}
		return job
	}

	// A dry run changes nothing, and a document that is applied again neither.
	if out := apply("listen ${bk_host_innerip};\n", true); !out.New || out.Template != 0 || len(out.Changes) == 0 {
		t.Errorf("a dry run answers %+v", out)
	}
	var list client.ConfigTemplates
	if admin.native(http.MethodGet, "/api/v1/config/templates?biz=2", nil, &list); list.Count != 0 {
		t.Errorf("a dry run made a template: %+v", list)
	}
	first := apply("listen ${bk_host_innerip};\n", false)
	if again := apply("listen ${bk_host_innerip};\n", false); len(again.Changes) != 0 || again.Version != first.Version {
		t.Errorf("the same document changes %+v", again)
	}

	// Render, generate and release.
	var file client.ConfigRendered
	code, text := admin.native(http.MethodPost, "/api/v1/config/render", ft.J{"biz": 2, "template": first.Template, "process": 41}, &file)
	if code != http.StatusOK || file.Content != "listen 127.0.0.1;\n" || file.Path != conf+"/127.0.0.1.conf" {
		t.Errorf("render: %d %s", code, text)
	}
	work := func(what string) ft.J { return ft.J{"work": what, "templates": []int64{first.Template}} }
	expect("release of nothing", work("release"), "failedconfig_not_made", "failedconfig_not_made")
	expect("generate", work("generate"), "succeeded", "succeeded")
	expect("release", work("release"), "succeeded", "succeeded")
	has(1, "listen 127.0.0.1;\n")
	has(2, "listen 127.0.0.2;\n")

	// A file that a person changed is not replaced unseen.
	second := apply("listen ${bk_host_innerip}:8080;\n", false)
	if err := os.WriteFile(conf+"/127.0.0.1.conf", []byte("by hand\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	expect("diff", work("diff"), "failedconfig_differs", "succeeded")
	expect("generate again", work("generate"), "succeeded", "succeeded")
	expect("release over a change", work("release"), "failedconfig_write", "succeeded")
	has(1, "by hand\n")
	forced := work("release")
	forced["force"] = true
	expect("forced release", forced, "succeeded", "succeeded")
	has(1, "listen 127.0.0.1:8080;\n")

	// Back to the first version; what was never released cannot be rolled back to.
	back := work("rollback")
	back["version"] = first.Version
	job := expect("rollback", back, "succeeded", "succeeded")
	if job.Work != "rollback" || job.Version != first.Version || second.Version == first.Version {
		t.Errorf("the job is %+v", job.ConfigJob)
	}
	has(1, "listen 127.0.0.1;\n")
	has(2, "listen 127.0.0.2;\n")
	expect("diff after a rollback", work("diff"), "succeeded", "succeeded")
	var jobs client.ConfigJobs
	if admin.native(http.MethodGet, "/api/v1/config/jobs?biz=2", nil, &jobs); jobs.Count < 8 || jobs.Jobs[1].Work != "rollback" {
		t.Errorf("the history is %+v", jobs)
	}

	configRights(t, s, first.Template, first.Version)
	if code, text := admin.native(http.MethodDelete, fmt.Sprintf("/api/v1/config/templates/%d?biz=2", first.Template), nil, nil); code != http.StatusOK {
		t.Errorf("remove: %d %s", code, text)
	}
}

// configRights has callers try to get around their rights: a viewer of the business, and an admin of another one.
func configRights(t *testing.T, s *ft.Server, template, version int64) {
	t.Helper()
	viewer := newTenant(t, s, "viewer", ft.J{"role": "viewer", "businesses": []int{2}})
	other := newTenant(t, s, "other", ft.J{"role": "operator", "businesses": []int{3}, "accounts": []string{"*"}},
		ft.J{"role": "operator", "businesses": []int{3}, "accounts": []string{"*"}, "actions": []string{"configure"}})
	put := ft.J{"biz": 2, "name": "nginx", "file_name": "x", "folder": "/x", "owner": "nobody", "group": "nogroup", "content": "x"}
	for _, c := range []*tenant{viewer, other} {
		for _, work := range []string{"generate", "release", "diff", "rollback"} {
			body := ft.J{"biz": 2, "work": work, "templates": []int64{template}, "expression": "*.*.*.*.*"}
			if work == "rollback" {
				body["version"] = version
			}
			if code, text := c.native(http.MethodPost, "/api/v1/config/jobs", body, nil); code != http.StatusForbidden {
				t.Errorf("%s: %d %s", work, code, text)
			}
		}
		if code, text := c.native(http.MethodPut, "/api/v1/config/templates", put, nil); code != http.StatusForbidden {
			t.Errorf("apply: %d %s", code, text)
		}
		if code, text := c.native(http.MethodDelete, fmt.Sprintf("/api/v1/config/templates/%d?biz=2", template), nil, nil); code != http.StatusForbidden {
			t.Errorf("remove: %d %s", code, text)
		}
	}

	// The other one does not even see it, also not through its own business.
	for _, path := range []string{"templates/%d?biz=2", "templates/%d?biz=3", "jobs/%d?biz=2", "jobs/%d?biz=3"} {
		if code, text := other.native(http.MethodGet, "/api/v1/config/"+fmt.Sprintf(path, template), nil, nil); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for _, biz := range []int{2, 3} {
		body := ft.J{"biz": biz, "template": template, "process": 41}
		if code, text := other.native(http.MethodPost, "/api/v1/config/render", body, nil); code != http.StatusNotFound {
			t.Errorf("render: %d %s", code, text)
		}
	}
}
