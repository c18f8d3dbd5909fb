package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

type applied struct {
	Biz     int
	Version int64
	DryRun  bool `json:"dry_run"`
	Applied bool
	Plan    struct {
		Added, Changed, Removed []struct {
			Kind, Name string
			ID         int
			Fields     []string
		}
	}
	Managed int
	Named   []gozzard.Fault `json:"managed_instances"`
	TaskID  string          `json:"task_id"`

	Rejected string
	Warnings []string
}

func TestPutTopology(t *testing.T) {
	s := newBusinessServer(t)
	put := func(query, doc string) (out applied) {
		t.Helper()
		r := s.call("PUT", "/api/v1/topology/2"+query, doc, yamlBody)
		if r.code != 200 {
			t.Fatalf("answers %d %s", r.code, r.body)
		}
		r.decode(t, &out)
		return out
	}

	if out := put("?dry_run=true", shop); out.Applied || !out.DryRun || out.Version != 0 || len(out.Plan.Added) == 0 {
		t.Errorf("dry run: %+v", out)
	}
	if out := put("?version=0", shop); !out.Applied || out.DryRun || out.Version != 1 {
		t.Errorf("applied: %+v", out)
	}
	if out := put("", shop); out.Applied || out.Version != 1 || len(out.Plan.Added)+len(out.Plan.Changed)+
		len(out.Plan.Removed) != 0 {
		t.Errorf("once more: %+v", out)
	}

	if out := put("?version=1", strings.Replace(shop, "id: 48,", "id: 48, priority: 7,", 1)); !out.Applied ||
		len(out.Plan.Changed) != 1 || out.Plan.Changed[0].Kind != "process" ||
		out.Plan.Changed[0].Name != "front.end.web.10.0.0.2_web.nginx" ||
		out.Plan.Changed[0].Fields[0] != "priority: 0 -> 7" {
		t.Errorf("changed: %+v", out)
	}

	if r := s.call("PUT", "/api/v1/topology/2?version=1", shop, yamlBody); r.code != 409 {
		t.Errorf("an old version answers %d %s", r.code, r.body)
	}

	s.Apply("a1", []gozzard.Status{{Key: topology.Key(2, "nginx", 2), State: gozzard.StateRunning, Hosted: true}}, nil)
	less := strings.Replace(shop, "proc_num: 2,", "", 1)
	r := s.call("PUT", "/api/v1/topology/2", less, yamlBody)
	if f := r.failure(t); r.code != 409 || f.Error.Kind != gozzard.ErrConflict || len(f.Error.Faults) != 1 ||
		!strings.Contains(f.Error.Faults[0].Text, "nginx_2 is managed on 0:10.0.0.1") {
		t.Errorf("removing what is hosted answers %d %s", r.code, r.body)
	}

	if out := put("?dry_run=true", less); out.Managed != 1 || len(out.Named) != 1 ||
		!strings.HasPrefix(out.Rejected, "1 of the instances to be removed are managed") {
		t.Errorf("plan of it: %+v", out)
	}
	if out := put("?prune=true", less); !out.Applied || out.Managed != 1 || !strings.HasPrefix(out.TaskID, "GSETASK:") {
		t.Errorf("pruned: %+v", out)
	}
}

