package gse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

const (
	bus  = "/api/c/compapi/v2/gse/"
	cred = `"bk_app_code":"bk_gsekit","bk_app_secret":"secret","bk_username":"admin"`
	id   = `"identity":{"proc_name":"p","setup_path":"/opt/p","pid_path":"/run/p.pid","user":"root"}`
)

type envelope struct {
	Result  *bool           `json:"result"`
	Code    *int            `json:"code"`
	Message *string         `json:"message"`
	Data    json.RawMessage `json:"data"`
	ID      *string         `json:"request_id"`
	status  int
}

// send posts a body and checks what every answer must have.
func send(t testing.TB, h http.Handler, path, body string, headers ...string) envelope {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}

	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	e := envelope{status: w.Code}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Result == nil || e.Code == nil ||
		e.Message == nil || e.ID == nil || e.Data == nil {
		t.Fatalf("%s: not an envelope (%v): %.300s", path, err, w.Body)
	}

	if *e.Result != (*e.Code == 0) || len(*e.ID) != 32 || !*e.Result && string(e.Data) != "null" {
		t.Fatalf("%s: %.300s", path, w.Body)
	}

	return e
}

// operate wraps parts of a request on one process. Each part replaces the default of its name.
func operate(parts ...string) string {
	def := map[string]string{"meta": `{"namespace":"gse","name":"p"}`, "op_type": `0`,
		"hosts": `[{"ip":"10.0.0.2","bk_cloud_id":0}]`, "spec": `{` + id + `}`}
	for _, p := range parts {
		name, value, _ := strings.Cut(p, "=")
		def[name] = value
	}

	body := "{" + cred
	for _, name := range []string{"meta", "op_type", "hosts", "agent_id_list", "spec"} {
		if v := def[name]; v != "" {
			body += `,"` + name + `":` + v
		}
	}

	return body + "}"
}

func named(name string) string {
	b, _ := json.Marshal(name)
	return `meta={"namespace":"gse","name":` + string(b) + `}`
}

func host(ip string) string { return `hosts=[{"ip":` + fmt.Sprintf("%q", ip) + `,"bk_cloud_id":0}]` }

