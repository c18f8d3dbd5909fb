package gsekit_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/topology"
)

const (
	invalid    = 4100001
	expression = 4111001
)

// ids posts to process_status and returns the ids in the answer, or the code.
func (r *rig) ids(t *testing.T, path, body string) (ids []int, count, code int, message string) {
	t.Helper()
	e := r.post(t, path, body)
	if e.status != 200 {
		t.Errorf("%s: HTTP %d", body, e.status)
	}

	var page struct {
		Count int
		List  []struct {
			ID int `json:"bk_process_id"`
		}
	}
	if err := json.Unmarshal(e.Data, &page); err != nil {
		t.Fatal(err)
	}

	for _, row := range page.List {
		ids = append(ids, row.ID)
	}

	return ids, page.Count, *e.Code, *e.Message
}

// TestFilters has a case for every row of the contract's table of filters (2.1). The processes are 46 47 48 49
// (formal) and 60 (test); see look for their states.
func TestFilters(t *testing.T) {
	formal := []int{46, 47, 48, 49}
	for _, c := range []struct {
		name, body string // beside page and pagesize
		want       []int
		code       int
		says       string
	}{
		{"scope wins", `"scope":{"bk_process_ids":[46]},"expression_scope":{"bk_set_env":3,"bk_process_id":"47"}`,
			[]int{46}, 0, ""},
		{"an open bracket beside a scope is harmless",
			`"scope":{},"expression_scope":{"bk_set_env":3,"bk_set_name":"[a"}`, formal, 0, ""},
		{"but not what is missing there", `"scope":{},"expression_scope":{"bk_set_name":"a"}`, nil, invalid,
			"Expression scope(expression_scope): Bk set env(bk_set_env): 1.该字段必填。 "},
		{"scope null", `"scope":null`, nil, invalid, "Scope(scope): 1.该字段不能为 null。 "},
		{"scope list", `"scope":[]`, nil, invalid, "Scope(scope): 1.应为对象，实际为 列表。 "},
		{"scope empty", `"scope":{}`, formal, 0, ""},
		{"neither", `"searches":[]`, nil, invalid, "scope, expression_scope required at least one."},
		{"neither, and more is wrong", `"searches":[""]`, nil, invalid,
			"Searches(searches): 0: [\"\\u8be5\\u5b57\\u6bb5\\u4e0d\\u80fd\\u4e3a\\u7a7a\\u767d\\u3002\"]"},

		{"env", `"scope":{"bk_set_env":"1"}`, []int{60}, 0, ""},
		{"env as a number", `"scope":{"bk_set_env":1}`, []int{60}, 0, ""},
		{"env of none", `"scope":{"bk_set_env":2}`, nil, 0, ""},
		{"env all", `"scope":{"bk_set_env":"0"}`, []int{46, 47, 48, 49, 60}, 0, ""},
		{"env all by expression", `"expression_scope":{"bk_set_env":0}`, []int{46, 47, 48, 49, 60}, 0, ""},
		{"env unknown", `"scope":{"bk_set_env":"4"}`, nil, invalid,
			"Scope(scope): Bk set env(bk_set_env): 1.“4” 不是合法选项。 "},
		{"env null", `"scope":{"bk_set_env":null}`, nil, invalid, "Bk set env(bk_set_env): 1.该字段不能为 null。 "},

		{"sets", `"scope":{"bk_set_ids":[6,999]}`, []int{49}, 0, ""},
		{"sets as strings", `"scope":{"bk_set_ids":["6"," 7 "]}`, []int{49}, 0, ""},
		{"modules", `"scope":{"bk_module_ids":[21,22]}`, []int{46, 47, 48}, 0, ""},
		{"services", `"scope":{"bk_service_ids":[6]}`, []int{47, 48}, 0, ""},
		{"processes", `"scope":{"bk_process_ids":[49,46.0]}`, []int{46, 49}, 0, ""},
		{"all together", `"scope":{"bk_set_ids":[5],"bk_module_ids":[22],"bk_service_ids":[6],"bk_process_ids":[46,48]}`, []int{48}, 0, ""},
		{"lists empty", `"scope":{"bk_set_ids":[],"bk_module_ids":[],"bk_service_ids":[],"bk_process_names":[],"bk_process_ids":[]}`, formal, 0, ""},
		{"list null", `"scope":{"bk_set_ids":null}`, nil, invalid, "Bk set ids(bk_set_ids): 1.该字段不能为 null。 "},
		{"list scalar", `"scope":{"bk_module_ids":5}`, nil, invalid, "Bk module ids(bk_module_ids): 1.应为列表，实际为 5。 "},
		{"list of words", `"scope":{"bk_set_ids":[5,"x"]}`, nil, invalid,
			`Scope(scope): Bk set ids(bk_set_ids): 1: ["\u5e94\u4e3a\u6574\u6570\uff0c\u5b9e\u9645\u4e3a \"x\"\u3002"]`},
		{"id as a fraction", `"scope":{"bk_set_ids":[5.5]}`, nil, invalid, "Bk set ids(bk_set_ids): 0: "},
		{"id true", `"scope":{"bk_set_ids":[true]}`, nil, invalid, "Bk set ids(bk_set_ids): 0: "},
		{"id beyond", `"scope":{"bk_set_ids":[100000000000000000000]}`, nil, invalid, "Bk set ids(bk_set_ids): 0: "},
		{"names", `"scope":{"bk_process_names":["java","nginx"]}`, []int{48, 49}, 0, ""},
		{"names are exact", `"scope":{"bk_process_names":["jav","Java","java*"]}`, nil, 0, ""},
		{"names as numbers", `"scope":{"bk_process_names":[7]}`, nil, 0, ""},

		{"clouds", `"scope":{},"bk_cloud_ids":[1]`, []int{49}, 0, ""},
		{"clouds as strings", `"scope":{},"bk_cloud_ids":["1"]`, []int{49}, 0, ""},
		{"clouds empty", `"scope":{},"bk_cloud_ids":[]`, formal, 0, ""},
		{"clouds of words", `"scope":{},"bk_cloud_ids":["x"]`, nil, invalid, "Bk cloud ids(bk_cloud_ids): 0: "},

		{"addresses", `"scope":{},"bk_host_innerips":["10.0.0.2","10.0.0.9"]`, []int{47, 48}, 0, ""},
		{"a part of an address", `"scope":{},"bk_host_innerips":["10.0.0"]`, nil, 0, ""},
		{"addresses of six", `"scope":{"bk_set_env":0},"bk_host_innerips":["2001:db8::1"]`, nil, 0, ""},
		{"addresses empty", `"scope":{},"bk_host_innerips":[]`, formal, 0, ""},

		{"status", `"scope":{},"process_status":1`, []int{46}, 0, ""},
		{"status zero", `"scope":{},"process_status":0`, []int{47}, 0, ""},
		{"status as a string", `"scope":{},"process_status":"2"`, []int{47, 48, 49}, 0, ""},
		{"status 2.0", `"scope":{},"process_status":2.0`, []int{47, 48, 49}, 0, ""},
		{"status of none", `"scope":{},"process_status":9`, nil, 0, ""},
		{"status beyond a byte", `"scope":{},"process_status":257`, nil, 0, ""},
		{"status negative", `"scope":{},"process_status":-1`, nil, 0, ""},
		{"status true", `"scope":{},"process_status":true`, nil, invalid,
			"Process status(process_status): 1.应为整数，实际为 true。 "},
		{"status null", `"scope":{},"process_status":null`, nil, invalid,
			"Process status(process_status): 1.该字段不能为 null。 "},

		{"hosted", `"scope":{},"is_auto":true`, []int{46, 49}, 0, ""},
		{"not hosted", `"scope":{},"is_auto":false`, []int{47, 48}, 0, ""},
		{"hosted as a string", `"scope":{},"is_auto":"true"`, []int{46, 49}, 0, ""},
		{"hosted as a number", `"scope":{},"is_auto":0`, []int{47, 48}, 0, ""},
		{"hosted of another kind", `"scope":{},"is_auto":"maybe"`, nil, invalid,
			`Is auto(is_auto): 1.应为布尔值，实际为 "maybe"。 `},

		{"status list", `"scope":{},"process_status_list":[0,"1"]`, []int{46, 47}, 0, ""},
		{"status and list", `"scope":{},"process_status":1,"process_status_list":[1,2]`, []int{46}, 0, ""},
		{"status not in list", `"scope":{},"process_status":0,"process_status_list":[1]`, nil, 0, ""},
		{"stopped includes never registered", `"scope":{},"process_status":0,"process_status_list":[1,2]`, []int{47}, 0, ""},
		{"hosted list", `"scope":{},"is_auto_list":[true]`, []int{46, 49}, 0, ""},
		{"hosted and list", `"scope":{},"is_auto":false,"is_auto_list":[true,false]`, []int{47, 48}, 0, ""},
		{"hosted not in list", `"scope":{},"is_auto":false,"is_auto_list":[true]`, nil, 0, ""},
		{"lists empty", `"scope":{},"process_status_list":[],"is_auto_list":[]`, formal, 0, ""},

		{"search address", `"scope":{},"searches":["0.0.2"]`, []int{47, 48}, 0, ""},
		{"search cloud", `"scope":{},"searches":["华南"]`, []int{49}, 0, ""},
		{"searches hold together", `"scope":{},"searches":["10.0","华南"]`, []int{49}, 0, ""},
		{"search is literal", `"scope":{},"searches":["_1%"]`, []int{49}, 0, ""},
		{"search percent", `"scope":{},"searches":["%0"]`, nil, 0, ""},
		{"search is case-sensitive", `"scope":{},"searches":["Default"]`, nil, 0, ""},
		{"search no other field", `"scope":{},"searches":["java"]`, nil, 0, ""},
		{"search of six by cloud only", `"scope":{"bk_set_env":1},"searches":["default"]`, []int{60}, 0, ""},
		{"search six", `"scope":{"bk_set_env":1},"searches":["2001"]`, nil, 0, ""},
		{"search empty word", `"scope":{},"searches":[""]`, nil, invalid, "Searches(searches): 0: "},

		{"ordering", `"scope":{},"ordering":"-bk_process_id"`, []int{49, 48, 47, 46}, 0, ""},
		{"ordering by two", `"scope":{},"ordering":"-bk_set_id,bk_process_name"`, []int{49, 46, 47, 48}, 0, ""},
		{"ordering by module", `"scope":{},"ordering":"-bk_module_id"`, []int{49, 47, 48, 46}, 0, ""},
		{"ordering by address", `"scope":{},"ordering":"-bk_host_innerip"`, []int{46, 49, 47, 48}, 0, ""},
		{"ordering unknown", `"scope":{},"ordering":"nope,-bk_process_id"`, []int{49, 48, 47, 46}, 0, ""},
		{"ordering id", `"scope":{},"ordering":"id"`, nil, invalid, "Ordering(ordering): 1.不支持按 id 排序"},
		{"ordering empty", `"scope":{},"ordering":""`, nil, invalid, "Ordering(ordering): 1.该字段不能为空白。 "},
		{"ordering null", `"scope":{},"ordering":null`, nil, invalid, "Ordering(ordering): 1.该字段不能为 null。 "},
		{"ordering number", `"scope":{},"ordering":5`, nil, invalid, "Ordering(ordering): 1.应为字符串，实际为 5。 "},

		{"fields empty", `"scope":{},"fields":[]`, formal, 0, ""},
		{"fields of another kind", `"scope":{},"fields":"bk_process_id"`, nil, invalid, "Fields(fields): 1.应为列表"},
		{"unknown keys", `"scope":{"x":1},"nope":[{}]`, formal, 0, ""},

		// Expressions, field by field (1.2 to 1.4).
		{"expression", `"expression_scope":{"bk_set_env":"3","bk_set_name":"[管控平台, PaaS平台]","bk_process_id":"4[6, 8, 9]"}`, []int{46, 48, 49}, 0, ""},
		{"blanks are all", `"expression_scope":{"bk_set_env":"3","bk_set_name":"","bk_module_name":"  "}`, formal, 0,
			""},
		{"blanks around belong to it", `"expression_scope":{"bk_set_env":"3","bk_process_name":" java "}`, nil, 0, ""},
		{"numbers", `"expression_scope":{"bk_set_env":"3","bk_process_id":46}`, []int{46}, 0, ""},
		{"null", `"expression_scope":{"bk_set_env":"3","bk_process_id":null}`, nil, invalid,
			"Expression scope(expression_scope): Bk process id(bk_process_id): 1.该字段不能为 null。 "},
		{"list", `"expression_scope":{"bk_set_env":"3","bk_process_id":[46]}`, nil, invalid,
			"Bk process id(bk_process_id): 1.应为字符串，实际为 列表。 "},
		{"object", `"expression_scope":{"bk_set_env":"3","bk_set_name":{}}`, nil, invalid,
			"Bk set name(bk_set_name): 1.应为字符串，实际为 对象。 "},
		{"env required", `"expression_scope":{}`, nil, invalid,
			"Expression scope(expression_scope): Bk set env(bk_set_env): 1.该字段必填。 "},
		{"nothing fits", `"expression_scope":{"bk_set_env":"3","bk_process_name":"x*"}`, nil, 0, ""},
		{"service names have dots", `"expression_scope":{"bk_set_env":"3","service_instance_name":"127.0.0.1_*"}`,
			[]int{46}, 0, ""},
		{"the page of the interface", `"expression_scope":{"bk_set_env":"3","bk_process_id":"[46,48]"}`,
			[]int{46, 48}, 0, ""},
		{"slice", `"expression_scope":{"bk_set_env":"3","bk_process_id":"[0:2]"}`, []int{46, 47}, 0, ""},
		{"slice from the end", `"expression_scope":{"bk_set_env":"3","bk_process_id":"[-1:]"}`, []int{49}, 0, ""},
		{"slice before other filters",
			`"expression_scope":{"bk_set_env":"3","bk_process_id":"[:2]"},"process_status":2`, []int{47}, 0, ""},
		{"open bracket", `"expression_scope":{"bk_set_env":"3","bk_process_id":"4[6"}`, nil, expression,
			"bk_process_id 第 2 个字符: [6"},
		{"a bracket does not leak",
			`"expression_scope":{"bk_set_env":"3","bk_set_name":"[管控平台","bk_module_name":"gse_agent]"}`, nil,
			expression, "bk_set_name 第 1 个字符: [管控平台"},
		{"two open brackets", `"expression_scope":{"bk_set_env":"3","bk_set_name":"[a","bk_module_name":"b[c"}`, nil,
			expression, "bk_module_name 第 2 个字符: [c"},
		{"reversed class", `"expression_scope":{"bk_set_env":"3","bk_process_id":"4[!9-1]"}`, nil, expression,
			"bk_process_id 第 "},
		{"open bracket and more", `"expression_scope":{"bk_set_env":"3","bk_set_name":"[a"},"is_auto":null`, nil,
			invalid, "Is auto(is_auto): 1.该字段不能为 null。 表达式语法错误"},
		{"too long", `"expression_scope":{"bk_set_env":"3","bk_set_name":"` + strings.Repeat("*", 2000) + `"}`, nil,
			expression, "bk_set_name"},
		{"hard", `"expression_scope":{"bk_set_env":"3","bk_set_name":"` + strings.Repeat("a*", 500) + `b"}`, nil, 0,
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, count, code, message := newRig(t).ids(t, "/api/2/process/process_status/",
				`{"page":1,"pagesize":1000,`+c.body+`}`)
			if code != c.code || !strings.Contains(message, c.says) {
				t.Fatalf("%d %s\nwant %d %s", code, message, c.code, c.says)
			}
			if !slices.Equal(got, c.want) || count != len(c.want) {
				t.Errorf("%v of %d, want %v", got, count, c.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		query, body string
		want        []int
		code        int
		says        string
	}{
		{"", `"page":1,"pagesize":3`, []int{46, 47, 48}, 0, ""},
		{"", `"page":"2","pagesize":"3"`, []int{49}, 0, ""},
		{"", `"page":3,"pagesize":3`, nil, 0, ""},
		{"", `"page":2147483647,"pagesize":1000`, nil, 0, ""},
		{"", `"page":0,"pagesize":3`, nil, invalid, "Page(page): 1.应在 1 至 2147483647 之间，实际为 0。 "},
		{"", `"page":-1,"pagesize":3`, nil, invalid, "Page(page): "},
		{"", `"page":1,"pagesize":1001`, nil, invalid, "Pagesize(pagesize): 1.应在 1 至 1000 之间，实际为 1001。 "},
		{"", `"page":1,"pagesize":0`, nil, invalid, "Pagesize(pagesize): "},
		{"", `"page":1,"pagesize":-5`, nil, invalid, "Pagesize(pagesize): "},
		{"", `"page":null,"pagesize":1.5`, nil, invalid,
			"Page(page): 1.该字段不能为 null。 Pagesize(pagesize): 1.应为整数，实际为 1.5。 "},
		{"", `"x":1`, nil, invalid, "Page(page): 1.该字段必填。 Pagesize(pagesize): 1.该字段必填。 "},
		{"?page=2", `"page":1,"pagesize":3`, []int{49}, 0, ""},
		{"?page=1&pagesize=1&ordering=-bk_process_id", `"page":9,"pagesize":9,"ordering":"bk_process_id"`, []int{49},
			0, ""},
		{"?page=1&pagesize=2", `"scope":{}`, []int{46, 47}, 0, ""},
		{"?page=x", `"page":1,"pagesize":3`, nil, invalid, `Page(page): 1.应为整数，实际为 "x"。 `},
		{"?page=", `"page":1,"pagesize":4`, []int{46, 47, 48, 49}, 0, ""},
		{"?scope=1", `"page":1,"pagesize":1`, []int{46}, 0, ""},
		{"?page=1&page=2", `"page":1,"pagesize":1`, nil, invalid, "page: given 2 times"},
	} {
		body := `{"scope":{},` + c.body + `}`
		if strings.Contains(c.body, "scope") {
			body = `{` + c.body + `}`
		}
		got, count, code, message := newRig(t).ids(t, "/api/2/process/process_status/"+c.query, body)
		if code != c.code || !strings.Contains(message, c.says) || !slices.Equal(got, c.want) || code == 0 &&
			count != 4 {
			t.Errorf("%s %s: %v of %d, %d %s; want %v %d %s", c.query, c.body, got, count, code, message, c.want,
				c.code, c.says)
		}
	}
}

// TestRows: every row has every field with its type, even if the process has no value for it.
func TestRows(t *testing.T) {
	r := newRig(t)
	e := r.post(t, "/api/2/process/process_status/", `{"scope":{"bk_set_env":"0"},"page":1,"pagesize":10}`)
	var page struct{ List []map[string]any }
	if err := json.Unmarshal(e.Data, &page); err != nil {
		t.Fatal(err)
	}

	kinds := map[string]string{
		"id": "float64", "bk_biz_id": "float64", "expression": "string", "bk_host_innerip": "string or nil",
		"bk_host_innerip_v6": "string or nil",
		"bk_agent_id":        "string or nil", "bk_cloud_id": "float64", "bk_set_env": "string", "bk_set_id": "float64",
		"bk_module_id":        "float64",
		"service_template_id": "float64 or nil", "service_instance_id": "float64", "bk_process_name": "string",
		"bk_process_id":       "float64",
		"process_template_id": "float64", "process_status": "float64", "is_auto": "bool", "bk_set_name": "string",
		"bk_module_name":  "string",
		"bk_service_name": "string", "bk_cloud_name": "string or nil", "config_templates": "[]interface {}",
		"proc_inst_infos": "[]interface {}",
		"report_time":     "float64", "stale": "bool",
	}
	for _, row := range page.List {
		for name, kind := range kinds {
			v, ok := row[name]
			got := fmt.Sprintf("%T", v)
			if !ok || got != kind && !(v == nil && strings.HasSuffix(kind, " or nil")) && got+" or nil" != kind {
				t.Errorf("%v: %s is %s, want %s", row["id"], name, got, kind)
			}
		}
		if len(row) != len(kinds) || row["id"] != row["bk_process_id"] {
			t.Errorf("%v", row)
		}
	}

	six := page.List[len(page.List)-1]
	if six["bk_host_innerip"] != nil || six["bk_host_innerip_v6"] != "2001:db8::1" || six["stale"] != true {
		t.Errorf("%v", six)
	}
}

// BenchmarkPage is a page of 1,000 rows, without the index behind it.
func BenchmarkPage(b *testing.B) {
	r := newRig(b)
	_, rows := r.plane.FindProcesses(everybody, topology.Query{Biz: 2, Processes: []int{46}, Limit: 1})
	full := &fullPlane{plane: r.plane, rows: slices.Repeat(rows, 1000)}
	door := gsekit.New(gsekit.Options{Plane: full, Jobs: r.jobs, Configs: r.configs, Auth: book(b)})
	b.ReportAllocs()

	for b.Loop() {
		req := httptest.NewRequest("POST", "/api/2/process/process_status",
			strings.NewReader(`{"scope":{},"page":1,"pagesize":1000}`))
		req.Header.Set("X-Bkapi-Authorization", head)
		w := httptest.NewRecorder()
		door.ServeHTTP(w, req)
		b.SetBytes(int64(w.Body.Len()))
	}
}

type fullPlane struct {
	*plane
	rows []topology.Row
}

func (p *fullPlane) FindProcesses(gozzard.Caller, topology.Query) (int, []topology.Row) {
	return len(p.rows), p.rows
}