func TestTopologyDocumentComesBack(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)

	get := func(accept string) reply {
		t.Helper()
		r := s.call("GET", "/api/v1/topology/2", "", header("Accept", accept))
		if r.code != 200 || r.header.Get("ETag") != `"1"` {
			t.Fatalf("answers %d %s", r.code, r.body)
		}
		return r
	}

	for accept, kind := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json, application/yaml": "application/json",
		"application/yaml": "application/yaml",
		"text/html, application/x-yaml;q=0.9, */*;q=0.1": "application/yaml",
	} {
		r := get(accept)
		if !strings.HasPrefix(r.header.Get("Content-Type"), kind) {
			t.Errorf("Accept %q gets %s", accept, r.header.Get("Content-Type"))
		}
		again := s.call("PUT", "/api/v1/topology/2", r.body, header("Content-Type", r.header.Get("Content-Type")))
		var out applied
		again.decode(t, &out)
		if again.code != 200 || out.Applied {
			t.Errorf("the same document changes something: %d %s", again.code, again.body)
		}
	}

	var list struct {
		Count      int
		Businesses []struct {
			Biz, Version     int
			Name, Source, At string
		}
	}
	s.call("GET", "/api/v1/topology", "").decode(t, &list)

	if list.Count != 1 || list.Businesses[0].Biz != 2 || list.Businesses[0].Name != "商店" ||
		list.Businesses[0].Source != "file" || list.Businesses[0].Version != 1 {
		t.Errorf("list is %+v", list)
	}
}

func TestTopologyTree(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)
	want := `{"biz":2,"name":"商店","counts":{"processes":3,"running":0,"stopped":1,"unregistered":2,"managed":0},"sets":[` +
		`{"id":5,"name":"front.end","env":3,"counts":{"processes":2,"running":0,"stopped":1,"unregistered":1,"managed":0},"modules":[` +
		`{"id":21,"name":"web","service_template_id":26,"services":2,"counts":{"processes":2,"running":0,"stopped":1,"unregistered":1,"managed":0}}]},` +
		`{"id":7,"name":"测试","env":1,"counts":{"processes":1,"running":0,"stopped":0,"unregistered":1,"managed":0},"modules":[` +
		`{"id":23,"name":"db","services":1,"counts":{"processes":1,"running":0,"stopped":0,"unregistered":1,"managed":0}}]}]}` + "\n"
	if diff := cmp.Diff(want, s.call("GET", "/api/v1/topology/2/tree", "").body); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}

	for query, n := range map[string]int{"?env=1": 1, "?env=formal": 1, "?env=experience": 0} {
		r := s.call("GET", "/api/v1/topology/2/tree"+query, "")
		if strings.Count(r.body, `"modules"`) != n || n == 0 && !strings.Contains(r.body, `"sets":[]`) {
			t.Errorf("%s: %s", query, r.body)
		}
	}
}

func TestBadTopologyChangesNothing(t *testing.T) {
	s := newBusinessServer(t)
	json := header("Content-Type", "application/json")
	for name, c := range map[string]struct {
		path, body string
		edit       func(*http.Request)
		code       int
		want       string
	}{
		"not a number":     {"/api/v1/topology/two", shop, yamlBody, 400, "must be the number of a business"},
		"leading zero":     {"/api/v1/topology/02", shop, yamlBody, 400, "must be the number of a business"},
		"zero":             {"/api/v1/topology/0", shop, yamlBody, 400, "must be the number of a business"},
		"another business": {"/api/v1/topology/3", shop, yamlBody, 400, "is 2 in the document and 3 in the path"},
		"parameter":        {"/api/v1/topology/2?dryrun=true", shop, yamlBody, 400, `did you mean "dry_run"`},
		"flag":             {"/api/v1/topology/2?dry_run=yes", shop, yamlBody, 400, "dry_run"},
		"type": {"/api/v1/topology/2", shop, header("Content-Type", "application/xml"), 400,
			"Content-Type"},
		"YAML as JSON":      {"/api/v1/topology/2", shop, json, 400, "line 1"},
		"JSON with a comma": {"/api/v1/topology/2", `{"biz":2,"name":"x",}`, json, 400, "line 1"},
		"empty":             {"/api/v1/topology/2", "", yamlBody, 400, ""},
		"unknown key": {"/api/v1/topology/2", strings.Replace(shop, "proc_num", "procnum", 1), yamlBody,
			400, `did you mean "proc_num"`},
		"duplicate id": {"/api/v1/topology/2", strings.Replace(shop, "{id: 48,", "{id: 46,", 1), yamlBody,
			400, "46"},
		"a cloud that is not": {"/api/v1/topology/2", strings.Replace(shop, "cloud: 3}", "cloud: 4}", 1), yamlBody,
			400, "line 30"},
		"compressed": {"/api/v1/topology/2", shop, header("Content-Encoding", "gzip"), 400,
			"Content-Encoding"},
		"no such business":       {"GET /api/v1/topology/9", "", nil, 404, ""},
		"no such business: tree": {"GET /api/v1/topology/9/tree", "", nil, 404, "no business 9"},
		"no such environment":    {"GET /api/v1/topology/9/tree?env=4", "", nil, 400, "env"},
	} {
		t.Run(name, func(t *testing.T) {
			method, path, ok := strings.Cut(c.path, " ")
			if !ok {
				method, path = "PUT", c.path
			}
			if c.edit == nil {
				c.edit = yamlBody
			}

			r := s.call(method, path, c.body, c.edit)
			f := r.failure(t)
			text := f.Error.Message
			for _, fault := range f.Error.Faults {
				text += "; " + fault.String()
			}

			if r.code != c.code || !strings.Contains(text, c.want) {
				t.Errorf("answers %d %s\nwant %d %s", r.code, text, c.code, c.want)
			}
			if len(s.Businesses(everybody)) != 0 {
				t.Error("something was applied")
			}
		})
	}
}

