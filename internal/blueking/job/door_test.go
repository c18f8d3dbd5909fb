package job_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/specjson"
)

const (
	bus  = "/api/c/compapi/v2/job/"
	cred = `"bk_app_code":"esb_test","bk_app_secret":"xxx","bk_token":"xxx"`
)

type envelope struct {
	Result  bool            `json:"result"`
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	ID      string          `json:"request_id"`
	status  int
}

func send(t testing.TB, h http.Handler, method, path, body string) envelope {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	e := envelope{status: w.Code}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || len(e.ID) != 32 || e.Result != (e.Code == 0) ||
		!e.Result && string(e.Data) != "null" {
		t.Fatalf("%s: %v %.300s", path, err, w.Body)
	}
	return e
}

// operate makes a request on one process. Each part replaces or, when empty, removes the field of its name.
func operate(parts ...string) string {
	top := map[string]string{"bk_biz_id": "2", "op_type": "0"}
	info := map[string]string{"setup_path": `"/opt/p"`, "proc_name": `"p"`, "pid_path": `"/run/p.pid"`,
		"ip_list": `[{"bk_cloud_id":0,"ip":"10.0.0.1"}]`}
	infos := ""
	for _, p := range parts {
		name, value, _ := strings.Cut(p, "=")
		switch name {
		case "bk_biz_id", "op_type", "bk_scope_type", "bk_scope_id", "Op_Type":
			top[name] = value
		case "process_infos":
			infos = value
		default:
			info[name] = value
		}
	}

	if infos == "" {
		infos = "[" + object(info) + "]"
	}
	if infos != "missing" {
		top["process_infos"] = infos
	}

	return "{" + cred + "," + object(top)[1:]
}

