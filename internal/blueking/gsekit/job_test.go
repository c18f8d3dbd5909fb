package gsekit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// TestActions has every row of the contract's table of actions (4.3): both calls accept the word, and job_status
// returns it.
func TestActions(t *testing.T) {
	for word, action := range map[string]gozzard.Action{
		"start": gozzard.ActionStart, "stop": gozzard.ActionStop, "restart": gozzard.ActionRestart,
		"reload":     gozzard.ActionReload,
		"force_stop": gozzard.ActionKill, "set_auto": gozzard.ActionHost, "unset_auto": gozzard.ActionUnhost,
	} {
		r := newRig(t)
		for path, body := range map[string]string{
			"/api/2/job/":                     `{"job_object":"process","job_action":"` + word + `","scope":{}}`,
			"/api/2/process/operate_process/": `{"op_type":"` + word + `","scope":{}}`,
		} {
			r.jobs.last = record.JobRequest{}
			if e := r.post(t, path, body); *e.Code != 0 || string(e.Data) != `{"job_id":158}` ||
				r.jobs.last.Action != action {
				t.Errorf("%s at %s: %d %s, %v", word, path, *e.Code, e.Data, r.jobs.last.Action)
			}
		}
		r.jobs.list = []record.Job{{ID: 1, Biz: 2, Action: action}}
		if e := r.do(t, http.MethodGet, "/api/2/job/1/", ""); !strings.Contains(string(e.Data),
			`"job_action":"`+word+`"`) {
			t.Errorf("%s: %s", word, e.Data)
		}
	}
}

