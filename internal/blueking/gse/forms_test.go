package gse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/blueking/gse"
	"github.com/gozzard/gozzard/test/fuzztest"
	"github.com/gozzard/gozzard/test/goldentest"
)

// calls are all calls, with the folders in which they are served.
func calls() map[string][]string {
	esbDirs := []string{"/api/c/compapi/v2/gse/", "/api/c/compapi/gse/"}
	proc := append(esbDirs[:2:2], "/api/v2/proc/", "/api/bk-gse/prod/api/v2/proc/")
	cluster := []string{"/api/v2/cluster/", "/api/bk-gse/prod/api/v2/cluster/"}
	out := map[string][]string{"get_agent_status": esbDirs, "get_agent_info": esbDirs, "list_agent_state": cluster,
		"list_agent_info": cluster, "operate_agent": cluster}
	for _, n := range []string{"register_proc_info", "update_proc_info", "unregister_proc_info", "operate_proc",
		"operate_proc_v2", "operate_proc_multi",
		"get_proc_operate_result", "get_proc_operate_result_v2", "get_proc_status", "get_proc_status_v2",
		"sync_proc_status", "set_process_group_info",
		"get_process_group_info", "upgrade_to_agent_id"} {
		out[n] = proc
	}

	return out
}

// TestEveryFormIsServedAndGuarded walks all calls in all forms of path: without credentials none does anything.
func TestEveryFormIsServedAndGuarded(t *testing.T) {
	h, plane := newDoor(t)
	const app, user = 1640101, 1640102 // codes of the gateway itself
	bodies := map[string]struct{ bus, gate int }{
		`{}`: {blueking.CodeGeneral, app},
		`{"bk_app_code":"bk_gsekit","bk_app_secret":"wrong","bk_username":"admin"}`: {blueking.CodeGeneral, app},
		`{"bk_app_code":"web","bk_app_secret":"secret","bk_username":"admin"}`:      {blueking.CodeUserForbidden, user},
		`{"bk_app_code":"web","bk_app_secret":"secret"}`:                            {blueking.CodeOperatorRequired, user},
		// the call is known, and the plane was not called
		`{"bk_app_code":"web","bk_app_secret":"secret","bk_token":"token"}`: {blueking.CodeArgument, blueking.CodeArgument},
	}
	n := 0
	for name, dirs := range calls() {
		for _, dir := range dirs {
			for _, path := range []string{dir + name, dir + name + "/", "/" + dir + name,
				strings.ReplaceAll(dir, "/", "//") + name + "//"} {
				for body, codes := range bodies {
					e, code, bus := send(t, h, path, body), codes.gate, strings.Contains(path, "compapi")
					if bus {
						code = codes.bus
					}
					if *e.Code != code {
						t.Errorf("%s %s: %d %s, want %d", path, body, *e.Code, *e.Message, code)
					}
					if bus != (e.status == 200) {
						t.Errorf("%s: HTTP %d", path, e.status)
					}
					n++
				}
			}
		}
	}

	if len(plane.calls) != 0 {
		t.Errorf("the plane was asked: %+v", plane.calls)
	}
	if n < 1200 {
		t.Errorf("only %d requests", n)
	}

	for _, path := range []string{"/api/c/compapi/v2/gse/list_agent_state", "/api/c/compapi/v2/job/operate_proc",
		"/api/bk-gse", "/api/v1/proc/operate_proc", "/api/c/compapi/v2/gse/../gse/operate_proc",
		"/api/c/compapi/v2/gse/%2e%2e/gse/operate_proc",
		"/api/c/compapi/v2/gse/operate_proc%00", "/api/c/compapi/v2/gse/operate%5fproc"} {
		if e := send(t, h, path, `{`+cred+`}`); e.status != 404 || *e.Code != blueking.CodeNotFound ||
			*e.Message != "The content does not exist" {
			t.Errorf("%s: HTTP %d %d %s", path, e.status, *e.Code, *e.Message)
		}
	}
}

