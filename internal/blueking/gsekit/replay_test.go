package gsekit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
)

// observed is a business and the calls on it with the answers of GSEKit 1.0.28.
type observed struct {
	Topology struct {
		Sets  []map[string]any
		Hosts []map[string]any
	}
	Routes []struct {
		Method, Path string
		Body         map[string]any
		Answer       map[string]any
	}
}

// document is the business as a topology document.
func (o *observed) document(t *testing.T) string {
	t.Helper()
	names := map[string]string{"bk_process_id": "id", "bk_process_name": "name", "bk_func_name": "func_name", "process_template_id": "template_id",
		"bk_start_check_secs": "start_check_secs"}
	left := []string{"bk_biz_id", "bk_func_id", "auto_start", "bk_start_param_regex", "description", "bind_info"}

	// attributes are the values that a document has no field for. A null of CMDB is the text None in templates.
	attributes := func(of map[string]any, fields ...string) map[string]any {
		out := map[string]any{}
		for k, v := range of {
			if v == nil {
				v = "None"
			}
			if !slices.Contains(fields, k) {
				out[k] = v
			}
		}
		return out
	}
	host := func(n any) map[string]any {
		h := o.Topology.Hosts[int(n.(float64))]
		return map[string]any{"ip": h["bk_host_innerip"], "cloud": h["bk_cloud_id"], "id": h["bk_host_id"], "agent_id": h["bk_agent_id"],
			"attributes": attributes(h, "bk_host_id", "bk_cloud_id", "bk_host_innerip", "bk_agent_id")}
	}

	var sets []any
	for _, s := range o.Topology.Sets {
		var modules []any
		for _, m := range items(s["modules"]) {
			var instances []any
			for _, i := range items(m["instances"]) {
				var processes []any
				for _, p := range items(i["processes"]) {
					out := map[string]any{}
					for k, v := range p {
						if name, other := names[k]; other {
							k = name
						}
						if !slices.Contains(left, k) {
							out[k] = v
						}
					}
					processes = append(processes, out)
				}
				instances = append(instances, map[string]any{"id": i["id"], "name": i["name"], "host": host(i["host"]), "processes": processes})
			}
			modules = append(modules, map[string]any{"id": m["bk_module_id"], "name": m["bk_module_name"],
				"service_template_id": m["service_template_id"], "instances": instances,
				"attributes": attributes(m, "bk_module_id", "bk_module_name", "service_template_id", "instances")})
		}
		set := map[string]any{"id": s["bk_set_id"], "name": s["bk_set_name"], "modules": modules,
			"attributes": attributes(s, "bk_set_id", "bk_set_name", "bk_set_env", "modules")}
		if env, _ := s["bk_set_env"].(string); env != "" {
			set["env"] = json.Number(env)
		}
		sets = append(sets, set)
	}
	doc, err := json.Marshal(map[string]any{"biz": 2, "name": "蓝鲸", "clouds": []any{map[string]any{"id": 0, "name": "default area"}}, "sets": sets})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

func items(list any) (out []map[string]any) {
	for _, x := range list.([]any) {
		out = append(out, x.(map[string]any))
	}
	return out
}

// replayed is the observed business on the real server, with a host for each of its hosts.
type replayed struct {
	*real
	observed
}

func newReplayed(t *testing.T) *replayed {
	t.Helper()
	raw, err := os.ReadFile("testdata/replay/calls.json")
	r := &replayed{}
	if err == nil {
		err = json.Unmarshal(raw, &r.observed)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.real = newReal(t, r.document(t), 0, gsekit.Options{})
	for _, h := range r.Topology.Hosts {
		r.addHostAt(gozzard.HostAddr{IP: netip.MustParseAddr(h["bk_host_innerip"].(string))}, gozzard.AgentID(h["bk_agent_id"].(string)))
	}
	return r
}

// call sends one call. The answer to the creation of a job is returned when the job has ended.
func (r *replayed) call(method, path string, body map[string]any) map[string]any {
	r.t.Helper()
	path, text := "/api/2/"+path, []byte(nil)
	if method == http.MethodGet {
		q := url.Values{}
		for k, x := range body {
			q.Set(k, fmt.Sprint(x))
		}
		path += "?" + q.Encode()
	} else if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			r.t.Fatal(err)
		}
	}
	answer := r.ask(method, path, string(text))
	data, _ := answer["data"].(map[string]any)
	if data["job_id"] == nil {
		return answer
	}
	r.until("the job has ended", func() bool {
		status := r.ask(http.MethodPost, fmt.Sprintf("/api/2/job/%v/job_status/", data["job_id"]), "{}")
		info := status["data"].(map[string]any)["job_info"].(map[string]any)
		return info["status"] == "succeeded" || info["status"] == "failed"
	})
	return answer
}

func (r *replayed) ask(method, path, body string) (answer map[string]any) {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Bkapi-Authorization", head)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		r.t.Fatalf("%s %s: %v in %.200q", method, path, err, w.Body.String())
	}
	return answer
}

var isTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d`)

// differences are the places where an answer is not the expected one. It may have more keys.
func differences(at string, want, got any) (list []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %.80q is not an object", at, fmt.Sprint(got))}
		}
		for k, x := range w {
			if y, has := g[k]; has {
				list = append(list, differences(at+"."+k, x, y)...)
			} else {
				list = append(list, at+"."+k+": is missing")
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s: has %d items, want %d", at, len(g), len(w))}
		}
		for k := range w {
			list = append(list, differences(at+"[]", w[k], g[k])...)
		}
	default:
		ws, gs := plain(want), plain(got)
		if ws != gs && !(isTime.MatchString(ws) && isTime.MatchString(gs)) {
			list = append(list, fmt.Sprintf("%s: %.80q, want %.80q", at, gs, ws))
		}
	}
	return list
}

func plain(v any) string {
	if n, ok := v.(float64); ok {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(v)
}

// deviation is a place where an answer may differ, with the reason. call is -1 for all calls.
type deviation struct {
	call   int
	place  string // how the place begins
	reason string
}

const (
	anyCall     = -1
	ownWords    = "the texts of the web framework differ between its versions; these are those of the version that GSEKit pins"
	noPipeline  = "jobs have no pipelines here; a task has the id of its operation"
	notInside   = "topology documents do not have these attributes"
	notRepeated = "the filters of a request are not repeated in each task"
	dotted      = "expressions have dots, as the API document says"
	noState     = "a process that was never registered has the status 0, as the API document says"
	endKnown    = "a task has its true end"
	twoInOne    = "files of two processes on one host have one path: GSEKit overwrites one with the other, here the second is rejected"
	fromTheDoc  = "a document has no names for people of its attributes, and no others than templates use"
	itsFault    = "GSEKit itself failed"
)

var deviations = []deviation{
	{anyCall, ".data.list[].pipeline_id", noPipeline}, {anyCall, ".data[].pipeline_id", noPipeline}, {anyCall, ".data.job_info.pipeline_id", noPipeline},
	{anyCall, ".data.list[].extra_data.process_info.process.", notInside}, {anyCall, ".data[].extra_data.process_info.process.", notInside},
	{anyCall, ".data[].property.", notInside},
	{anyCall, ".data.list[].extra_data.extra_filter_conditions: is missing", notRepeated},
	{anyCall, ".data.list[].extra_data.config_version_ids_map: is missing", notRepeated},
	{anyCall, ".data[].expression", dotted}, {anyCall, ".data[].process_status: \"0\"", noState},
	{anyCall, ".data.job_info.bk_app_code", "the app is the one of this test"},
	{anyCall, ".data.job_tasks", "job_status lists all tasks, as the API document says"},

	{4, ".message", ownWords}, {57, ".message", ownWords},
	{26, ".data", "the help has words of its own: addresses in memory are not shown"},
	{34, ".data.list[].end_time", endKnown}, {38, ".data[].end_time", endKnown}, {52, ".data.list[].end_time", endKnown},
	{40, ".data.job_info.status", twoInOne}, {40, ".data.status_counter", twoInOne}, {41, ".data.status_counter", twoInOne},
	{41, ".data.list[].extra_data.config_instances[].sha256", "the paths in the observed contents were replaced after they were hashed"},
	{43, ".data", twoInOne}, {45, ".data", twoInOne}, {47, ".data", twoInOne}, {48, ".data", twoInOne}, {49, ".data", twoInOne}, {50, ".data", twoInOne},
	{52, ".data.list[].extra_data.related_config_info", "a task says which templates it used, also if the job named none"},
	{54, "", itsFault}, {66, "", itsFault}, {64, ".data.set[].bk_property_name", fromTheDoc}, {64, ".data.module[].bk_property_name", fromTheDoc},
	{64, ".data.host[].bk_property_name", fromTheDoc}, {65, ".data", fromTheDoc},
	{60, ".data[]", "sets are listed without attributes"},
}

// TestObservedCalls sends the calls that GSEKit was observed with, and compares the answers.
func TestObservedCalls(t *testing.T) {
	r := newReplayed(t)
	used := make([]bool, len(deviations))
	equal := 0
	for i, c := range r.Routes {
		answer := r.call(c.Method, c.Path, c.Body)
		same := true
		for _, d := range differences("", c.Answer, answer) {
			k := slices.IndexFunc(deviations, func(x deviation) bool {
				return (x.call == i || x.call < 0) && strings.HasPrefix(d, x.place)
			})
			if same = false; k < 0 {
				t.Errorf("call %d, %s %s: %s", i, c.Method, c.Path, d)
				continue
			}
			used[k] = true
		}
		if same {
			equal++
		}
	}
	for i, d := range deviations {
		if !used[i] {
			t.Errorf("call %d does not differ at %s any more: remove the deviation", d.call, d.place)
		}
	}
	if least := 49; equal < least {
		t.Errorf("%d of %d answers are equal, want at least %d", equal, len(r.Routes), least)
	}
}