// TestVerdicts has every row of the contract's table of results (4.4), and our additional reasons.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name      string
		state     record.JobState
		reason    record.JobReason
		code      gozzard.Code
		action    gozzard.Action
		errCode   int
		says      string // begins the reason, in English
		retryable bool
		hints     int
	}{
		{"0", record.JobSucceeded, "", "", gozzard.ActionStart, 0, "", true, 0},
		{"115", record.JobRunning, "", "", gozzard.ActionStart, 2, "", true, 0},
		{"waiting", record.JobPending, "", "", gozzard.ActionStart, 1, "", true, 0},
		{"117", record.JobFailed, record.ReasonVerdict, gozzard.CodeUnreachable, gozzard.ActionStart, 117,
			"[GSE_ERROR-117]: the agent is abnormal or does not exist (detail: why)", true, 0},
		{"117 late", record.JobFailed, record.ReasonVerdict, gozzard.CodeExpired, gozzard.ActionStart, 117,
			"[GSE_ERROR-117]: ", true, 0},
		{"828", record.JobFailed, record.ReasonVerdict, gozzard.CodeAlreadyRunning, gozzard.ActionStart, 828,
			"[GSE_ERROR-828]: the process runs already, there is no need to start it (detail: why)", true, 0},
		{"829 on stop", record.JobIgnored, "", "", gozzard.ActionStop, 4, "[GSE_ERROR-829]: ", true, 0},
		{"829 on force_stop", record.JobFailed, record.ReasonVerdict, gozzard.CodeNotRunning, gozzard.ActionKill, 829,
			"[GSE_ERROR-829]: ", true, 0},
		{"832", record.JobFailed, record.ReasonVerdict, gozzard.CodeUnknownAction, gozzard.ActionStart, 832,
			"[GSE_ERROR-832]: illegal kind of operation", true, 0},
		{"836", record.JobFailed, record.ReasonVerdict, gozzard.CodeCheckFailed, gozzard.ActionStart, 836,
			"[GSE_ERROR-836]: start failed, the process does not run", true, 0},
		{"836 on stop", record.JobFailed, record.ReasonVerdict, gozzard.CodeCheckFailed, gozzard.ActionStop, 836,
			"[GSE_ERROR-836]: stop failed, the process still runs", true, 0},
		{"850", record.JobFailed, record.ReasonVerdict, gozzard.CodeAlreadyRegistered, gozzard.ActionHost, 850,
			"[GSE_ERROR-850]: failed, see the code and the message", true, 0},
		{"65535", record.JobFailed, record.ReasonVerdict, gozzard.CodeCommandFailed, gozzard.ActionStart, 65535,
			"[GSE_ERROR-65535]: the command failed (detail: why)", true, 0},
		{"other", record.JobFailed, record.ReasonVerdict, gozzard.CodeRefused, gozzard.ActionStart, 65535,
			"[GSE_ERROR-65535]: ", true, 0},
		{"missing", record.JobFailed, record.ReasonMissing, "", gozzard.ActionStart, 4104002,
			"[4104002] required attributes of the process are empty: why", false, 2},
		{"template", record.JobFailed, record.ReasonTemplate, "", gozzard.ActionStart, 4101004,
			"[4101004] a template cannot be rendered, check the names in it: why", false, 0},
		{"earlier", record.JobFailed, record.ReasonEarlier, "", gozzard.ActionStart, 4103003,
			"[4103003] an earlier priority failed, this task was not run: why", true, 0},
		{"timeout", record.JobFailed, record.ReasonTimeout, "", gozzard.ActionStart, 4103001,
			"[4103001] timed out: why", true, 2},
		{"refused", record.JobFailed, record.ReasonRefused, "", gozzard.ActionStart, 4103002,
			"[4103002] the operation was not accepted: why", true, 0},
		{"internal", record.JobFailed, record.ReasonInternal, "", gozzard.ActionStart, -1, "[-1] other error: why",
			true, 0},
	} {
		r := newRig(t)
		r.jobs.list = []record.Job{{ID: 1, Biz: 2, Action: c.action, Started: time.Unix(1e9, 0)}}
		r.jobs.tasks = map[int64][]record.JobTask{1: {{ID: 5, Job: 1, Biz: 2, State: c.state, Reason: c.reason,
			Code: c.code, Message: "why"}}}
		e := r.post(t, "/api/2/job/1/job_status", ``, "Blueking-Language", "en")
		var status struct {
			Tasks []struct {
				ErrCode   int     `json:"err_code"`
				StartTime *string `json:"start_time"`
				Extra     struct {
					Retryable bool
					Solutions []struct{ HTML string }
					Reason    string `json:"failed_reason"`
				} `json:"extra_data"`
			} `json:"job_tasks"`
		}
		if err := json.Unmarshal(e.Data, &status); err != nil || len(status.Tasks) != 1 {
			t.Fatalf("%s: %v %s", c.name, err, e.Data)
		}
		got := status.Tasks[0]
		if got.ErrCode != c.errCode || !strings.HasPrefix(got.Extra.Reason, c.says) ||
			(c.says == "") != (got.Extra.Reason == "") ||
			got.Extra.Retryable != c.retryable || len(got.Extra.Solutions) != c.hints || got.StartTime == nil {
			t.Errorf("%s: %+v", c.name, got)
		}
		page := r.post(t, "/api/2/job/1/job_task", fmt.Sprintf(`{"page":1,"pagesize":10,"err_code":%d}`, c.errCode))
		if !strings.Contains(string(page.Data), `"count":1`) {
			t.Errorf("%s is not found by its code: %s", c.name, page.Data)
		}
	}
}

// TestScopeAsExpression: a job that was created with a scope is shown with this expression.
func TestScopeAsExpression(t *testing.T) {
	for scope, want := range map[string]string{
		`{}`:                     "*.*.*.*.*",
		`{"bk_set_ids":[5]}`:     "管控平台.*.*.*.*",
		`{"bk_set_ids":[5,5,6]}`: "[PaaS平台,管控平台].*.*.*.*",
		`{"bk_set_ids":[999]}`:   "*.*.*.*.*",
		`{"bk_module_ids":[21,22],"bk_service_ids":[5]}`:        "*.[gse_agent,gse_data].127.0.0.1_gse_agent.*.*",
		`{"bk_process_names":["java"],"bk_process_ids":[46]}`:   "*.*.*.java.46",
		`{"bk_process_ids":[8,9,10]}`:                           "*.*.*.*.[10,8-9]",
		`{"bk_process_ids":[8,9,10,11,3,30,8]}`:                 "*.*.*.*.[10-11,3,30,8-9]",
		`{"bk_process_names":["b","a","01","02"]}`:              "*.*.*.[01,02,a,b].*",
		`{"bk_set_env":"1","bk_set_ids":[7]}`:                   "测试集群.*.*.*.*",
		`{"bk_set_env":"0","bk_module_ids":[41,31,22,"21",99]}`: "*.[gse_agent,gse_data,web].*.*.*",
		`{"bk_process_ids":[` + many(500) + `]}`: "*.*.*.*.[" +
			strings.Join(sorted(many(500))[:100], ",") + ",…]",
	} {
		r := newRig(t)
		r.post(t, "/api/2/job", `{"job_object":"process","job_action":"start","scope":`+scope+`}`)
		if r.jobs.last.Expression != want {
			t.Errorf("%s: %s, want %s", scope, r.jobs.last.Expression, want)
		}
	}
}