func TestAllFaultsOfADocumentAreReported(t *testing.T) {
	s := newBusinessServer(t)
	bad := strings.NewReplacer("env: 1", "env: 9", "{id: 48, name: nginx", "{id: 46, nam: nginx", "ip: 10.0.0.2",
		"ip: 10.0.0").Replace(shop)
	f := s.call("PUT", "/api/v1/topology/2", bad, yamlBody).failure(t)
	if len(f.Error.Faults) < 3 {
		t.Errorf("only %v", f.Error.Faults)
	}
	for _, fault := range f.Error.Faults {
		if !strings.HasPrefix(fault.Path, "line ") {
			t.Errorf("fault without its line: %v", fault)
		}
	}
}

func TestProcessesOfABusiness(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)

	for query, want := range map[string]string{
		"biz=2":                                         "46/1 46/2 48/1 49/1",
		"biz=2&env=3":                                   "46/1 46/2 48/1",
		"biz=2&env=test":                                "49/1",
		"biz=2&set=front.end&set=7":                     "!give either ids or names",
		"biz=2&set=5&module=web":                        "46/1 46/2 48/1",
		"biz=2&set=5&set=7":                             "46/1 46/2 48/1 49/1",
		"biz=2&module=23":                               "49/1",
		"biz=2&module=none":                             "",
		"biz=2&name=nginx":                              "46/1 46/2 48/1",
		"biz=2&name=n*&name=my??l":                      "46/1 46/2 48/1 49/1",
		"biz=2&name=nginx&name=my*":                     "46/1 46/2 48/1 49/1",
		"biz=2&host=10.0.0.1":                           "46/1 46/2 49/1",
		"biz=2&host=0:10.0.0.1":                         "46/1 46/2",
		"biz=2&host=a3":                                 "49/1",
		"biz=2&cloud=3":                                 "49/1",
		"biz=2&state=stopped":                           "",
		"biz=2&state=running":                           "46/1",
		"biz=2&state=unregistered":                      "46/2",
		"biz=2&state=unknown":                           "48/1 49/1", // their hosts have not reported
		"biz=2&state=up":                                "!must be one of",
		"biz=2&hosted=true":                             "",
		"biz=2&managed=true":                            "",
		"biz=2&start=1&limit=1":                         "48/1",
		"biz=2&expression=" + esc(`front\.end.*.*.*.*`): "46/1 46/2 48/1",
		"biz=2&expression=" + esc(`*.*.10\.0\.0\.[1,2]_web.nginx.4[6-8]`): "46/1 46/2 48/1",
		"biz=2&expression=" + esc(`[front.end,测试].*.*.*.*`):               "46/1 46/2 48/1 49/1",
		"biz=2&expression=" + esc(`*.*.*.*.[-1:]`):                        "49/1",
		"biz=3":                                  "",
		"set=5":                                  "!biz",
		"biz=0":                                  "!biz",
		"biz=2&env=4":                            "!env",
		"biz=2&set=fr*":                          "!use the expression for patterns",
		"biz=2&namespace=shop":                   "!namespace",
		"biz=2&name=..%2Fx":                      "!name",
		"biz=2&host=0:10.0.0.1&host=3:10.0.0.1":  "!one cloud",
		"biz=2&host=nobody":                      "!nobody",
		"biz=2&expression=" + esc(`*.*.*`):       "!five fields",
		"biz=2&expression=" + esc(`a.b.c.d.e.f`): "!has 6",
		"biz=2&expression=" + esc(`*.[a.*.[b.*`): `!field 2 (module) "[a"`,
		"biz=2&name=m*&expression=" + esc(`*.*.*.x.*`): "!give only one",
		"biz=2&name=1-3&name=m*":                       "!together with a pattern",
	} {
		t.Run(query, func(t *testing.T) {
			r := s.call("GET", "/api/v1/processes?"+query, "")

			if text, wrong := strings.CutPrefix(want, "!"); wrong {
				if r.code != 400 || !strings.Contains(strings.ReplaceAll(r.body, `\"`, `"`), text) {
					t.Errorf("answers %d %s", r.code, r.body)
				}
				return
			}

			var got struct {
				Count     int
				Next      int
				Processes []struct {
					Topology struct {
						Process int `json:"process"`
						Local   int `json:"local_inst_id"`
					}
				}
			}
			decodeLoose(t, r, &got)
			var list []string
			for _, p := range got.Processes {
				list = append(list, strings.Join([]string{itoa(p.Topology.Process), itoa(p.Topology.Local)}, "/"))
			}

			if strings.Join(list, " ") != want {
				t.Errorf("finds %v of %d", list, got.Count)
			}
		})
	}
}

