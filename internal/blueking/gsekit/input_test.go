package gsekit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
)

// TestSeedWithItsCommas: the example in BlueKing's document is not valid JSON. The answer says where.
func TestSeedWithItsCommas(t *testing.T) {
	body, err := os.ReadFile("testdata/seed002_with_commas.txt")
	if err != nil {
		t.Fatal(err)
	}
	e := newRig(t).post(t, "//v2/gsekit/api/process/process_status/", string(body))
	if e.status != 200 || *e.Code != invalid || !strings.Contains(*e.Message,
		"line 12, column 29: a comma before '}' is not allowed") {
		t.Errorf("%d %d %s", e.status, *e.Code, *e.Message)
	}
}

func TestPaths(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{
		"/api/c/compapi/v2/gsekit/api/process/process_status/", "/api/c/compapi/v2/gsekit/api/process/process_status",
		"//v2/gsekit/api/process/process_status/",
		"/v2/gsekit/api/process/process_status", "/v2//gsekit/api///process/process_status//",
		"/api/2/process/process_status/", "/api/2/process/process_status",
		"/o/bk_gsekit/api/2/process/process_status/", "//api//2//process/process_status",
	} {
		if e := r.post(t, path, `{"bk_biz_id":2,"scope":{},"page":1,"pagesize":1}`); *e.Code != 0 {
			t.Errorf("%s: %d %s", path, *e.Code, *e.Message)
		}
	}

	for _, path := range []string{
		"/api/v1/process/process_status", "/api/v2/proc/process_status", "/api/02/process/process_status",
		"/api/-1/process/process_status",
		"/api/2/process/process_status/x", "/api/2/../2/process/process_status", "/api/2/process/%70rocess_status",
		"/api/2/Process/process_status",
		"/api/99999999999999999999/process/process_status", "/api/2/job/x/retry", "/api/2/job/-1/retry",
		"/api/2/job/create_job", "/api/2", "/api/2/",
		"/api/c/compapi/v2/gse/operate_proc", "/api/2/job/1/2", "/v2/gsekit/api/2/process/process_status",
	} {
		if r.Owns(httptest.NewRequest(http.MethodPost, path, nil)) {
			t.Errorf("%s is owned", path)
		}
	}
}

func TestMethods(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, path, allow string
	}{
		{"GET", "/api/2/process/process_status", "POST"}, {"PUT", "/api/2/job/158", "GET"},
		{"PATCH", "/api/2/job/158", "GET"}, {"DELETE", "/api/2/job/158", "GET"},
		{"PUT", "/api/2/job", "GET, POST"}, {"PUT", "/api/2/config_template", "GET, POST"},
		{"POST", "/api/2/meta/access_overview", "GET"},
		{"GET", "/api/2/job/158/retry", "POST"}, {"POST", "/api/2/job/158/search_ip", "GET"},
		{"GET", bus + "job/create_job", "POST"},
	} {
		req := httptest.NewRequest(c.method, c.path, strings.NewReader("{}"))
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != c.allow ||
			!strings.Contains(w.Body.String(), `"code":4100001`) {
			t.Errorf("%s %s: %d %q %s", c.method, c.path, w.Code, w.Header().Get("Allow"), w.Body)
		}
	}
}