// many are n odd numbers.
func many(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(2*i+1))
	}
	return strings.Join(out, ",")
}

func sorted(list string) []string {
	out := strings.Split(list, ",")
	slices.Sort(out)
	return out
}

// TestWhatAJobKeeps: a job stores its request and the processes as they were then, and job_status shows both later.
func TestWhatAJobKeeps(t *testing.T) {
	r := newRig(t)
	r.post(t, "/api/2/job",
		`{"job_object":"process","job_action":"start","expression_scope":{"bk_set_env":3,"bk_process_id":46}}`)
	const want = `{"scope":{"bk_set_env":"3","is_expression":true,"bk_process_ids":[46]},"expression_scope":{"bk_set_env":"3","bk_set_name":"*","bk_module_name":"*","service_instance_name":"*","bk_process_name":"*","bk_process_id":"46"}}`
	if got := string(r.jobs.last.Raw); got != want {
		t.Errorf("%s", got)
	}

	_, rows := r.plane.FindProcesses(everybody, r.jobs.last.Query)
	if len(rows) != 1 || rows[0].Process != 46 {
		t.Fatalf("%+v", rows)
	}

	const picture = `{"set":{"bk_set_id":5,"bk_set_env":"3","bk_set_name":"管控平台"},"module":{"bk_module_id":21,"bk_module_name":"gse_agent"},` +
		`"host":{"bk_cloud_id":0,"bk_host_innerip":"127.0.0.1","bk_host_innerip_v6":"","bk_agent_id":""},"service_instance":{"id":5,"name":"127.0.0.1_gse_agent"},` +
		`"process_template":{"id":26},"process":{"bk_biz_id":2,"bk_process_id":46,"bk_process_name":"gse_agent","priority":1,"proc_num":1,"service_instance_id":5,` +
		`"bk_func_name":"agent","bk_func_id":"5","user":"root","work_path":"/data","pid_file":"","start_cmd":"./start.sh ${LocalInstID}","stop_cmd":"",` +
		`"restart_cmd":"","reload_cmd":"","face_stop_cmd":"","timeout":30,"bk_start_check_secs":2,"bind_info":[{"port":"80"}]}}`
	it := record.TopologyItem{Row: &rows[0], Process: &topology.Process{ID: 46, FuncName: "agent", FuncID: "5", BindInfo: `[{"port":"80"}]`, User: "root",
		WorkPath: "/data", Start: "./start.sh ${LocalInstID}", Timeout: 30, StartCheckSecs: 2}}
	if got := string(r.jobs.last.Info(&it)); got != picture {
		t.Errorf("%s", got)
	}
}

