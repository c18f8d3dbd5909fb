package gsekit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/blueking/gsekit"
)

// generated is a business with a template that is bound to its processes, on the real server.
type generated struct {
	*real
	template int64
	version  int64
}

func newGenerated(t *testing.T, content string) *generated {
	t.Helper()
	g := &generated{real: newReal(t, module(
		place(1, 0, line(61, "web", "proc_num=2")), place(2, 1, line(62, "web", "proc_num=1")), place(3, 0, line(63, "db")),
	), 0, gsekit.Options{})}
	g.template = g.add("config_template", `{"template_name":"web","file_name":"web-${LocalInstID}.conf","abs_path":"/data/${FuncID}","owner":"root",`+
		`"group":"root","filemode":"0644","line_separator":"LF"}`, "config_template_id")
	g.version = g.add(fmt.Sprintf("config_template/%d/create_config_version", g.template),
		`{"description":"d","is_active":true,"content":`+quote(t, content)+`}`, "config_version_id")
	g.data(http.MethodPost, fmt.Sprintf("config_template/%d/bind_template_to_process", g.template),
		`{"process_object_list":[{"process_object_type":"INSTANCE","process_object_id":61},{"process_object_type":"INSTANCE","process_object_id":62}]}`)
	return g
}

func quote(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// data calls a route that must succeed.
func (g *generated) data(method, path, body string) json.RawMessage {
	g.t.Helper()
	e := g.do(g.t, method, "/api/2/"+path, body)
	if *e.Code != 0 {
		g.t.Fatalf("%s %s: %d %s", method, path, *e.Code, *e.Message)
	}
	return e.Data
}

// add makes something and returns its id.
func (g *generated) add(path, body, key string) int64 {
	g.t.Helper()
	var made map[string]any
	if err := json.Unmarshal(g.data(http.MethodPost, path, body), &made); err != nil {
		g.t.Fatal(err)
	}
	id, ok := made[key].(float64)
	if !ok || id == 0 {
		g.t.Fatalf("%s has no %s: %v", path, key, made)
	}
	return int64(id)
}

// configTask is a task of a job on configuration files.
type configTask struct {
	Process int    `json:"bk_process_id"`
	Status  string `json:"status"`
	Code    int    `json:"err_code"`
	Extra   struct {
		Inst    int    `json:"inst_id"`
		Reason  string `json:"failed_reason"`
		Related struct {
			Specified bool    `json:"is_config_specified"`
			Templates []int64 `json:"related_config_template_ids"`
		} `json:"related_config_info"`
		Instances []struct {
			ID       int64  `json:"id"`
			Template int64  `json:"config_template_id"`
			File     string `json:"file_name"`
			Path     string `json:"path"`
		} `json:"config_instances"`
	} `json:"extra_data"`
}

// run creates a job and waits for its end.
func (g *generated) run(path, body string) (status string, tasks []configTask) {
	g.t.Helper()
	id := g.add(path, body, "job_id")
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var job struct {
			Info struct {
				Status string `json:"status"`
				Object string `json:"job_object"`
				Action string `json:"job_action"`
			} `json:"job_info"`
			Tasks []configTask `json:"job_tasks"`
		}
		if err := json.Unmarshal(g.data(http.MethodPost, fmt.Sprintf("job/%d/job_status", id), ``), &job); err != nil {
			g.t.Fatal(err)
		}
		if job.Info.Object != "configfile" {
			g.t.Fatalf("the job is about %s", job.Info.Object)
		}
		if job.Info.Status == "succeeded" || job.Info.Status == "failed" {
			return job.Info.Status, job.Tasks
		}
		if time.Now().After(end) {
			g.t.Fatalf("job %d has not ended: %+v", id, job)
		}
	}
}