// TestRefused: every call rejects bad input, reports all faults and does nothing.
func TestRefused(t *testing.T) {
	job := func(parts string) string { return `{` + parts + `}` }
	for _, c := range []struct {
		name, path, body string
		code             int
		says             string
	}{
		{"empty body", bus + "process/process_status", ``, 4100001,
			"Bk biz id(bk_biz_id): 1.该字段必填。 Page(page): 1.该字段必填。 Pagesize(pagesize): 1.该字段必填。 "},
		{"null", bus + "process/process_status", `null`, 4100001, "body must be a JSON object, is null"},
		{"a list", bus + "process/process_status", `[]`, 4100001, "body must be a JSON object, is a list"},
		{"two documents", bus + "process/process_status", `{}{}`, 4100001, "line 1, column 3"},
		{"twice", bus + "process/process_status", `{"page":1,"page":2}`, 4100001, `duplicate key "page"`},
		{"another case", bus + "process/process_status", `{"Bk_Biz_Id":2,"scope":{},"page":1,"pagesize":1}`, 4100001,
			"Bk biz id(bk_biz_id): 1.该字段必填。 "},
		{"business missing", bus + "process/process_status", `{"scope":{},"page":1,"pagesize":1}`, 4100001,
			"Bk biz id(bk_biz_id): 1.该字段必填。 "},
		{"business null", bus + "process/process_status", `{"bk_biz_id":null,"scope":{},"page":1,"pagesize":1}`,
			4100001, "Bk biz id(bk_biz_id): 1.该字段不能为 null。 "},
		{"business 0", bus + "process/process_status", `{"bk_biz_id":0,"scope":{},"page":1,"pagesize":1}`, 4100001,
			"Bk biz id(bk_biz_id): 1.应在 1 至 9007199254740992 之间，实际为 0。 "},
		{"business -1", bus + "process/flush_process", `{"bk_biz_id":-1}`, 4100001, "Bk biz id(bk_biz_id): 1."},
		{"business of words", bus + "process/sync_process_status", `{"bk_biz_id":"two"}`, 4100001,
			`Bk biz id(bk_biz_id): 1.应为整数，实际为 "two"。 `},
		{"business 0 in the path", "/api/0/process/flush_process", ``, 4100001, "Bk biz id(bk_biz_id): 1.应在 1 至"},
		{"all at once", "/api/2/process/process_status",
			`{"scope":{"bk_set_env":"4","bk_set_ids":null},"page":0,"pagesize":5000,"is_auto":"x","process_status":[]}`, 4100001,
			`Page(page): 1.应在 1 至 2147483647 之间，实际为 0。 Pagesize(pagesize): 1.应在 1 至 1000 之间，实际为 5000。 ` +
				`Scope(scope): Bk set env(bk_set_env): 1.“4” 不是合法选项。 Bk set ids(bk_set_ids): 1.该字段不能为 null。 ` +
				`Process status(process_status): 1.应为整数，实际为 列表。 Is auto(is_auto): 1.应为布尔值，实际为 "x"。 `},

		{"many fields", "/api/2/process/process_status",
			`{"scope":{},"page":1,"pagesize":1,"fields":[` + strings.Repeat(`"x",`, 100) + `"x"]}`, 4100001,
			"Fields(fields): 1.有 101 项，最多允许 100 项。 "},
		{"many searches", "/api/2/process/process_status",
			`{"scope":{},"page":1,"pagesize":1,"searches":[` + strings.Repeat(`"x",`, 100) + `"x"]}`, 4100001,
			"Searches(searches): 1."},
		{"many sets", "/api/2/process/process_status",
			`{"scope":{"bk_set_ids":[` + strings.Repeat(`1,`, 100000) + `1]},"page":1,"pagesize":1}`, 4100001,
			"Bk set ids(bk_set_ids): 1.有 100001 项"},

		{"job without anything", "/api/2/job", `{}`, 4100001,
			"Job object(job_object): 1.该字段必填。 Job action(job_action): 1.该字段必填。 "},
		{"job without a scope", "/api/2/job", job(`"job_object":"process","job_action":"start"`), 4100001,
			"scope, expression_scope required at least one."},
		{"job action unknown", "/api/2/job", job(`"job_object":"process","job_action":"explode","scope":{}`), 4100001,
			"Job action(job_action): 1.“explode” 不是合法选项。 "},
		{"job action number", "/api/2/job", job(`"job_object":"process","job_action":0,"scope":{}`), 4100001,
			"Job action(job_action): 1.“0” 不是合法选项。 "},
		{"job object unknown", "/api/2/job", job(`"job_object":"host","job_action":"start","scope":{}`), 4100001,
			"Job object(job_object): 1.“host” 不是合法选项。 "},
		{"job generate of processes", "/api/2/job", job(`"job_object":"process","job_action":"generate","scope":{}`),
			4102002, "job_action=generate"},
		{"job start of files", "/api/2/job", job(`"job_object":"configfile","job_action":"start","scope":{}`),
			4102002, "job_object=configfile"},
		{"start of files", "/api/2/job", job(`"job_object":"configfile","job_action":"start","scope":{}`), 4102002, "start"},
		{"diff of processes", "/api/2/job", job(`"job_object":"process","job_action":"diff","scope":{}`), 4102002, "diff"},
		{"job expression", "/api/2/job",
			job(`"job_object":"process","job_action":"start","expression_scope":{"bk_set_env":3,"bk_process_name":"x[y"}`), 4111001, "bk_process_name 第 2 个字符: [y"},
		{"job extra of another kind", "/api/2/job",
			job(`"job_object":"process","job_action":"start","scope":{},"extra_data":[]`), 4100001,
			"Extra data(extra_data): 1.应为对象，实际为 列表。 "},
		{"job filter of another kind", "/api/2/job",
			job(`"job_object":"process","job_action":"start","scope":{},"extra_data":{"extra_filter_conditions":{"bk_cloud_ids":["x"],"is_auto_list":3}}`),
			4100001, "Extra data(extra_data): Extra filter conditions(extra_filter_conditions): Bk cloud ids(bk_cloud_ids): 0: "},
		{"operate without an action", "/api/2/process/operate_process", `{"scope":{}}`, 4100001,
			"Op type(op_type): 1.该字段必填。 "},
		{"operate of another action", "/api/2/process/operate_process", `{"scope":{},"op_type":"START"}`, 4100001,
			"Op type(op_type): 1.“START” 不是合法选项。 "},
		{"operate null", "/api/2/process/operate_process", `{"scope":{},"op_type":null}`, 4100001,
			"Op type(op_type): 1.该字段不能为 null。 "},
		{"operate generate", "/api/2/process/operate_process", `{"scope":{},"op_type":"generate"}`, 4102002,
			"generate"},

		{"status of no job", bus + "job/job_status", `{"bk_biz_id":2}`, 4100001, "Job id(job_id): 1.该字段必填。 "},
		{"status of an unknown job", "/api/2/job/9/job_status", ``, 4102005, "任务 9 不存在"},
		{"status of another business", "/api/3/job/158/job_status", ``, 4102005, "任务 158 不存在"},
		{"status of tasks of another kind", "/api/2/job/158/job_status", `{"job_task_id_list":["x",1,null]}`, 4100001,
			"Job task id list(job_task_id_list): 0: "},
		{"tasks without a page", "/api/2/job/158/job_task", `{}`, 4100001,
			"Page(page): 1.该字段必填。 Pagesize(pagesize): 1.该字段必填。 "},
		{"tasks of an unknown state", "/api/2/job/158/job_task", `{"page":1,"pagesize":1,"statuses":["done"]}`,
			4100001, "Statuses(statuses): 0: "},
		{"retry of an unknown job", "/api/2/job/9/retry", `{}`, 4102005, "任务 9 不存在"},
		{"retry list null", "/api/2/job/158/retry", `{"job_task_id_list":null}`, 4100001,
			"Job task id list(job_task_id_list): 1.该字段不能为 null。 "},
		{"match nothing", "/api/2/meta/expression_match", `{}`, 4100001,
			"Expression(expression): 1.该字段必填。 Candidates(candidates): 1.该字段必填。 "},
		{"match many", "/api/2/meta/expression_match",
			`{"expression":"` + strings.Repeat("[1-12345]", 50) + `","candidates":[]}`, 4100001,
			"Expression(expression): 1.表达式展开后超过"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			e := r.post(t, c.path, c.body)
			if e.status != 200 || *e.Code != c.code || !strings.Contains(*e.Message, c.says) {
				t.Errorf("HTTP %d, %d %s\nwant %d %s", e.status, *e.Code, *e.Message, c.code, c.says)
			}
			if len(r.plane.calls)+len(r.jobs.calls)+len(r.flushed) > 0 {
				t.Errorf("something was done: %v %v %v", r.plane.calls, r.jobs.calls, r.flushed)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	r := newRig(t)
	for body, says := range map[string]string{
		`{"bk_biz_id":2}`: "bk_app_code",
		`{"bk_biz_id":2,"bk_app_code":"bk_sops","bk_app_secret":"wrong","bk_username":"admin"}`: "",
		`{"bk_biz_id":2,"bk_app_code":"bk_sops","bk_app_secret":"secret"}`:                      "",
	} {
		req := httptest.NewRequest(http.MethodPost, bus+"process/flush_process", strings.NewReader(body))
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"code":4100403`) ||
			!strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}

	if len(r.flushed) > 0 {
		t.Error("a stranger was served")
	}
}

func TestLanguage(t *testing.T) {
	const want, wantEnglish = "Bk biz id(bk_biz_id): 1.该字段必填。 ", "Bk biz id(bk_biz_id): 1.This field is required. "
	for _, c := range []struct{ name, header, value, want string }{
		{"none", "", "", want},
		{"of the platform", "Blueking-Language", "en", wantEnglish},
		{"of the platform, Chinese", "Blueking-Language", "zh-cn", want},
		{"of a browser", "Accept-Language", "en-US,en;q=0.9,zh;q=0.8", wantEnglish},
		{"of a Chinese browser", "Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8", want},
		{"cookie", "Cookie", "blueking_language=en", wantEnglish},
		{"another one", "Accept-Language", "english", want},
	} {
		headers := []string{c.header, c.value}
		if c.header == "" {
			headers = nil
		}
		if e := newRig(t).post(t, bus+"process/flush_process", `{}`, headers...); *e.Message != c.want {
			t.Errorf("%s: %q", c.name, *e.Message)
		}
	}

	e := newRig(t).post(t, "/api/2/process/process_status",
		`{"expression_scope":{"bk_set_env":3,"bk_set_name":"[a"},"page":1,"pagesize":1}`, "Blueking-Language", "en")
	if *e.Message != "表达式语法错误，缺少匹配的 ]: bk_set_name 第 1 个字符: [a" {
		t.Errorf("the fault of an expression is not in Chinese: %s", *e.Message)
	}
}

func TestTroubleBehindTheDoor(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{gozzard.Errorf(gozzard.ErrUnavailable, "CMDB does not answer"), 4100015, "CMDB does not answer"},
		{gozzard.Errorf(gozzard.ErrRateLimited, "too often"), 4100429, "too often"},
		{gozzard.Errorf(gozzard.ErrConflict, "46 is hosted"), 4100001, "46 is hosted"},
		{errors.New("open /private: no"), 4100500, "系统异常"},
	} {
		r := newRig(t)
		r.flush = c.err
		if e := r.post(t, "/api/2/process/flush_process", ``); *e.Code != c.code ||
			!strings.Contains(*e.Message, c.says) || strings.Contains(*e.Message, "private") {
			t.Errorf("%v: %d %s", c.err, *e.Code, *e.Message)
		}
	}

	r := newRig(t)
	r.plane.err = errors.New("disk")
	for _, path := range []string{"/api/2/process/sync_process_status"} {
		if e := r.post(t, path, ``); *e.Code != 4100500 {
			t.Errorf("%s: %d %s", path, *e.Code, *e.Message)
		}
	}
}

func TestFlushWithoutSource(t *testing.T) {
	r := newRig(t)
	r.Handler = gsekit.New(gsekit.Options{Plane: r.plane, Jobs: r.jobs, Configs: r.configs, Auth: book(t)})
	if e := r.post(t, "/api/2/process/flush_process", ``); *e.Code != 0 || string(e.Data) != "null" {
		t.Errorf("%d %s", *e.Code, e.Data)
	}
}
