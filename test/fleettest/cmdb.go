//go:build linux

package fleettest

import (
	"encoding/json"
	"fmt"
	"io"
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
	case strings.Contains(r.URL.Path, "_process_instance/") || strings.Contains(r.URL.Path, "_proc_template/"):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Error(err)
		}
		if strings.Contains(string(body), "taken") {
			_ = json.NewEncoder(w).Encode(J{"result": false, "code": 1199014, "message": "the name is taken", "data": nil})
			return
		}
		c.writes = append(c.writes, strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "api/c/compapi/v2/cc/")+" "+string(body))
		if strings.Contains(r.URL.Path, "create") {
			data = []int{99}
		}
	default:
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