func TestInstanceRow(t *testing.T) {
	s := newBusinessServer(t)
	s.putShop(t)
	r := s.call("GET", "/api/v1/processes?biz=2&limit=1", "")
	want := `{"count":3,"processes":[{"host":{"agent":"a1","cloud":0,"ip":"10.0.0.1"},"namespace":"GSEKIT_BIZ_2","name":"nginx_1","wanted":"unregistered","state":"running","kind":"",` +
		`"managed":true,"stale":false,"pid":5,"registered_at":null,"started_at":null,"reported_at":"1970-01-01T00:00:09.000Z","cpu":1.5,"mem":0,"mem_bytes":0,"fd":0,"disk":0,"net":0,` +
		`"topology":{"biz":2,"set":5,"set_name":"front.end","env":3,"module":21,"module_name":"web","service":5,"service_name":"10.0.0.1_web","process":46,"alias":"nginx",` +
		`"local_inst_id":1,"inst_id":1,"priority":0},"restarts":0,"health":""},` +
		`{"host":{"agent":"a1","cloud":0,"ip":"10.0.0.1"},"namespace":"GSEKIT_BIZ_2","name":"nginx_2","wanted":"unregistered","state":"unregistered","kind":"",` +
		`"managed":false,"stale":false,"pid":-1,"registered_at":null,"started_at":null,"reported_at":null,"cpu":0,"mem":0,"mem_bytes":0,"fd":0,"disk":0,"net":0,` +
		`"topology":{"biz":2,"set":5,"set_name":"front.end","env":3,"module":21,"module_name":"web","service":5,"service_name":"10.0.0.1_web","process":46,"alias":"nginx",` +
		`"local_inst_id":2,"inst_id":2,"priority":0},"restarts":0,"health":""}],"next":1}` + "\n"
	if diff := cmp.Diff(want, r.body); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

func esc(s string) string { return url.QueryEscape(s) }