func TestRefusedInput(t *testing.T) {
	labels := make([]string, 65)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"l%d":"x"`, i)
	}

	long := strings.Repeat("x", 257)
	policy := func(s string) string { return `spec={` + id + `,"monitor_policy":{` + s + `}}` }
	identity := func(s string) string { return `spec={"identity":{` + s + `}}` }
	for _, c := range []struct{ name, body, want string }{
		// op_type
		{"op_type missing", operate("op_type="), "op_type: required"},
		{"op_type null", operate("op_type=null"), "op_type: required, is null"},
		{"op_type of another case", strings.Replace(operate(), "op_type", "Op_Type", 1), "op_type: required"},
		{"op_type text", operate(`op_type="0"`), `op_type: must be a whole number, is the string "0"`},
		{"op_type true", operate(`op_type=true`), "op_type: must be a whole number, is true"},
		{"op_type fraction", operate(`op_type=1.5`), "op_type: must be a whole number, is 1.5"},
		{"op_type exponent", operate(`op_type=1e0`), "op_type: must be a whole number, is 1e0"},
		{"op_type huge", operate(`op_type=100000000000000000000`), "op_type: must be"},
		{"op_type 5", operate(`op_type=5`), "op_type: 5 is no operation"},
		{"op_type 6", operate(`op_type=6`), "op_type: 6 is no operation"},
		{"op_type 10", operate(`op_type=10`), "op_type: 10 is no operation"},
		{"op_type -1", operate(`op_type=-1`), "op_type: -1 is no operation"},
		{"op_type twice", strings.Replace(operate(), `"op_type":0`, `"op_type":2,"op_type":9`, 1),
			`duplicate key "op_type"`},
		// names
		{"no meta", operate("meta="), "meta: required"},
		{"meta null", operate("meta=null"), "meta: required, is null"},
		{"meta list", operate("meta=[]"), "meta: must be an object, is a list"},
		{"no namespace", operate(`meta={"name":"p"}`), "meta.namespace: required"},
		{"name null", operate(`meta={"namespace":"g","name":null}`), "meta.name: required, is null"},
		{"name empty", operate(named("")), "meta.name: required, is empty"},
		{"name number", operate(`meta={"namespace":"g","name":1}`), "meta.name: must be a string, is the number 1"},
		{"name path", operate(named("../../etc/passwd")), "meta.name: '.' may not stand at byte 0"},
		{"name NUL", operate(named("a\x00b")), `meta.name: '\x00' may not stand at byte 1`},
		{"name semicolon", operate(named("a;b")), "meta.name: ';' may not stand"},
		{"name backquote", operate(named("a`b")), "meta.name: '`' may not stand"},
		{"name backslash", operate(named(`a\b`)), `meta.name: '\\' may not stand`},
		{"name hidden", operate(named(".rf")), "meta.name: '.' may not stand at byte 0"},
		{"name bidi", operate(named("a\u202eb")), `meta.name: '\u202e' may not stand`},
		{"name newline", operate(named("a\nb")), `meta.name: '\n' may not stand`},
		{"name outer blank", operate(named("a ")), "meta.name: ' ' may not stand"},
		{"name long", operate(named(long)), "meta.name: has 257 bytes, at most 256"},
		{"name decomposed", operate(named("cafe\u0301")), "meta.name: \"cafe\\u0301\" is not in Unicode normal form C"},
		{"namespace pipe", operate(`meta={"namespace":"a|b","name":"p"}`), "meta.namespace: '|' may not stand"},
		{"labels list", operate(`meta={"namespace":"g","name":"p","labels":[]}`),
			"meta.labels: must be an object, is a list"},
		{"label null", operate(`meta={"namespace":"g","name":"p","labels":{"a":null}}`),
			"meta.labels.a: required, is null"},
		{"label bool", operate(`meta={"namespace":"g","name":"p","labels":{"a":true}}`),
			"meta.labels.a: must be a string or a number, is true"},
		{"label object", operate(`meta={"namespace":"g","name":"p","labels":{"a":{}}}`),
			"meta.labels.a: must be a string or a number, is an object"},
		{"label name", operate(`meta={"namespace":"g","name":"p","labels":{"a:b":"x"}}`),
			"meta.labels.a:b: the label's name ':' may not stand"},
		{"label long", operate(`meta={"namespace":"g","name":"p","labels":{"a":"` + long + `"}}`),
			"meta.labels.a: has 257 bytes"},
		{"label control", operate(`meta={"namespace":"g","name":"p","labels":{"a":"x\u001b[31m"}}`),
			"meta.labels.a: \"x\\x1b[31m\" has control"},
		{"label bidi", operate(`meta={"namespace":"g","name":"p","labels":{"a":"\u2066"}}`), "meta.labels.a: "},
		{"labels many", operate(`meta={"namespace":"g","name":"p","labels":{` + strings.Join(labels, ",") + `}}`),
			"meta.labels: has 65 labels, at most 64"},
		// hosts
		{"no hosts", operate("hosts="), "hosts: required, or agent_id_list"},
		{"hosts null", operate("hosts=null"), "hosts: required, is null"},
		{"hosts empty", operate("hosts=[]"), "hosts: at least one host is required"},
		{"hosts object", operate("hosts={}"), "hosts: must be a list, is an object"},
		{"hosts [null]", operate("hosts=[null]"), "hosts[0]: required, is null"},
		{"hosts text", operate(`hosts=["10.0.0.1"]`), `hosts[0]: must be an object, is the string "10.0.0.1"`},
		{"ip blank", operate(host("10.0.0.1 ")), `hosts[0].ip: "10.0.0.1 " is not an IP address`},
		{"ip zeros", operate(host("010.0.0.1")), `hosts[0].ip: "010.0.0.1" is not an IP address`},
		{"ip prefix", operate(host("10.0.0.1/24")), "is not an IP address"},
		{"ip name", operate(host("localhost")), "is not an IP address"},
		{"ip short", operate(host("10.0.0")), `hosts[0].ip: "10.0.0" is not an IP address`},
		{"ip zone", operate(host("fe80::1%eth0")), "is not an IP address"},
		{"ip any", operate(host("0.0.0.0")), "is not the address of one host"},
		{"ip multicast", operate(host("224.0.0.1")), "is not the address of one host"},
		{"ip broadcast", operate(host("255.255.255.255")), "is not the address of one host"},
		{"ip empty", operate(host("")), `hosts[0].ip: "" is not an IP address`},
		{"ip number", operate(`hosts=[{"ip":10,"bk_cloud_id":0}]`), "hosts[0].ip: must be a string, is the number 10"},
		{"ip long", operate(host(strings.Repeat("1", 100000))), "is not an IP address"},
		{"cloud missing", operate(`hosts=[{"ip":"10.0.0.1"}]`), "hosts[0].bk_cloud_id: required"},
		{"cloud null", operate(`hosts=[{"ip":"10.0.0.1","bk_cloud_id":null}]`),
			"hosts[0].bk_cloud_id: required, is null"},
		{"cloud negative", operate(`hosts=[{"ip":"10.0.0.1","bk_cloud_id":-1}]`), "hosts[0].bk_cloud_id: must be 0 to"},
		{"cloud text", operate(`hosts=[{"ip":"10.0.0.1","bk_cloud_id":"0"}]`),
			"hosts[0].bk_cloud_id: must be a whole number"},
		{"supplier text", operate(`hosts=[{"ip":"10.0.0.1","bk_cloud_id":0,"bk_supplier_id":"0"}]`),
			"hosts[0].bk_supplier_id: must be a whole number"},
		{"agent ids of another kind", operate(`agent_id_list=[1]`),
			"agent_id_list[0]: must be a string, is the number 1"},
		{"agent id null", operate(`agent_id_list=["a",null]`), "agent_id_list[1]: required, is null"},
		{"agent id odd", operate(`agent_id_list=["a b"]`), "agent_id_list[0]: is neither an agent id"},
		{"agent id subject", operate(`agent_id_list=["a.>"]`), "agent_id_list[0]: is neither an agent id"},
		{"agent id long", operate(`agent_id_list=["` + strings.Repeat("a", 65) + `"]`),
			"agent_id_list[0]: is neither an agent id"},
		{"agent id bad address", operate(`agent_id_list=["0:10.0.0"]`), "agent_id_list[0]: is neither an agent id"},
		{"agent id list object", operate(`agent_id_list={}`), "agent_id_list: must be a list, is an object"},
		// spec
		{"spec list", operate("spec=[]"), "spec: must be an object, is a list"},
		{"spec without identity", operate(`spec={"control":{"start_cmd":"x"}}`), "spec.identity: required"},
		{"proc_name missing", operate(identity(`"setup_path":"/a","pid_path":"/b","user":"root"`)),
			"spec.identity.proc_name: required"},
		{"user number", operate(identity(`"proc_name":"p","setup_path":"/a","pid_path":"/b","user":0`)),
			"spec.identity.user: must be a string"},
		{"setup_path missing", operate(identity(`"proc_name":"p","pid_path":"/b","user":"u"`)),
			"spec.identity.setup_path: required where a command is run"},
		{"setup_path relative", operate(identity(`"proc_name":"p","setup_path":"opt/p","pid_path":"/b","user":"u"`)),
			`"opt/p" is not a clean absolute path`},
		{"setup_path climbing",
			operate(identity(`"proc_name":"p","setup_path":"/a/../../etc","pid_path":"/b","user":"u"`)),
			"is not a clean absolute path"},
		{"setup_path dot", operate(identity(`"proc_name":"p","setup_path":"/a/./b","pid_path":"/b","user":"u"`)),
			"is not a clean absolute path"},
		{"setup_path double slash",
			operate(identity(`"proc_name":"p","setup_path":"//a","pid_path":"/b","user":"u"`)),
			"is not a clean absolute path"},
		{"setup_path NUL", operate(identity(`"proc_name":"p","setup_path":"/a\u0000","pid_path":"/b","user":"u"`)),
			`spec.identity.setup_path: "/a\x00" has control`},
		{"setup_path windows climbing",
			operate(identity(`"proc_name":"p","setup_path":"C:\\a\\..\\b","pid_path":"/b","user":"u"`)),
			"is not a clean absolute path"},
		{"log_path relative",
			operate(identity(`"proc_name":"p","setup_path":"/a","pid_path":"/b","user":"u","log_path":"x"`)),
			"spec.identity.log_path"},
		{"command NUL", operate(`spec={` + id + `,"control":{"start_cmd":"a\u0000b"}}`),
			"spec.control.start_cmd: has a NUL"},
		{"command long", operate(`spec={` + id + `,"control":{"stop_cmd":"` + strings.Repeat("x", 16385) + `"}}`),
			"spec.control.stop_cmd: has 16385 bytes, at most 16384"},
		{"command list", operate(`spec={` + id + `,"control":{"stop_cmd":["a"]}}`),
			"spec.control.stop_cmd: must be a string, is a list"},
		{"cpu text", operate(`spec={` + id + `,"resource":{"cpu":"10"}}`), "spec.resource.cpu: must be a number"},
		{"cpu over 100", operate(`spec={` + id + `,"resource":{"cpu":100.1}}`),
			"spec.resource.cpu: must be 0 to 100, is 100.1"},
		{"mem infinite", operate(`spec={` + id + `,"resource":{"mem":1e999}}`), "spec.resource.mem: must be 0 to 100"},
		{"fd fraction", operate(`spec={` + id + `,"resource":{"fd":1.0}}`),
			"spec.resource.fd: must be a whole number, is 1.0"},
		{"auto_type 3", operate(policy(`"auto_type":3`)), "spec.monitor_policy.auto_type: must be 0 to 2, is 3"},
		{"op_timeout negative", operate(policy(`"op_timeout":-1`)),
			"spec.monitor_policy.op_timeout: must be 0 to 86400, is -1"},
		{"start_check_secs text", operate(policy(`"start_check_secs":"5"`)),
			"spec.monitor_policy.start_check_secs: must be a whole number"},
		{"two policies", operate(`spec={` + id + `,"monitor_policy":{"auto_type":1},"alive_monitor_policy":{"auto_type":2}}`), "spec.alive_monitor_policy: is another name of monitor_policy"},
		{"configmap object", operate(`spec={` + id + `,"configmap":{}}`), "spec.configmap: must be a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, plane := newDoor(t)
			for _, path := range []string{bus + "operate_proc/", "/api/v2/proc/operate_proc_v2"} {
				e := send(t, h, path, c.body)
				if *e.Code != blueking.CodeArgument || !strings.Contains(*e.Message, c.want) || len(*e.Message) > 8192 {
					t.Errorf("%s: %d %.300s, want %s", path, *e.Code, *e.Message, c.want)
				}
				if want := map[bool]int{true: 200, false: 400}[strings.HasPrefix(path, bus)]; e.status != want {
					t.Errorf("%s: HTTP %d", path, e.status)
				}
			}

			if len(plane.calls) != 0 {
				t.Errorf("the plane was asked: %+v", plane.calls)
			}
		})
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	h, _ := newDoor(t)
	body := operate(`hosts=[{"ip":"10.0.0.1","bk_cloud_id":0},{"ip":"10.0.0","bk_cloud_id":0},{"ip":"10.0.0.2"},null]`, "op_type=", named("a;b"), `spec={"identity":{"proc_name":"p"}}`)
	got := *send(t, h, bus+"operate_proc_v2/", body).Message
	for _, want := range []string{`hosts[1].ip: "10.0.0" is not an IP address`, "hosts[2].bk_cloud_id: required",
		"hosts[3]: required, is null", "op_type: required", "meta.name: ';'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}

func TestAcceptedInput(t *testing.T) {
	long := strings.Repeat("x", 128)
	for _, c := range []struct{ name, body string }{
		{"name in Chinese", operate(named("网关服"))},
		{"name with blanks and marks", operate(named("a b_c-d.e@f+9"))},
		{"name of 128 bytes", operate(named(long))},
		{"labels with numbers",
			operate(`meta={"namespace":"g","name":"p","labels":{"a":46,"b":1.50,"c":"","d":"/x:y"}}`)},
		{"labels null", operate(`meta={"namespace":"g","name":"p","labels":null}`)},
		{"ids null, hosts there", operate(`agent_id_list=null`)},
		{"ids empty, hosts there", operate(`agent_id_list=[]`)},
		{"supplier null", operate(`hosts=[{"ip":"10.0.0.1","bk_cloud_id":0,"bk_supplier_id":null}]`)},
		{"unknown keys", operate(`spec={` + id + `,"what":{"ever":[1]},"nodeman_spec":1}`)},
		{"final slash", operate(`spec={"identity":{"proc_name":"p","setup_path":"/opt/p/","pid_path":"/run/p.pid","user":"root"}}`)},
		{"root folder", operate(`spec={"identity":{"proc_name":"p","setup_path":"/","pid_path":"/p","user":"root"}}`)},
		{"windows", operate(`spec={"identity":{"proc_name":"p.exe","setup_path":"C:\\gse\\网关","pid_path":"d:/p.pid","user":"Administrator"}}`)},
		{"nulls everywhere", operate(`spec={` + id +
			`,"control":null,"resource":null,"monitor_policy":null,"alive_monitor_policy":{},"warn_report_policy":null,"configmap":null}`)},
		{"query of a name only", operate("op_type=2", `spec={"identity":{"proc_name":"p"}}`)},
		{"unhost with blanks", operate("op_type=4",
			`spec={"identity":{"proc_name":"p","setup_path":"","pid_path":"","user":null}}`)},
		{"query with odd paths", operate("op_type=2",
			`spec={"identity":{"proc_name":"p","setup_path":"x/../y","pid_path":"p.pid","user":""}}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, plane := newDoor(t)
			if e := send(t, h, bus+"operate_proc_v2/", c.body); *e.Code != 0 || len(plane.calls) != 1 {
				t.Errorf("%d %s", *e.Code, *e.Message)
			}
		})
	}
}

func TestPolicyDefaults(t *testing.T) {
	def := gozzard.DefaultPolicy()
	zero := gozzard.Policy{Kind: gozzard.KindPeriodic}
	some := gozzard.Policy{Kind: gozzard.KindOneShot, StartCheckSecs: 1, StopCheckSecs: 2, StartRetries: 3,
		StartInterval: 4, OpTimeout: 5, CrontabRule: "* * * * *"}
	for text, want := range map[string]gozzard.Policy{
		``:                             def,
		`,"monitor_policy":{}`:         def,
		`,"alive_monitor_policy":null`: def,
		`,"alive_monitor_policy":{"auto_type":null,"start_check_secs":null,"op_timeout":null}`:                                                                                               def,
		`,"monitor_policy":{"auto_type":0,"start_check_secs":0,"stop_check_secs":0,"start_retries":0,"start_interval":0,"op_timeout":0}`:                                                     zero,
		`,"alive_monitor_policy":{"auto_type":2,"start_check_secs":1,"stop_check_secs":2,"start_retries":3,"start_interval":4,"op_timeout":5,"crontab_rule":"* * * * *"}`:                    some,
		`,"monitor_policy":{"auto_type":2,"start_check_secs":1,"stop_check_secs":2,"start_retries":3,"start_interval":4,"op_timeout":5,"crotab_rule":"* * * * *"}`:                           some,
		`,"monitor_policy":{},"alive_monitor_policy":{"auto_type":2,"start_check_secs":1,"stop_check_secs":2,"start_retries":3,"start_interval":4,"op_timeout":5,"crotab_rule":"* * * * *"}`: some,
	} {
		h, plane := newDoor(t)
		if e := send(t, h, bus+"operate_proc/", operate(`spec={`+id+text+`}`)); *e.Code != 0 {
			t.Errorf("%s: %s", text, *e.Message)
		} else if got := plane.last.Items[0].Spec.Policy; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestOpTypes(t *testing.T) {
	for n, want := range map[int]gozzard.Action{0: gozzard.ActionStart, 1: gozzard.ActionStop, 2: gozzard.ActionQuery,
		3: gozzard.ActionHost, 4: gozzard.ActionUnhost,
		7: gozzard.ActionRestart, 8: gozzard.ActionReload, 9: gozzard.ActionKill} {
		h, plane := newDoor(t)
		send(t, h, bus+"operate_proc/", operate(fmt.Sprintf("op_type=%d", n), "spec="))
		if plane.last == nil || plane.last.Items[0].Action != want || plane.last.Items[0].Spec != nil {
			t.Errorf("op_type %d: %+v", n, plane.last)
		}
	}
}

func TestSyncPages(t *testing.T) {
	for page, want := range map[string]string{
		`{"start":0,"limit":1001}`: "page.limit: must be 1 to 1000, is 1001",
		`{"start":0,"limit":0}`:    "page.limit: must be 1 to 1000, is 0",
		`{"start":0,"limit":-1}`:   "page.limit", `{"start":0,"limit":"10"}`: "page.limit: must be a whole number",
		`{"start":-1,"limit":1}`: "page.start",
		`{"start":0}`:            "page.limit: required", `{"limit":1}`: "page.start: required",
		`null`: "page: required, is null", `{"start":0.0,"limit":1}`: "page.start",
	} {
		h, plane := newDoor(t)
		e := send(t, h, bus+"sync_proc_status/", `{`+cred+`,"meta":{"namespace":"gse"},"page":`+page+`}`)
		if *e.Code != blueking.CodeArgument || !strings.Contains(*e.Message, want) || len(plane.calls) > 0 {
			t.Errorf("%s: %d %s", page, *e.Code, *e.Message)
		}
	}

	for _, ns := range []string{``, `,"meta":{}`, `,"meta":{"namespace":""}`, `,"meta":{"namespace":null}`,
		`,"meta":{"namespace":"` + strings.Repeat("x", 257) + `"}`} {
		h, plane := newDoor(t)
		if e := send(t, h, bus+"sync_proc_status/", `{`+cred+ns+
			`,"page":{"start":0,"limit":1}}`); *e.Code != blueking.CodeArgument || len(plane.calls) > 0 {
			t.Errorf("%s: %d %s", ns, *e.Code, *e.Message)
		}
	}

	for _, ns := range []string{"%", "_", "网", "*"} {
		h, plane := newDoor(t)
		if e := send(t, h, bus+"sync_proc_status/", `{`+cred+`,"meta":{"namespace":"`+ns+
			`"},"page":{"start":0,"limit":1}}`); *e.Code != 0 || plane.calls[0].Args != ns+" 0 1" {
			t.Errorf("%s: %d %s", ns, *e.Code, *e.Message)
		}
	}
}

// TestBothFormsOfTaskID: a task is found by its name and by the id without the prefix.
func TestBothFormsOfTaskID(t *testing.T) {
	h, plane := newDoor(t)
	for id := range plane.results {
		for _, name := range []string{string(id), "GSETASK:" + string(id)} {
			e := send(t, h, bus+"get_proc_operate_result/", `{`+cred+`,"task_id":"`+name+`"}`)
			if plane.results[id].Task.Caller.App == "bk_gsekit" && *e.Code != 0 {
				t.Errorf("%s: %d %s", name, *e.Code, *e.Message)
			}
		}
	}
}

func TestUnknownTasksLookTheSame(t *testing.T) {
	h, _ := newDoor(t)
	var words []string
	for _, task := range []string{"GSETASK:20190813145456:999", "GSETASK:20190813145456:3", "x", "网关",
		strings.Repeat("x", 1<<20), "GSETASK:20190813145456:01"} {
		e := send(t, h, bus+"get_proc_operate_result/", `{`+cred+`,"task_id":"`+task+`"}`)
		if *e.Code != blueking.CodeNotFound || e.status != 200 {
			t.Errorf("%.40s: %d", task, *e.Code)
		}
		words = append(words, *e.Message)
	}

	for _, w := range words {
		if w != words[0] {
			t.Errorf("%q differs from %q", w, words[0])
		}
	}

	for _, task := range []string{`1`, `null`, `""`, `["a"]`} {
		if e := send(t, h, bus+"get_proc_operate_result/",
			`{`+cred+`,"task_id":`+task+`}`); *e.Code != blueking.CodeArgument {
			t.Errorf("%s: %d %s", task, *e.Code, *e.Message)
		}
	}
}

func TestGroupsRefused(t *testing.T) {
	group := func(g string) string {
		return `{` + cred + `,"meta":{"namespace":"gse"},"hosts":[{"ip":"10.0.0.2","bk_cloud_id":0}],"spec":{"process_group":` + g + `}}`
	}

	const full = `"cpu_pool_limit":1,"mem_pool_limit":2,"cpu_pool_weight":0,"mem_pool_weight":1`
	for g, want := range map[string]string{
		`null`: "spec.process_group: required, is null", `[]`: "at least one group",
		`[1]`:                           "spec.process_group[0]: must be an object",
		`[{"resource":{` + full + `}}]`: "spec.process_group[0].id: required",
		`[{"id":"a"}]`:                  "spec.process_group[0].resource: required",
		`[{"id":"a","resource":{}}]`:    "spec.process_group[0].resource.mem_pool_weight: required",
		`[{"id":"a","resource":{"cpu_pool_limit":101,"mem_pool_limit":2,"cpu_pool_weight":0,"mem_pool_weight":2}}]`: "cpu_pool_limit: must be 0 to 100",
		`[{"id":"a","resource":{` + full + `}},{"id":"a","resource":{` + full +
			`}}]`: `spec.process_group[1].id: "a" is there twice`,
	} {
		h, plane := newDoor(t)
		if e := send(t, h, bus+"set_process_group_info/", group(g)); *e.Code != blueking.CodeArgument ||
			!strings.Contains(*e.Message, want) || len(plane.calls) > 0 {
			t.Errorf("%s: %d %s", g, *e.Code, *e.Message)
		}
	}

	h, _ := newDoor(t)
	if e := send(t, h, bus+"set_process_group_info/", group(`[{"id":"a","resource":{`+full+`}}]`)); *e.Code != 0 {
		t.Error(*e.Message)
	}
}