// TestUnknownPathsOfTheGateway: BlueKing's gateway rejects a path that it does not have itself, with its own code.
func TestUnknownPathsOfTheGateway(t *testing.T) {
	h, plane := newDoor(t)
	for _, path := range []string{"/api/v2/proc/get_agent_info", "/api/v2/cluster/operate_proc", "/api/v2/proc/", "/api/v2/data/add_route",
		"/api/bk-gse/prod/api/v2/proc", "/api/bk-gse/prod/api/v2/proc/operate_proc/more", "/api/bk-gse/stag/api/v1/proc/operate_proc",
		"//api//bk-gse/prod//nothing", "/api/bk-gse/prod/", "/api/v2/proc/../proc/operate_proc", "/api/v2/proc/operate%5fproc"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{`+cred+`}`)))
		var e struct {
			Result  bool   `json:"result"`
			Code    int    `json:"code"`
			Name    string `json:"code_name"`
			Message string `json:"message"`
			Data    any    `json:"data"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		unescaped, _ := url.PathUnescape(path)
		if want := `API not found [method="POST" path="` + unescaped + `"]`; w.Code != 404 || e.Result || e.Code != 1640401 ||
			e.Name != "API_NOT_FOUND" || e.Message != want || e.Data != nil ||
			w.Header().Get("X-Bkapi-Error-Code") != "1640401" || w.Header().Get("X-Bkapi-Error-Message") != want {
			t.Errorf("%s: HTTP %d %s %v", path, w.Code, w.Body.String(), w.Header())
		}
	}
	if len(plane.calls) != 0 {
		t.Errorf("the plane was asked: %+v", plane.calls)
	}

	// A path is shown with its first part only, and never as it is in a header.
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/api/v2/x", nil)
	req.URL = &url.URL{Path: "/api/v2/\r\nX: y 管" + strings.Repeat("x", 5000)}
	h.ServeHTTP(w, req)
	if said := w.Header().Get("X-Bkapi-Error-Message"); len(said) > 400 || strings.ContainsAny(said, "\r\n管") || w.Code != 404 {
		t.Errorf("HTTP %d, %q", w.Code, said)
	}
}

func TestGetIsForReadingOnly(t *testing.T) {
	h, plane := newDoor(t)
	for name, dirs := range calls() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet,
			dirs[0]+name+"?bk_app_code=bk_gsekit&bk_app_secret=secret&bk_username=a", nil))
		read := strings.HasPrefix(name, "get_") || strings.HasPrefix(name, "list_") || name == "sync_proc_status"
		if want := map[bool]int{true: 200, false: 405}[read]; strings.Contains(dirs[0], "compapi") && w.Code != want {
			t.Errorf("GET %s: HTTP %d", name, w.Code)
		}
	}

	if len(plane.calls) != 0 {
		t.Errorf("the plane was asked: %+v", plane.calls)
	}
}

func TestSeveralItems(t *testing.T) {
	item := func(i, op int, host string) string {
		return fmt.Sprintf(`{"meta":{"namespace":"GSEKIT_BIZ_3","name":"p_%d","labels":{"bk_process_id":%d}},"op_type":%d,"agent_id_list":["%s"],"spec":{%s}}`, i, i, op, host, id)
	}

	var items []string
	for i := range 1000 {
		items = append(items, item(i, 0, agentA))
	}

	h, plane := newDoor(t)
	if e := send(t, h, "/api/v2/proc/operate_proc_multi",
		`{`+cred+`,"proc_operate_req":[`+strings.Join(items, ",")+`]}`); *e.Code != 0 || len(plane.last.Items) != 1000 {
		t.Fatalf("%d %s", *e.Code, *e.Message)
	}

	for body, want := range map[string]string{
		``:                           "proc_operate_req: required",
		`,"proc_operate_req":null`:   "proc_operate_req: required, is null",
		`,"proc_operate_req":[]`:     "proc_operate_req: at least one operation is required",
		`,"proc_operate_req":{}`:     "proc_operate_req: must be a list",
		`,"proc_operate_req":[null]`: "proc_operate_req[0]: required, is null",
		`,"proc_operate_req":[` + item(1, 0, "a") + `,` + item(1, 1, "a") +
			`]`: "proc_operate_req[1]: asks for op_type 1 of GSEKIT_BIZ_3:p_1 on a, an earlier item for op_type 0",
		`,"proc_operate_req":[` + strings.Replace(item(1, 0, "a"), `"op_type":0`, `"x":0`, 1) +
			`]`: "proc_operate_req[0].op_type: required",
		`,"proc_operate_req":[` + strings.Replace(item(1, 0, "a"), `"spec":{`+id+`}`, `"spec":{}`, 1) +
			`]`: "proc_operate_req[0].spec: required, is empty",
		`,"proc_operate_req":[` + item(0, 0, "a") + `,` + item(1, 0, "a b") +
			`]`: "proc_operate_req[1].agent_id_list[0]: is neither",
	} {
		h, plane := newDoor(t)
		if e := send(t, h, bus+"operate_proc_multi/", `{`+cred+body+`}`); *e.Code != blueking.CodeArgument ||
			!strings.Contains(*e.Message, want) || len(plane.calls) > 0 {
			t.Errorf("%s: %d %s", body, *e.Code, *e.Message)
		}
	}

	for _, op := range []int{5, 6, 10, -1} {
		h, plane := newDoor(t)
		e := send(t, h, bus+"operate_proc_multi/", `{`+cred+`,"proc_operate_req":[`+item(0, op, agentA)+`,`+
			item(1, 0, agentA)+`]}`)
		if *e.Code != 0 || len(plane.last.Items) != 2 || plane.last.Items[0].Refused == nil ||
			plane.last.Items[0].Refused.Code != gozzard.CodeUnknownAction || plane.last.Items[1].Refused != nil {
			t.Errorf("op_type %d: %d %s", op, *e.Code, *e.Message)
		}
	}
}

