package cmdb_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/cmdb"
)

// standIn serves the calls of CMDB that are used, with their pages and limits. Tests can make it misbehave.
type standIn struct {
	*httptest.Server

	mu     sync.Mutex
	clouds []map[string]any
	rows   []map[string]any
	calls  []call
	more   map[string][]map[string]any // by object: attributes that it may have
	values map[string]map[string]any   // by object: attributes that all of its kind have
	most   int                         // calls at a time
	now    int

	// before is called before every call is served. If it writes an answer, that is the answer of the call.
	before func(c call, w http.ResponseWriter) bool
}

type call struct {
	name  string
	n     int // of this name, from 1
	start int
	limit int
	ids   []int
}

func newStandIn(t testing.TB) *standIn {
	s := &standIn{clouds: []map[string]any{{"bk_cloud_id": 0, "bk_cloud_name": "default area"},
		{"bk_cloud_id": 7, "bk_cloud_name": "unused"}}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *standIn) client(t testing.TB, change ...func(*cmdb.Options)) *cmdb.Client {
	t.Helper()
	o := cmdb.Options{URL: s.URL, App: "gozzard", Secret: "s3cret", User: "admin", Pause: time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	c, err := cmdb.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fill makes rows: ids from 1, four hosts, two sets of two modules.
func (s *standIn) fill(n int) {
	for id := 1; id <= n; id++ {
		s.rows = append(s.rows, row(id))
	}
}

func row(id int) map[string]any {
	module := id % 4
	return map[string]any{
		"set": map[string]any{"bk_set_id": 10 + module/2, "bk_set_name": fmt.Sprintf("set %d", module/2),
			"bk_set_env": "3"},
		"module": map[string]any{"bk_module_id": 20 + module,
			"bk_module_name": fmt.Sprintf("module %d", module)},
		"host": map[string]any{"bk_host_id": id, "bk_cloud_id": 0,
			"bk_host_innerip": fmt.Sprintf("10.0.%d.%d", id/200, id%200+1)},
		"service_instance": map[string]any{"id": 1000 + id, "name": fmt.Sprintf("service %d", id)},
		"process_template": map[string]any{"id": 26},
		"process": map[string]any{
			"bk_process_id": id, "bk_process_name": "java", "bk_func_name": "java", "proc_num": nil, "priority": "3",
			"user": "root", "work_path": "/data",
			"pid_file": "/data/java.pid", "start_cmd": "./start.sh", "timeout": 30, "bk_start_check_secs": nil,
			"bk_supplier_account": "0",
		},
	}
}

// with changes a part of a row.
func with(row map[string]any, part, key string, value any) map[string]any {
	row[part].(map[string]any)[key] = value
	return row
}

func (s *standIn) counted(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c.name == name {
			n++
		}
	}
	return n
}

func (s *standIn) serve(w http.ResponseWriter, r *http.Request) {
	var auth map[string]string
	err := json.Unmarshal([]byte(r.Header.Get("X-Bkapi-Authorization")), &auth)
	if err != nil || auth["bk_app_secret"] != "s3cret" || auth["bk_username"] != "admin" {
		answer(w, http.StatusOK, 1306000, "not authorized", nil)
		return
	}

	var body struct {
		Biz    int      `json:"bk_biz_id"`
		IDs    []int    `json:"bk_ids"`
		Fields []string `json:"fields"`
		Object string   `json:"bk_obj_id"`

		SetFields    []string `json:"set_fields"`
		ModuleFields []string `json:"module_fields"`
		HostFields   []string `json:"host_fields"`
		Page         struct {
			Start int    `json:"start"`
			Limit int    `json:"limit"`
			Sort  string `json:"sort"`
		} `json:"page"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, http.StatusOK, 1199000, err.Error(), nil)
		return
	}

	var name string
	if _, err := fmt.Sscanf(r.URL.Path, "/api/c/compapi/v2/cc/%s", &name); err != nil || name[len(name)-1] != '/' ||
		r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}

	c := call{name: name[:len(name)-1], start: body.Page.Start, limit: body.Page.Limit, ids: body.IDs}
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	c.n = 1
	for _, other := range s.calls {
		if other.name == c.name {
			c.n++
		}
	}

	s.calls = append(s.calls, c)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()

	if s.before != nil && s.before(c, w) {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	switch c.name {
	case "search_cloud_area":
		paged(w, s.clouds, c)
	case "list_process_related_info":
		if body.Biz != 2 {
			paged(w, nil, c)
			return
		}
		paged(w, s.rows, c)
	case "find_module_batch":
		if len(c.ids) > 500 || len(body.Fields) == 0 {
			answer(w, http.StatusOK, 1199006, "too many", nil)
			return
		}
		list := []map[string]any{}
		for _, id := range c.ids {
			list = append(list, map[string]any{"bk_module_id": id, "service_template_id": id * 10, "default": 0})
		}
		slices.Reverse(list)
		answer(w, http.StatusOK, 0, "success", list)
	case "search_object_attribute":
		answer(w, http.StatusOK, 0, "success", s.more[body.Object])
	case "find_biz_tree_brief_info":
		answer(w, http.StatusOK, 0, "success", s.tree(map[string][]string{"set": body.SetFields, "module": body.ModuleFields,
			"host": body.HostFields}))
	default:
		http.NotFound(w, r)
	}
}

// tree is the business with the attributes that were asked for.
func (s *standIn) tree(asked map[string][]string) []map[string]any {
	sets := []map[string]any{}
	for _, row := range s.rows {
		part := func(name string) map[string]any {
			out, has := map[string]any{}, row[name].(map[string]any)
			for _, field := range asked[name] {
				if v, ok := has[field]; ok {
					out[field] = v
				}
				if v, ok := s.values[name][field]; ok {
					out[field] = v
				}
			}
			return out
		}
		sets = append(sets, map[string]any{"set": part("set"), "modules": []map[string]any{{"module": part("module"),
			"hosts": []map[string]any{part("host")}}}})
	}
	return sets
}

func paged(w http.ResponseWriter, rows []map[string]any, c call) {
	if c.limit < 1 || c.limit > 500 {
		answer(w, http.StatusOK, 1199006, "limit", nil)
		return
	}
	from := min(c.start, len(rows))
	answer(w, http.StatusOK, 0, "success", map[string]any{"count": len(rows),
		"info": rows[from:min(from+c.limit, len(rows))]})
}

func answer(w http.ResponseWriter, status, code int, message string, data any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"result": code == 0, "code": code, "message": message, "data": data,
		"permission": nil, "request_id": "x"})
}
