//go:build linux

package fleettest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// CMDB answers the calls by which a server reads businesses from BlueKing CMDB, over HTTP as the real one does.
type CMDB struct {
	t    testing.TB
	URL  string
	mu   sync.Mutex
	rows []CMDBProcess
	sets []string // by their ids, which begin with 5

	writes []string // calls that change something, with their bodies
	reads  []string // calls for callers that read something, with their bodies

	// added are attributes that all sets, modules or hosts have, by object and name.
	added map[string]J
}

// SetAdded gives all sets, modules and hosts attributes that people have added, by object and name.
func (c *CMDB) SetAdded(added map[string]J) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.added = added
}

// Reads are the calls that list processes or attributes, with their bodies.
func (c *CMDB) Reads() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reads)
}

// Writes are the calls that wanted to change something, with their bodies.
func (c *CMDB) Writes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// CMDBProcess is a process with its place, as CMDB lists it.
type CMDBProcess struct {
	ID      int
	Alias   string
	Set     string // its name
	Env     any    // "3" if it is nil
	Module  int
	Service int
	IP      string
	Daemon  *Daemon // what it runs; nil: nothing can run
}

// StartCMDB starts a CMDB with processes of every business.
func StartCMDB(t testing.TB, rows ...CMDBProcess) *CMDB {
	t.Helper()
	c := &CMDB{t: t}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.URL = srv.URL
	c.Set(rows...)
	return c
}

// Set replaces the processes.
func (c *CMDB) Set(rows ...CMDBProcess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = slices.Clone(rows)
	slices.SortFunc(c.rows, func(a, b CMDBProcess) int { return a.ID - b.ID })
}

// Flags make a server read from this CMDB.
func (c *CMDB) Flags() []string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "cmdb.json")
	text := `{"bk_app_code":"gozzard","bk_app_secret":"of-cmdb","bk_username":"admin"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return []string{"--cmdb-url", c.URL, "--cmdb-credentials", file, "--cmdb-interval", "1h"}
}

// ServeHTTP answers a call.
func (c *CMDB) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := func(rows []J) J { return J{"count": len(rows), "info": rows} }

	var data any
	switch {
	case !strings.Contains(r.Header.Get("X-Bkapi-Authorization"), `"bk_app_secret":"of-cmdb"`):
		http.Error(w, "who are you", http.StatusForbidden)
		return
	case strings.Contains(r.URL.Path, "search_cloud_area"):
		data = list([]J{{"bk_cloud_id": 0, "bk_cloud_name": "default area"}})
	case strings.Contains(r.URL.Path, "find_module_batch"):
		data = []J{}
	case strings.Contains(r.URL.Path, "search_object_attribute"):
		data = c.properties(c.body(r))
	case strings.Contains(r.URL.Path, "find_biz_tree_brief_info"):
		data = c.tree()
	case strings.Contains(r.URL.Path, "_process_instance/") || strings.Contains(r.URL.Path, "_proc_template/"):
		body := c.body(r)
		if strings.Contains(body, "taken") {
			_ = json.NewEncoder(w).Encode(J{"result": false, "code": 1199014, "message": "the name is taken", "data": nil})
			return
		}
		c.writes = append(c.writes, strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "api/c/compapi/v2/cc/")+" "+body)
		if strings.Contains(r.URL.Path, "create") {
			data = []int{99}
		}
	default:
		c.reads = append(c.reads, "list_process_related_info "+c.body(r))
		rows := []J{}
		for i := range c.rows {
			if !slices.Contains(c.sets, c.rows[i].Set) {
				c.sets = append(c.sets, c.rows[i].Set)
			}
			rows = append(rows, c.rows[i].row(5+slices.Index(c.sets, c.rows[i].Set)))
		}
		data = list(rows)
	}

	// An error does not matter: a test that has ended does not read the answer.
	_ = json.NewEncoder(w).Encode(J{"result": true, "code": 0, "message": "", "data": data})
}

func (c *CMDB) body(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	return string(body)
}

// properties are the attributes that an object may have: its name, and those that people have added.
func (c *CMDB) properties(body string) []J {
	c.reads = append(c.reads, "search_object_attribute "+body)
	var asked struct {
		Object string `json:"bk_obj_id"`
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		c.t.Error(err)
	}
	row := func(id, name string, biz int) J {
		return J{"bk_property_id": id, "bk_property_name": name, "bk_property_group_name": "基础信息", "bk_property_type": "singlechar",
			"bk_obj_id": asked.Object, "bk_biz_id": biz}
	}
	rows := []J{row("bk_"+asked.Object+"_name", "名称", 0), row("bk_comment", "备注", 0)}
	for _, name := range slices.Sorted(maps.Keys(c.added[asked.Object])) {
		rows = append(rows, row(name, "自定义"+name, 2))
	}
	return rows
}

// tree is the business with what people have added.
func (c *CMDB) tree() []J {
	sets := []J{}
	for i := range c.rows {
		part := func(object string, id int) J {
			out := J{"bk_" + object + "_id": id}
			maps.Copy(out, c.added[object])
			return out
		}
		sets = append(sets, J{"set": part("set", 5+max(slices.Index(c.sets, c.rows[i].Set), 0)),
			"modules": []J{{"module": part("module", c.rows[i].Module), "hosts": []J{part("host", 3)}}}})
	}
	return sets
}

func (p *CMDBProcess) row(set int) J {
	env := p.Env
	if env == nil {
		env = "3"
	}
	process := J{"bk_process_id": p.ID, "bk_process_name": p.Alias, "bk_func_name": "none", "user": "root"}
	if d := p.Daemon; d != nil {
		process = J{"bk_process_id": p.ID, "bk_process_name": p.Alias, "bk_func_name": d.Name, "user": d.User,
			"work_path": d.Dir, "pid_file": d.PIDFile(), "start_cmd": "./start.sh", "stop_cmd": "./stop.sh",
			"restart_cmd": "./restart.sh", "reload_cmd": "./reload.sh", "face_stop_cmd": "./kill.sh", "timeout": 30,
			"bk_start_check_secs": 1, "proc_num": 1, "bk_func_id": "9",
			"bind_info": []J{{"ip": "127.0.0.1", "port": "80", "protocol": "1", "enable": true}}}
	}
	return J{
		"set":              J{"bk_set_id": set, "bk_set_name": p.Set, "bk_set_env": env},
		"module":           J{"bk_module_id": p.Module, "bk_module_name": fmt.Sprintf("module %d", p.Module)},
		"host":             J{"bk_host_id": 3, "bk_cloud_id": 0, "bk_host_innerip": p.IP},
		"service_instance": J{"id": p.Service, "name": fmt.Sprintf("%s_%d", p.IP, p.Service)},
		"process":          process,
	}
}