// TestGenerate renders files for each instance of the bound processes, and shows them through every route.
func TestGenerate(t *testing.T) {
	g := newGenerated(t, "## not shown\nset ${bk_set_name} port ${8000 + LocalInstID} of ${len(cc.findall('.//Host'))}\n")
	scope := `{"scope":{"bk_set_env":"3"}`

	// Before: nothing is there.
	var files []map[string]any
	read := func(body string) {
		t.Helper()
		files = nil
		if err := json.Unmarshal(g.data(http.MethodPost, "config_instance/list_config_instances", body), &files); err != nil {
			t.Fatal(err)
		}
	}
	if read(scope + `}`); len(files) != 3 || files[0]["status"] != "not_generated" || files[0]["created_at"] != "-" {
		t.Fatalf("before: %v", files)
	}

	// The job: process 63 has no template and is ignored.
	status, tasks := g.run("config_template/generate_config", scope+`}`)
	if status != "succeeded" || len(tasks) != 4 {
		t.Fatalf("%s: %+v", status, tasks)
	}
	for _, task := range tasks {
		switch {
		case task.Process == 63 && task.Status == "ignored" && task.Code == 4 && task.Extra.Reason == "进程未绑定配置模板":
		case task.Process != 63 && task.Status == "succeeded" && len(task.Extra.Instances) == 1 && !task.Extra.Related.Specified &&
			strings.HasPrefix(task.Extra.Instances[0].File, "web-"):
		default:
			t.Errorf("task %+v", task)
		}
	}

	// After: each instance has its file.
	if read(scope + `}`); len(files) != 3 || files[0]["status"] != "generated" || files[0]["config_version_id"] != float64(g.version) {
		t.Fatalf("after: %v", files)
	}
	var newest struct {
		Generated struct {
			ID      int64  `json:"id"`
			Content string `json:"content"`
		} `json:"generated_config"`
		Released any  `json:"released_config"`
		IsLatest bool `json:"is_latest"`
	}
	latest := fmt.Sprintf("config_instance/latest_config_instance?config_template_id=%d&bk_process_id=61", g.template)
	if err := json.Unmarshal(g.data(http.MethodGet, latest, ""), &newest); err != nil || !newest.IsLatest || newest.Released != nil ||
		!strings.Contains(newest.Generated.Content, " port 8001 of 2\n") {
		t.Errorf("%v: %+v", err, newest)
	}
	one := string(g.data(http.MethodGet, fmt.Sprintf("config_instance/%d", newest.Generated.ID), ""))
	if !strings.Contains(one, `"path":"/data/web"`) || !strings.Contains(one, `"name":"web-1.conf"`) || !strings.Contains(one, `"sha256":"`) {
		t.Error(one)
	}

	// A new active version: what was rendered is not the latest any more.
	g.add(fmt.Sprintf("config_template/%d/create_config_version", g.template), `{"description":"2","is_active":true,"content":"two\n"}`,
		"config_version_id")
	if read(scope + `}`); files[0]["status"] != "not_latest" {
		t.Errorf("with a new version: %v", files[0])
	}
	var list []configTask
	if err := json.Unmarshal(g.data(http.MethodPost, fmt.Sprintf("config_template/%d/sync_generate_config", g.template),
		`{"bk_process_id":61}`), &list); err != nil || len(list) != 2 || list[1].Status != "succeeded" || !list[1].Extra.Related.Specified {
		t.Errorf("%v: %+v", err, list)
	}
	if read(scope + `}`); files[0]["status"] != "generated" || files[2]["status"] != "not_latest" {
		t.Errorf("after one process: %v", files)
	}
}

// TestGenerateFaults: what cannot be rendered fails with the line, and the others of the job are rendered.
func TestGenerateFaults(t *testing.T) {
	g := newGenerated(t, "fine\n% if LocalInstID == 2:\n${nope}\n% endif\n")
	body := `{"job_object":"configfile","job_action":"generate","scope":{"bk_set_env":"3","bk_process_ids":[61]},"extra_data":{"config_template_ids":[` +
		fmt.Sprint(g.template) + `]}}`
	status, tasks := g.run("job", body)
	if status != "failed" || len(tasks) != 2 || tasks[0].Status != "succeeded" || tasks[1].Code != 4101004 ||
		tasks[1].Extra.Reason != "模板渲染失败，[第3行：${nope}，错误：Undefined]，请检查模板变量是否正确书写" {
		t.Errorf("%s: %+v", status, tasks)
	}

	// Contents that the checker rejects, that loop for ever, that include what is not there or themselves, and names that leave
	// their folder.
	update := func(content string) {
		t.Helper()
		id := g.add(fmt.Sprintf("config_template/%d/create_config_version", g.template),
			`{"description":"","is_active":true,"content":`+quote(t, content)+`}`, "config_version_id")
		if id == 0 {
			t.Fatal("no version")
		}
	}
	for content, want := range map[string]int{
		"<% import os %>": 4101007, "% while True:\nx\n% endwhile\n": 4101004, "# Ginclude \"nothing\"\n": 4101001,
		"# Ginclude \"web\"\n": 4101004, "${'x' * 100000000}": 4101004,
	} {
		update(content)
		if _, tasks = g.run("job", body); len(tasks) != 2 || tasks[0].Code != want || tasks[0].Status != "failed" {
			t.Errorf("%q: %+v", content, tasks)
		}
	}
	update("fine")
	for field, value := range map[string]string{"file_name": "../${FuncID}", "abs_path": "${FuncID}"} {
		g.data(http.MethodPatch, fmt.Sprintf("config_template/%d", g.template), `{"`+field+`":`+quote(t, value)+`}`)
		if _, tasks = g.run("job", body); tasks[0].Code != 4101004 {
			t.Errorf("%s %q: %+v", field, value, tasks)
		}
		g.data(http.MethodPatch, fmt.Sprintf("config_template/%d", g.template), `{"file_name":"f","abs_path":"/x"}`)
	}

	// Without an active version.
	other := g.add("config_template", `{"template_name":"other","file_name":"o","abs_path":"/x","owner":"root","group":"root","filemode":"0644","line_separator":"LF"}`,
		"config_template_id")
	g.data(http.MethodPost, fmt.Sprintf("config_template/%d/bind_template_to_process", other),
		`{"process_object_list":[{"process_object_type":"INSTANCE","process_object_id":63}]}`)
	if _, tasks = g.run("config_template/generate_config", `{"scope":{"bk_process_ids":[63]}}`); tasks[0].Code != 4101009 {
		t.Errorf("without an active version: %+v", tasks)
	}
}

