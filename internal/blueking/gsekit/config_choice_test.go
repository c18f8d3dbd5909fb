package gsekit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// TestChosenProcesses has tasks only for processes that are bound to all named templates and have the named versions.
func TestChosenProcesses(t *testing.T) {
	g := newGenerated(t, "v1\n")
	second := g.add("config_template", `{"template_name":"more","file_name":"more","abs_path":"/data","owner":"root","group":"root",`+
		`"filemode":"0644","line_separator":"LF"}`, "config_template_id")
	g.data(http.MethodPost, fmt.Sprintf("config_template/%d/bind_template_to_process", second),
		`{"process_object_list":[{"process_object_type":"INSTANCE","process_object_id":62}]}`)

	// check creates a job and compares the processes of its tasks.
	check := func(what, extra string, want ...int) {
		t.Helper()
		_, tasks := g.run("job", `{"job_object":"configfile","job_action":"diff","scope":{"bk_set_env":"3"},"extra_data":{`+extra+`}}`)
		var got []int
		for _, x := range tasks {
			if !slices.Contains(got, x.Process) {
				got = append(got, x.Process)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: tasks for %v, want %v", what, got, want)
		}
	}
	versions := func(list string) string {
		return fmt.Sprintf(`"config_template_ids":[%d],"config_version_ids_map":[{"config_template_id":%d,"config_version_ids":[%s]}]`,
			g.template, g.template, list)
	}
	check("all", ``, 61, 62, 63)
	check("one", fmt.Sprintf(`"config_template_ids":[%d]`, g.template), 61, 62)
	check("both", fmt.Sprintf(`"config_template_ids":[%d,%d]`, g.template, second), 62)
	check("unknown", `"config_template_ids":[999]`)
	check("no versions named", versions(""), 61, 62)
	check("never rendered", versions(`"-"`))
	check("versions of a template that is not named",
		fmt.Sprintf(`"config_version_ids_map":[{"config_template_id":%d,"config_version_ids":[77]}]`, g.template), 61, 62, 63)

	// Render one of them.
	g.run("config_template/generate_config", fmt.Sprintf(`{"scope":{"bk_set_env":"3","bk_process_ids":[61]},"config_template_id":%d}`, g.template))
	check("rendered and never released", versions(`"-"`), 61)
	check("released", versions(fmt.Sprint(g.version)))
	check("either", versions(fmt.Sprintf(`"-",%d`, g.version)), 61)
	if e := g.do(t, http.MethodPost, "/api/2/job", `{"job_object":"configfile","job_action":"diff","scope":{"bk_set_env":"3"},"extra_data":{`+
		versions(`"x"`)+`}}`); *e.Code != 4100001 {
		t.Errorf("a wrong version is answered with %d", *e.Code)
	}
}

// TestQueryTexts reads a value of a query as text, also if it begins like JSON.
func TestQueryTexts(t *testing.T) {
	g := newGenerated(t, "x")
	g.add("config_template", `{"template_name":"[a]","file_name":"{b","abs_path":"/data","owner":"root","group":"root",`+
		`"filemode":"0644","line_separator":"LF"}`, "config_template_id")
	for search, want := range map[string]int{"[a]": 1, "[": 1, "{b": 1, "[1,2]": 0, `["a"]`: 0, "{}": 0, "we": 1} {
		var page struct{ Count int }
		if err := json.Unmarshal(g.data(http.MethodGet, "config_template/?search="+url.QueryEscape(search), ""), &page); err != nil {
			t.Fatal(err)
		}
		if page.Count != want {
			t.Errorf("search %q finds %d templates, want %d", search, page.Count, want)
		}
	}

	// Expressions have brackets too.
	for expression, want := range map[string]int{"[a-z]*": 1, "*": 1, "[]": 0, "[1,2]": 0} {
		var sets []any
		if err := json.Unmarshal(g.data(http.MethodGet, "cmdb/set_list/?expression="+url.QueryEscape(expression), ""), &sets); err != nil {
			t.Fatal(err)
		}
		if len(sets) != want {
			t.Errorf("expression %q finds %d sets, want %d", expression, len(sets), want)
		}
	}

	// A list in a query is still one where a list is wanted.
	id := g.add("config_template/generate_config", `{"scope":{"bk_set_env":"3"}}`, "job_id")
	for list, want := range map[string]int{"[999]": 0, "[1": 4100001, "1": 4100001} {
		e := g.do(t, http.MethodGet, fmt.Sprintf("/api/c/compapi/v2/gsekit/api/job/job_status/?bk_biz_id=2&job_id=%d&job_task_id_list=%s", id,
			url.QueryEscape(list)), "")
		if *e.Code != want {
			t.Errorf("the list %s is answered with %d %s", list, *e.Code, *e.Message)
		}
	}
}