// TestD1ItemsWithFaults: what is wrong with one item is its verdict.
func TestD1ItemsWithFaults(t *testing.T) {
	item := func(name, identity string) string {
		return fmt.Sprintf(`{"meta":{"namespace":"GSEKIT_BIZ_3","name":%q},"op_type":2,"agent_id_list":["%s"],"spec":{"identity":{%s}}}`, name,
			agentA, identity)
	}
	h, plane := newDoor(t)
	e := send(t, h, bus+"operate_proc_multi/", `{`+cred+`,"proc_operate_req":[`+item("a_1", `"proc_name":"p"`)+`,`+item("a;b_1", `"proc_name":"p"`)+
		`,`+item("b_1", `"proc_name":""`)+`,`+item("c_1", `"proc_name":"p"`)+`]}`)
	if *e.Code != 0 || len(plane.last.Items) != 4 {
		t.Fatalf("%d %s", *e.Code, *e.Message)
	}
	for i, want := range []string{"", "proc_operate_req[1].meta.name: ';' may not stand at byte 1", "proc_operate_req[2].spec.identity.proc_name: required", ""} {
		it := plane.last.Items[i]
		if refused := it.Refused; (refused == nil) != (want == "") || refused != nil && (refused.Code != gozzard.CodeRefused ||
			!strings.HasPrefix(refused.Message, want) || it.Spec != nil) {
			t.Errorf("item %d: %+v, want %q", i, it, want)
		}
	}
	if key := plane.last.Items[1].Targets[0].ResultKey; key != agentA+":GSEKIT_BIZ_3:a;b_1" {
		t.Errorf("the key of the result is %s", key)
	}
}