// TestPreview renders a content and stores nothing.
func TestPreview(t *testing.T) {
	g := newGenerated(t, "common ${WorkPath}\n")
	preview := func(content string, process int) envelope {
		t.Helper()
		return g.do(t, http.MethodPost, "/api/2/config_version/preview", fmt.Sprintf(`{"content":%s,"bk_process_id":%d}`, quote(t, content), process))
	}
	e := preview("# Ginclude \"web\"\n\tinst ${InstID}/${LocalInstID} ${this.cc_host.attrib[\"InnerIP\"]}\n", 62)
	var text string
	if err := json.Unmarshal(e.Data, &text); err != nil || !strings.HasPrefix(text, "common ") || !strings.Contains(text, "\n    inst ") {
		t.Errorf("%v: %d %s %q", err, *e.Code, *e.Message, text)
	}
	for content, want := range map[string]int{"${nope}\n": 4101004, "a\n${1/0}\n": 4101004, "% for x in y\n": 4101007,
		"# Ginclude \"missing\"\n": 4101001} {
		if e := preview(content, 62); *e.Code != want {
			t.Errorf("%q: %d %s", content, *e.Code, *e.Message)
		}
	}
	if e := preview("a\x00b", 62); *e.Code != 4100001 || *e.Message != "Content(content): 1.不允许是用空字符串。 " {
		t.Errorf("NUL: %d %s", *e.Code, *e.Message)
	}
	if e := preview("${HELP}", 62); !strings.Contains(string(e.Data), "${ LocalInstID } = 1") {
		t.Errorf("%d %s %.300s", *e.Code, *e.Message, e.Data)
	}
	if e := preview("x", 999); *e.Code != 4104001 || *e.Message != "进程不存在: bk_process_id[999]" {
		t.Errorf("%d %s", *e.Code, *e.Message)
	}
}

// TestPreviewsDoNotHoldJobs: a viewer asks for many previews that take as long as they may. Those that are too many are
// rejected, and the job of another is done while they run.
func TestPreviewsDoNotHoldJobs(t *testing.T) {
	g := newGenerated(t, "${FuncID}\n")
	const slow = "<%\nn = 0\nwhile True:\n    n += 1\n%>"
	body := fmt.Sprintf(`{"content":%s,"bk_process_id":62}`, quote(t, slow))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var rejected, under atomic.Int32
	for range 20 {
		under.Add(1)
		wg.Go(func() {
			defer under.Add(-1)
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/2/config_version/preview", strings.NewReader(body))
			req.Header.Set("X-Bkapi-Authorization", head)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, req)
			if strings.Contains(w.Body.String(), "4100429") {
				rejected.Add(1)
			}
		})
	}
	for end := time.Now().Add(time.Minute); rejected.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("none of 20 previews at once was rejected")
		}
	}

	status, tasks := g.run("config_template/generate_config", `{"scope":{"bk_process_ids":[62]}}`)
	if status != "succeeded" || len(tasks) != 1 {
		t.Errorf("the job is %s: %+v", status, tasks)
	}
	if n := under.Load(); n < 4 {
		t.Errorf("the job waited for previews: %d of 20 are left", n)
	}
	cancel()
	wg.Wait()
}