func TestJobOrder(t *testing.T) {
	ids := func(query string) []int64 {
		e := newRig(t).do(t, http.MethodGet, "/api/2/job/"+query, "")
		var page jobPage
		if err := json.Unmarshal(e.Data, &page); err != nil || *e.Code != 0 || page.Count != 3 {
			t.Fatalf("%s: %s", query, *e.Message)
		}
		var out []int64
		for _, j := range page.List {
			out = append(out, j.ID)
		}
		return out
	}

	for query, want := range map[string][]int64{
		"":                                          {160, 159, 158},
		"?ordering=-start_time":                     {160, 159, 158},
		"?ordering=start_time":                      {158, 159, 160},
		"?ordering=start_time&pagesize=2":           {158, 159},
		"?ordering=start_time&pagesize=2&page=2":    {160},
		"?ordering=start_time&page=9":               nil,
		"?ordering=end_time":                        {160, 159, 158}, // 160 has not ended
		"?ordering=-end_time&pagesize=1":            {158},
		"?ordering=-end_time&pagesize=2&page=2":     {160},
		"?ordering=nope&page=2&pagesize=2":          {158},
		"?ordering=-end_time&pagesize=1000&page=10": nil,
	} {
		if got := ids(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

type jobPage struct {
	Count int
	List  []struct{ ID int64 }
}

func TestJobFiltersThatNothingFits(t *testing.T) {
	for _, query := range []string{"?job_object=host", "?job_action=fly", "?job_action__in=sink,swim",
		"?id=x", "?id__in=x,y"} {
		r := newRig(t)
		e := r.do(t, http.MethodGet, "/api/2/job/"+query, "")
		if string(e.Data) != `{"count":0,"list":[]}` || len(r.jobs.calls) > 0 {
			t.Errorf("%s: %s %v", query, e.Data, r.jobs.calls)
		}
	}

	for query, says := range map[string]string{
		"?start_time__gte=yesterday": `Start time  gte(start_time__gte): 1.应为时间（如 2006-01-02 15:04:05），实际为 "yesterday"。 `,
		"?pagesize=1001":             "Pagesize(pagesize): 1.",
		"?page=0":                    "Page(page): 1.",
	} {
		if e := newRig(t).do(t, http.MethodGet, "/api/2/job/"+query, ""); *e.Code != invalid ||
			!strings.Contains(*e.Message, says) {
			t.Errorf("%s: %d %s", query, *e.Code, *e.Message)
		}
	}
}

func TestRetryRefused(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{gozzard.Errorf(gozzard.ErrConflict, "it is running"), 4102008, "任务 158 不能重试：it is running"},
		{gozzard.Errorf(gozzard.ErrNotFound, "no such task"), 4102006, "[7]"},
	} {
		r := newRig(t)
		r.jobs.err = c.err
		if e := r.post(t, "/api/2/job/158/retry", `{"job_task_id_list":[7]}`); *e.Code != c.code ||
			!strings.Contains(*e.Message, c.says) {
			t.Errorf("%d %s", *e.Code, *e.Message)
		}
	}
}

func TestOverviewOfNothing(t *testing.T) {
	e := newRig(t).do(t, http.MethodGet, "/api/9/meta/access_overview/", "")
	if string(e.Data) != `{"process":false,"configfile":false,"is_access":false}` {
		t.Errorf("%s", e.Data)
	}
	if e = newRig(t).do(t, http.MethodGet, "/api/9/config_template", ""); string(e.Data) != `{"count":0,"list":[]}` {
		t.Errorf("%s", e.Data)
	}
}

func TestConfigTemplateOrder(t *testing.T) {
	for query, want := range map[string]string{
		"":                                   "[4 3 2 1]",
		"?ordering=config_template_id":       "[1 2 3 4]",
		"?ordering=-abs_path,template_name":  "[2 4 1 3]",
		"?ordering=file_name":                "[2 4 3 1]",
		"?search=conf":                       "[4 3]",
		"?search=CONF,redis":                 "[3]",
		"?search=%E9%85%8D%E7%BD%AE":         "[3 2]",
		"?page=2&pagesize=3":                 "[1]",
		"?page=3&pagesize=3":                 "[]",
		"?search=nope":                       "[]",
		"?ordering=nope,-config_template_id": "[4 3 2 1]",
	} {
		e := newRig(t).do(t, http.MethodGet, "/api/2/config_template/"+query, "")
		var page struct {
			List []struct {
				ID int `json:"config_template_id"`
			}
		}
		if err := json.Unmarshal(e.Data, &page); err != nil {
			t.Fatal(err)
		}
		ids := []int{}
		for _, c := range page.List {
			ids = append(ids, c.ID)
		}
		if fmt.Sprint(ids) != want {
			t.Errorf("%s: %v, want %s", query, ids, want)
		}
	}
}