func object(fields map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value := fields[name]; value != "" {
			list = append(list, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

func TestEveryFormIsServedAndGuarded(t *testing.T) {
	h, plane := newDoor(t)
	bodies := map[string]int{
		`{}`: blueking.CodeGeneral,
		`{"bk_app_code":"esb_test","bk_app_secret":"wrong","bk_token":"xxx"}`:  blueking.CodeGeneral,
		`{"bk_app_code":"esb_test","bk_app_secret":"xxx","bk_username":"bob"}`: blueking.CodeUserForbidden,
		`{"bk_app_code":"esb_test","bk_app_secret":"xxx"}`:                     blueking.CodeOperatorRequired,
	}
	for _, dir := range []string{bus, "/api/c/compapi/v2/jobv3/", "/api/c/compapi/job/", "/api/job/v2/job-execute/",
		"/api/job/v3/job-execute/", "/api/v2/",
		"/esb/api/v2/", "/esb/api/v3/"} {
		for _, name := range []string{"operate_proc", "operate_process", "manage_proc", "get_proc_result"} {
			for _, path := range []string{dir + name, dir + name + "/",
				strings.ReplaceAll(dir, "/", "//") + name + "//"} {
				for body, code := range bodies {
					if e := send(t, h, http.MethodPost, path, body); e.Code != code || e.status != http.StatusOK {
						t.Errorf("%s %s: HTTP %d, %d %s", path, body, e.status, e.Code, e.Message)
					}
				}
				if e := send(t, h, http.MethodPost, path, "{"+cred+"}"); e.Code != 1241002 &&
					e.Code != blueking.CodeArgument {
					t.Errorf("%s: %d %s", path, e.Code, e.Message)
				}
			}
		}
	}

	if len(plane.calls) != 0 {
		t.Errorf("the plane was asked: %+v", plane.calls)
	}

	for _, path := range []string{"/api/v2/proc/operate_proc", bus + "operate_proc_multi", bus,
		"/api/c/compapi/v2/gse/operate_proc", "/esb/api/v4/operate_proc"} {
		if e := send(t, h, http.MethodPost, path, "{"+cred+"}"); e.status != http.StatusNotFound ||
			h.Owns(httptest.NewRequest(http.MethodPost, path, nil)) {
			t.Errorf("%s: HTTP %d", path, e.status)
		}
	}

	if e := send(t, h, http.MethodGet, bus+"operate_proc", ""); e.status != http.StatusMethodNotAllowed {
		t.Errorf("GET operate_proc: HTTP %d", e.status)
	}
}

func TestRefusedInput(t *testing.T) {
	const argument, violation = blueking.CodeArgument, 1241002
	hosts := strings.Repeat(`{"bk_cloud_id":0,"ip":"10.0.0.1"},`, 10) + `{"bk_cloud_id":0,"ip":"10.0.0.2"}`
	var many []string
	for i := range 11 {
		many = append(many,
			fmt.Sprintf(`{"setup_path":"/p","proc_name":"p%d","pid_path":"/p","ip_list":[{"bk_cloud_id":0,"ip":"10.0.0.1"}]}`, i))
	}

	two := many[0] + `,` + strings.Replace(many[0], `"pid_path":"/p"`, `"pid_path":"/q"`, 1)
	for _, c := range []struct {
		body string
		code int
		want string
	}{
		{``, argument, "empty"},
		{`null`, argument, "must be a JSON object"},
		{`[]`, argument, "must be a JSON object"},
		{operate() + operate(), argument, ""},
		{strings.Replace(operate(), `"op_type":0`, `"op_type":2,"op_type":9`, 1), argument, `duplicate key "op_type"`},
		{strings.Replace(operate(), `}]}`, `},]}`, 1), argument, "line 1"},
		{operate("op_type="), argument, "op_type: required"},
		{operate("op_type=", "Op_Type=0"), argument, "op_type: required"},
		{operate("op_type=null"), argument, "op_type: required, is null"},
		{operate(`op_type="0"`), argument, "op_type: must be a whole number"},
		{operate(`op_type=1.0`), argument, "op_type: must be a whole number"},
		{operate("op_type=5"), violation, "op_type: 5 is no operation"},
		{operate("op_type=-1"), violation, "op_type: -1 is no operation"},
		{operate("bk_biz_id="), violation, "bk_biz_id: required"},
		{operate("bk_biz_id=null"), violation, "bk_biz_id: required, is null"},
		{operate("bk_biz_id=0"), violation, "bk_biz_id: must be the number of a business, is 0"},
		{operate(`bk_biz_id="2"`), argument, "bk_biz_id: must be a whole number"},
		{operate("bk_biz_id=100000000000000000000"), argument, "bk_biz_id: must be"},
		{operate("bk_biz_id=", `bk_scope_type="tenant"`, `bk_scope_id="2"`), argument, "bk_scope_type: must be biz"},
		{operate("bk_biz_id=", `bk_scope_id="2"`), argument, "bk_scope_type: must be biz"},
		{operate("bk_biz_id=", `bk_scope_type="biz"`, `bk_scope_id="02"`), violation,
			"bk_scope_id: must be the number of a business"},
		{operate("bk_biz_id=", `bk_scope_type="biz"`), violation, "bk_scope_id: required"},
		{operate(`bk_scope_type="biz"`, `bk_scope_id="3"`), argument, "bk_scope_id: is 3, bk_biz_id is 2"},
		{operate("process_infos=missing"), violation, "process_infos: at least one process is required"},
		{operate("process_infos=[]"), violation, "process_infos: at least one process is required"},
		{operate("process_infos={}"), argument, "process_infos: must be a list"},
		{operate("process_infos=[null]"), argument, "process_infos[0]: required, is null"},
		{operate("process_infos=[" + strings.Join(many, ",") + "]"), argument,
			"process_infos: has 11 elements, at most 10"},
		{operate("process_infos=[" + two + "]"), argument,
			"process_infos[1]: is defined in another way for 0:10.0.0.1"},
		{operate("setup_path="), violation, "setup_path: required"},
		{operate(`setup_path=""`), violation, "setup_path: required, is blank"},
		{operate(`setup_path="opt/p"`), argument, "setup_path: \"opt/p\" is not a clean absolute path"},
		{operate(`setup_path="/a/../../etc"`), argument, "is not a clean absolute path"},
		{operate(`setup_path="/a\u0000b"`), argument, "control"},
		{operate(`setup_path="/a\nb"`), argument, "control"},
		{operate(`setup_path="C:x"`), argument, "is not a clean absolute path"},
		{operate("proc_name=null"), violation, "proc_name: required, is null"},
		{operate(`proc_name="../../etc/passwd"`), argument, "proc_name: is the name of a program"},
		{operate(`proc_name="a\u202eb"`), argument, "proc_name: "},
		{operate(`proc_name="` + strings.Repeat("x", 256) + `"`), argument, "proc_name: has 256 bytes"},
		{operate("pid_path="), violation, "pid_path: required"},
		{operate(`pid_path="p.pid"`), argument, "pid_path: "},
		{operate(`cmd_shell_ext="exe"`), argument, "cmd_shell_ext: must be sh, bat or ps1"},
		{operate(`cmd_shell_ext="SH"`), argument, "cmd_shell_ext: must be sh, bat or ps1"},
		{operate(`cmd_shell_ext=1`), argument, "cmd_shell_ext: must be a string"},
		{operate(`cmd_shell_ext="bat"`, `proc_name="%PATH%"`), argument, `proc_name: has '%'`},
		{operate(`cmd_shell_ext="bat"`, `setup_path="C:\\a\"b"`), argument, `setup_path: has '"'`},
		{operate(`account=1`), argument, "account: must be a string"},
		{operate(`cpu_lmt="50"`), argument, "cpu_lmt: must be a whole number"},
		{operate(`mem_lmt=1.5`), argument, "mem_lmt: must be a whole number"},
		{operate("ip_list="), violation, "ip_list: at least one host is required"},
		{operate("ip_list=[]"), violation, "ip_list: at least one host is required"},
		{operate("ip_list=[null]"), argument, "ip_list[0]: required, is null"},
		{operate("ip_list=[" + hosts + "]"), argument, "ip_list: has 11 elements, at most 10"},
		{operate(`ip_list=[{"ip":"10.0.0.1"}]`), argument, "ip_list[0].bk_cloud_id: required"},
		{operate(`ip_list=[{"bk_cloud_id":-1,"ip":"10.0.0.1"}]`), argument, "ip_list[0].bk_cloud_id: must be 0"},
		{operate(`ip_list=[{"bk_cloud_id":0}]`), violation, "ip_list[0].ip: required"},
		{operate(`ip_list=[{"bk_cloud_id":0,"ip":"010.0.0.1"}]`), argument,
			"ip_list[0].ip: \"010.0.0.1\" is not the address of one host"},
		{operate(`ip_list=[{"bk_cloud_id":0,"ip":"localhost"}]`), argument, "is not the address of one host"},
		{operate(`ip_list=[{"bk_cloud_id":0,"ip":"10.0.0.1/24"}]`), argument, "is not the address of one host"},
	} {
		h, plane := newDoor(t)
		e := send(t, h, http.MethodPost, bus+"operate_proc/", c.body)
		if e.Code != c.code || !strings.Contains(e.Message, c.want) || e.status != http.StatusOK {
			t.Errorf("%.200s\nHTTP %d, %d %s\nwant %d %s", c.body, e.status, e.Code, e.Message, c.code, c.want)
		}
		if len(plane.calls) != 0 {
			t.Errorf("%.200s: the plane was asked", c.body)
		}
	}
}

func TestManageKnowsTwoOperations(t *testing.T) {
	for op, want := range map[string]int{"1": 0, "2": 0, "0": 1241002, "3": 1241002, "9": 1241002} {
		h, _ := newDoor(t)
		if e := send(t, h, http.MethodPost, bus+"manage_proc/", operate("op_type="+op)); e.Code != want {
			t.Errorf("op_type %s: %d %s", op, e.Code, e.Message)
		}
	}
}

func TestFailuresBehindJob(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{errors.New("disk of db-7 broke"), 1210001, "internal error"},
		{gozzard.Errorf(gozzard.ErrUnavailable, "not the leader"), 1210001, "not the leader"},
		{gozzard.Errorf(gozzard.ErrStorageFull, "no room"), 1210001, "no room"},
		{gozzard.Errorf(gozzard.ErrConflict, "the key was used before"), blueking.CodeArgument,
			"the key was used before"},
		{gozzard.Errorf(gozzard.ErrRateLimited, "slower"), blueking.CodeRateLimited, "slower"},
	} {
		h, plane := newDoor(t)
		plane.err = c.err
		for name, body := range map[string]string{"operate_proc": operate(),
			"get_proc_result": `{` + cred + `,"bk_biz_id":2,"bk_gse_taskid":"x"}`} {
			if e := send(t, h, http.MethodPost, bus+name, body); e.Code != c.code ||
				!strings.Contains(e.Message, c.text) || strings.Contains(e.Message, "db-7") {
				t.Errorf("%s: %d %s", name, e.Code, e.Message)
			}
		}
	}
}

// For any path and name, the script in the folder of the program gets the name unchanged, and nothing else runs.
func TestComposedCommandsSayWhatIsMeant(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no sh")
	}

	h, plane := newDoor(t)
	nasty := []string{"p", "a b", "it's", `$(touch ran)`, "`touch ran`", "a;touch ran", "a&touch ran", "a|touch ran",
		`a"b`, "*", "~", "-rf", "#x", "a$HOME", `a'"'`, "网关服", "!x", ">ran", "{a,b}"}
	for i, name := range nasty {
		root := t.TempDir()
		dir := filepath.Join(root, "p "+strings.Map(func(r rune) rune {
			if r == '/' {
				return '_'
			}
			return r
		}, name))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "start.sh"), []byte("#!/bin/sh\nprintf '%s|' \"$#\" \"$1\" >got\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
		field := func(key, value string) string { b, _ := json.Marshal(value); return key + "=" + string(b) }
		if e := send(t, h, http.MethodPost, bus+"operate_proc/",
			operate(field("setup_path", dir), field("proc_name", name))); e.Code != 0 {
			t.Fatalf("%q: %s", name, e.Message)
		}
		it := plane.last.Items[0]
		if err := gozzard.ValidateName(it.Key.Name); err != nil {
			t.Errorf("%q: %v", it.Key.Name, err)
		}
		cmd := exec.Command("/bin/sh", "-c", it.Spec.Control.Start+" wait")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%d %q: %v %s", i, name, err, out)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "got")); err != nil || string(got) != "1|"+name+"|" {
			t.Errorf("%q: the script got %q, %v", name, got, err)
		}
		for _, d := range []string{root, dir} {
			if _, err := os.Stat(filepath.Join(d, "ran")); err == nil {
				t.Errorf("%q was run", name)
			}
		}
	}
}

// The path of every program becomes a valid process name, and different paths become different names.
func TestNames(t *testing.T) {
	h, plane := newDoor(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.String().Draw(rt, "name")
		quoted, err := json.Marshal(name)
		if err != nil {
			rt.Fatal(err)
		}

		var keys []gozzard.Key
		for _, dir := range []string{"/opt/a", "/opt/b", "/opt/a/"} {
			e := send(t, h, http.MethodPost, bus+"operate_process/",
				operate("proc_name="+string(quoted), `setup_path="`+dir+`"`))
			if e.Code != 0 {
				return // refused, with words
			}
			keys = append(keys, plane.last.Items[0].Key)
		}

		for _, k := range keys {
			if err := gozzard.ValidateName(k.Name); err != nil || k.Namespace != "JOB_BIZ_2" {
				rt.Fatalf("%q: %v", k, err)
			}
			if err := specjson.CheckName(k.Name); err != nil {
				rt.Fatal(err)
			}
		}

		if keys[0] == keys[1] || keys[0] != keys[2] {
			rt.Fatalf("%q", keys)
		}
	})
}