func hostList(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"ip":"10.%d.%d.%d","bk_cloud_id":1}`, i>>16, i>>8&255, i&255)
	}
	return "[" + b.String() + "]"
}

func TestHowManyHosts(t *testing.T) {
	h, plane := newDoor(t)
	if e := send(t, h, bus+"operate_proc/", operate("hosts="+hostList(100_000))); *e.Code != 0 ||
		len(plane.last.Items[0].Targets) != 100_000 {
		t.Fatalf("100,000 hosts: %d %s", *e.Code, *e.Message)
	}

	plane.calls = nil

	if e := send(t, h, bus+"operate_proc/", operate("hosts="+hostList(100_001))); *e.Code != blueking.CodeArgument ||
		*e.Message != "hosts: has 100001 elements, at most 100000 are allowed" {
		t.Errorf("100,001 hosts: %d %s", *e.Code, *e.Message)
	}

	small := gse.New(gse.Options{Plane: plane, Auth: book(t), MaxHosts: 100})

	item := func(n string) string {
		return `{"meta":{"namespace":"g","name":"` + n + `"},"op_type":0,"hosts":` + hostList(60) + `,"spec":{` + id +
			`}}`
	}

	e := send(t, small, bus+"operate_proc_multi/", `{`+cred+`,"proc_operate_req":[`+item("a")+`,`+item("b")+`]}`)
	if *e.Code != blueking.CodeArgument || !strings.Contains(*e.Message, "name 120 hosts together, at most 100") {
		t.Errorf("120 in two items: %d %s", *e.Code, *e.Message)
	}
	if len(plane.calls) != 0 {
		t.Error("the plane was asked")
	}

	same := `[` + strings.Repeat(`{"ip":"10.0.0.2","bk_cloud_id":0},`, 99) +
		`{"ip":"10.0.0.2","bk_cloud_id":0,"bk_supplier_id":3}]`
	if send(t, small, bus+"operate_proc/", operate("hosts="+same)); len(plane.last.Items[0].Targets) != 1 {
		t.Errorf("one host named 100 times: %d targets", len(plane.last.Items[0].Targets))
	}
	if e := send(t, h, bus+"get_proc_status/", operate("hosts="+hostList(2_000))); *e.Code != 0 ||
		bytes.Count(e.Data, []byte(`"pid":`)) != 2_000 {
		t.Errorf("status of 2,000 hosts: %d %s", *e.Code, *e.Message)
	}
}

func TestIdempotencyKeyAndHash(t *testing.T) {
	h, plane := newDoor(t)
	var hashes []any
	for _, c := range [][2]string{{"operate_proc/", operate()}, {"operate_proc", operate()},
		{"operate_proc_v2/", operate()}, {"operate_proc/", operate("op_type=1")}} {
		send(t, h, bus+c[0], c[1], "Idempotency-Key", "k1")
		caller := plane.last.Caller
		if caller.Rights = nil; plane.last.IdempotencyKey != "k1" || !plane.last.Caller.Rights.All() ||
			caller != (gozzard.Caller{App: "bk_gsekit", User: "admin", Asserted: true}) {
			t.Fatalf("%+v", plane.last)
		}
		hashes = append(hashes, plane.last.RequestHash)
	}

	if hashes[0] != hashes[1] || hashes[0] == hashes[2] || hashes[0] == hashes[3] {
		t.Error("the hash must be equal for equal requests and differ for others")
	}
}

func TestErrorsOfThePlane(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{gozzard.Errorf(gozzard.ErrStorageFull, "storage full"), blueking.CodeGeneral, "storage full"},
		{gozzard.Errorf(gozzard.ErrInvalid, "this Idempotency-Key was used for another request"),
			blueking.CodeArgument, "another request"},
		{gozzard.Errorf(gozzard.ErrRateLimited, "too many"), blueking.CodeRateLimited, "too many"},
		{errors.New("disk /dev/sda is on fire"), blueking.CodeBackend, "internal error"},
	} {
		h, plane := newDoor(t)
		plane.err = c.err
		group := `{` + cred + `,"meta":{"namespace":"g"},"hosts":[{"ip":"10.0.0.2","bk_cloud_id":0,"bk_agent_id":"` + agentA + `"}],"task_id":"x",
			"spec":{"process_group":[{"id":"a","resource":{"cpu_pool_limit":1,"mem_pool_limit":2,"cpu_pool_weight":0,"mem_pool_weight":1}}]}}`
		for name, body := range map[string]string{"operate_proc": operate(),
			"operate_proc_multi": `{` + cred + `,"proc_operate_req":[` + operate() + `]}`,
			"register_proc_info": operate(), "get_proc_operate_result": group, "set_process_group_info": group,
			"get_process_group_info": group} {
			if e := send(t, h, bus+name, body); *e.Code != c.code || !strings.Contains(*e.Message, c.want) ||
				strings.Contains(*e.Message, "sda") {
				t.Errorf("%s of %v: %d %s", name, c.err, *e.Code, *e.Message)
			}
		}
	}
}

// TestTypesHold: in all golden answers a field has the type that clients decode.
func TestTypesHold(t *testing.T) {
	kinds := map[string]string{
		"result": "bool", "code": "int", "message": "string", "request_id": "string", "task_id": "string",
		"error_code": "int", "error_msg": "string", "content": "string",
		"pid": "int", "isauto": "bool", "isAuto": "bool", "flag": "int", "status_code": "int",
		"bk_agent_id": "string", "host": "object", "meta": "object", "labels": "object",
		"proc_infos": "list", "process_group_infos": "list", "count": "int", "ip": "string", "bk_cloud_id": "int",
		"bk_supplier_id": "int", "version": "string",
		"register_time": "int", "last_start_time": "int", "report_time": "int", "cpu_usage": "number",
		"mem_usage": "number", "fd": "int", "disk": "int", "net": "int",
		"value": "list", "process": "list", "instance": "list", "procName": "string", "setupPath": "string",
		"procname": "string", "processName": "string",
		"utime": "string", "stime": "string", "freeVMem": "string", "startTime": "string", "timezone": "int",
		"bk_agent_alive": "int", "failed": "list", "success": "list",
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}

	seen := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g goldentest.Case
		if err := json.Unmarshal(raw, &g); err != nil {
			t.Fatal(err)
		}
		door, _ := newDoor(t)
		_, answer := g.Send(door)
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				for name, m := range v {
					if want, ok := kinds[name]; ok && (name != "result" || path == "") {
						seen[name] = true
						if name == "content" && path == ".data.result[]" { // of a transfer
							want = "object"
						}
						if got := kindOf(m); got != want && (want != "number" || got != "int") {
							t.Errorf("%s: %s.%s is %s, want %s", file, path, name, got, want)
						}
					}
					if s, ok := m.(string); ok && name == "content" && s != "" {
						checkContent(t, path, s)
						m = decode(t, []byte(s))
					}
					walk(path+"."+name, m)
				}
			case []any:
				for _, m := range v {
					walk(path+"[]", m)
				}
			}
		}
		walk("", decode(t, answer))
	}

	for name := range kinds {
		if !seen[name] {
			t.Errorf("no golden answer has %s", name)
		}
	}
}

func decode(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "int"
	case []any:
		return "list"
	}
	return "object"
}

// checkContent checks the form of a content: one value, or one process with one instance whose pid is over 1 or -1.
func checkContent(t *testing.T, path, s string) {
	t.Helper()
	var c struct {
		Value   []map[string]any `json:"value"`
		Process []struct {
			Instance []struct {
				PID    *int  `json:"pid"`
				IsAuto *bool `json:"isAuto"`
			} `json:"instance"`
		} `json:"process"`
	}
	if err := json.Unmarshal([]byte(s), &c); err != nil {
		t.Fatalf("%s: %v: %s", path, err, s)
	}

	switch {
	case len(c.Value) == 1 && c.Process == nil:
	case c.Value == nil && len(c.Process) == 1 && len(c.Process[0].Instance) == 1 &&
		c.Process[0].Instance[0].IsAuto != nil:
		if pid := c.Process[0].Instance[0].PID; pid == nil || *pid != -1 && *pid < 2 {
			t.Errorf("%s: pid of %s", path, s)
		}
	default:
		t.Errorf("%s: content %s", path, s)
	}
}

// FuzzBody sends bodies to all calls: every answer is an envelope, and nothing reaches the plane without an
// identified caller.
func FuzzBody(f *testing.F) {
	z := fuzztest.New(f)
	var names []string
	for name, dirs := range calls() {
		names = append(names, dirs[0]+name)
	}

	files, _ := filepath.Glob("testdata/*.json")
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var g goldentest.Case
		if err := json.Unmarshal(raw, &g); err != nil {
			f.Fatal(err)
		}
		z.Add(uint8(i), []byte(g.Body))
	}

	h, plane := newDoor(f)
	z.Fuzz(func(t *testing.T, which uint8, body []byte) {
		path := names[int(which)%len(names)]
		plane.calls = nil
		e := send(t, h, path, string(body))
		if len(plane.calls) > 0 && !bytes.Contains(body, []byte("secret")) && !bytes.Contains(body, []byte(`\u`)) {
			t.Fatalf("a stranger got through: %s", body)
		}
		if *e.Code == blueking.CodeBackend {
			t.Fatalf("internal error on %s: %s", path, body)
		}
	})
}

func BenchmarkMulti1000(b *testing.B) {
	var items []string
	for i := range 1000 {
		items = append(items,
			fmt.Sprintf(`{"meta":{"namespace":"GSEKIT_BIZ_3","name":"p_%d"},"op_type":0,"agent_id_list":["%s"],"spec":{%s,"control":{"start_cmd":"./start.sh"}}}`, i, agentA, id))
	}

	body := `{` + cred + `,"proc_operate_req":[` + strings.Join(items, ",") + `]}`
	h, plane := newDoor(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()

	for b.Loop() {
		plane.calls = nil
		send(b, h, bus+"operate_proc_multi", body)
	}
}

func BenchmarkOperate100kHosts(b *testing.B) {
	body := operate("hosts=" + hostList(100_000))
	h, plane := newDoor(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		plane.calls = nil
		send(b, h, bus+"operate_proc", body)
	}
}
