package api_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
)

func itoa(n int) string { return strconv.Itoa(n) }

func decodeLoose(t *testing.T, r reply, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil || r.code != 200 {
		t.Fatalf("answers %d %s", r.code, r.body)
	}
}

func TestOperateABusiness(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)

	for body, want := range map[string][]string{
		`"expression":"*.*.*.*.*"`: {"start GSEKIT_BIZ_2:nginx_1 @ 0:10.0.0.1",
			"start GSEKIT_BIZ_2:nginx_2 @ 0:10.0.0.1", "start GSEKIT_BIZ_2:nginx_1 @ 0:10.0.0.2",
			"start GSEKIT_BIZ_2:mysql_1 @ 3:10.0.0.1"},
		`"env":1,"names":["*"]`: {"start GSEKIT_BIZ_2:mysql_1 @ 3:10.0.0.1"},
		`"env":"formal","sets":["front.end"],"modules":[21,99]`: {"start GSEKIT_BIZ_2:nginx_1 @ 0:10.0.0.1",
			"start GSEKIT_BIZ_2:nginx_2 @ 0:10.0.0.1", "start GSEKIT_BIZ_2:nginx_1 @ 0:10.0.0.2"},
		`"names":["nginx"],"hosts":[{"cloud":0,"ip":"10.0.0.2"}]`:    {"start GSEKIT_BIZ_2:nginx_1 @ 0:10.0.0.2"},
		`"hosts":[{"agent":"a3"}]`:                                   {"start GSEKIT_BIZ_2:mysql_1 @ 3:10.0.0.1"},
		`"expression":"front\\.end.web.10\\.0\\.0\\.2_web.nginx.48"`: {"start GSEKIT_BIZ_2:nginx_1 @ 0:10.0.0.2"},
	} {
		r := s.call("POST", "/api/v1/operations", `{"action":"start","biz":2,`+body+`}`)
		if r.code != 202 {
			t.Errorf("%s answers %d %s", body, r.code, r.body)
			continue
		}
		op := s.last(t)
		var got []string
		for _, it := range op.Items {
			got = append(got, it.Action.String()+" "+it.Key.String()+" @ "+it.Targets[0].Addr.String())
			if it.Spec == nil || it.Spec.Control.Start != "./start.sh" || it.Labels["bk_process_name"] == "" ||
				it.Refused != nil {
				t.Errorf("%s: item is %+v", body, it)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// An action without a command of its own is for the agent to decide, as for a process that is chosen by name.
func TestOperateWithoutACommand(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)

	if r := s.call("POST", "/api/v1/operations", `{"action":"stop","biz":2,"modules":["web"]}`); r.code != 202 {
		t.Fatalf("answers %d %s", r.code, r.body)
	}

	items := s.last(t).Items
	if len(items) != 3 || items[0].Refused != nil || items[1].Refused != nil || items[2].Refused != nil ||
		items[2].Spec == nil || items[2].Spec.Control.Stop != "" {
		t.Fatalf("%+v", items)
	}

	if r := s.call("DELETE", "/api/v1/processes", `{"biz":2,"modules":["web"]}`); r.code != 202 {
		t.Fatalf("answers %d %s", r.code, r.body)
	}
	if items := s.last(t).Items; len(items) != 3 || items[2].Action != gozzard.ActionUnregister ||
		items[2].Spec != nil || items[2].Refused != nil {
		t.Errorf("%+v", items)
	}
}

func TestBadSelectionsChangeNothing(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)

	for body, want := range map[string]string{
		`"biz":2`:                                        "400 select some of its processes",
		`"biz":2,"env":3`:                                "400 select some of its processes",
		`"biz":2,"all":true`:                             "400 is not allowed with a business",
		`"biz":2,"names":[],"hosts":[]`:                  "400 select some of its processes",
		`"biz":2,"names":["*"],"namespace":"x"`:          "400 namespace: is not allowed with a business",
		`"biz":2,"names":["*"],"spec":{}`:                "400 spec: is not allowed with a business",
		`"biz":2,"names":["*"],"labels":{}`:              "400 labels: is not allowed with a business",
		`"biz":"2","names":["*"]`:                        "400 biz: must be a whole number",
		`"biz":0,"names":["*"]`:                          "400 biz: must be 1 to",
		`"expression":"*.*.*.*.*"`:                       "400 biz: required",
		`"biz":2,"set":["x"]`:                            `400 set: unknown, did you mean "sets"?`,
		`"biz":2,"sets":["a*"]`:                          "400 sets[0]: ",
		`"biz":2,"sets":[5,"x"]`:                         "400 sets[1]: give either ids or names",
		`"biz":2,"sets":"5"`:                             "400 sets: must be a list",
		`"biz":2,"env":4,"names":["*"]`:                  "400 env: must be 1",
		`"biz":2,"env":true,"names":["*"]`:               "400 env",
		`"biz":2,"expression":""`:                        "400 expression: required",
		`"biz":2,"expression":"*.*.*.*"`:                 "400 has 4",
		`"biz":2,"expression":"[.*.x[.*.4[6"`:            "400 field 5 (process id)",
		`"biz":2,"names":["../x"]`:                       "400 names[0]",
		`"biz":2,"hosts":[{"ip":"x"}]`:                   "400 hosts[0].ip",
		`"biz":2,"hosts":[{"agent":"none"}]`:             "400 hosts[0]: host none is not in the fleet",
		`"biz":2,"names":["nothing"]`:                    "404 no process of business 2 matches",
		`"biz":9,"names":["nothing"]`:                    "404 no business 9 is known",
		`"biz":2,"names":["*"],"wait_seconds":1`:         "400 wait_seconds",
		`"biz":2,"expression":"` + stringsOf(6000) + `"`: "400 at most 5120",
	} {
		r := s.call("POST", "/api/v1/operations", `{"action":"start",`+body+`}`)
		f := r.failure(t)
		text := itoa(r.code) + " " + f.Error.Message
		for _, fault := range f.Error.Faults {
			text += "; " + fault.String()
		}
		code, words, _ := strings.Cut(want, " ")
		if !strings.HasPrefix(text, code) || !strings.Contains(text, words) {
			t.Errorf("%.80s answers %s\nwant %s", body, text, want)
		}
	}

	if len(s.ops) != 0 {
		t.Error("something was operated")
	}
}

func stringsOf(n int) string { return strings.Repeat("a", n) }
