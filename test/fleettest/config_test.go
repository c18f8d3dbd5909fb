//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

const configBusiness = `biz: 2
name: 蓝鲸
sets:
  - {id: 5, name: 管控平台, env: 3, modules: [{id: 21, name: web, instances: [
      {id: 5, name: one, host: {ip: 127.0.0.1, cloud: 0}, processes: [{id: 46, name: nginx, user: root, work_path: /data,
        pid_file: /run/nginx.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh}]}]}]}
`

// kitData calls a route of the GSEKit app and reads the data of its answer. It returns the code.
func (c *tenant) kitData(method, path string, body, out any) (int, string) {
	c.t.Helper()
	var ans struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	_, text := c.native(method, "/o/bk_gsekit/api/2/"+path, body, &ans)
	if out != nil && ans.Code == 0 {
		if err := json.Unmarshal(ans.Data, out); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return ans.Code, text
}

// TestConfigTemplates: templates of configuration files live in the record of the server. What one app makes, another one of the
// business sees; only one with the right to configure changes it. All of it is in the audit, and survives a restart.
func TestConfigTemplates(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	applyTopology(t, s.API, 2, configBusiness)
	grant := func(more ft.J) ft.J {
		g := ft.J{"role": "operator", "businesses": []int{2}, "accounts": []string{"*"}}
		for k, v := range more {
			g[k] = v
		}
		return g
	}
	maker := newTenant(t, s, "maker", grant(nil), grant(ft.J{"actions": []string{"configure"}}))
	operator := newTenant(t, s, "operator", grant(nil))

	// Make a template with a version, and bind it.
	var template struct {
		ID int64 `json:"config_template_id"`
	}
	fields := ft.J{"template_name": "nginx", "file_name": "nginx.conf", "abs_path": "/etc/nginx/", "owner": "root", "group": "root",
		"filemode": "0644", "line_separator": "LF"}
	if code, text := operator.kitData(http.MethodPost, "config_template/", fields, nil); code != 4100403 {
		t.Errorf("an operator made a template: %s", text)
	}
	if code, text := maker.kitData(http.MethodPost, "config_template/", fields, &template); code != 0 || template.ID == 0 {
		t.Fatalf("%d: %s", code, text)
	}
	at := fmt.Sprintf("config_template/%d/", template.ID)
	for path, body := range map[string]ft.J{
		at + "create_config_version/":    {"description": "first", "content": "listen 80;\n", "is_active": true},
		at + "bind_template_to_process/": {"process_object_list": []ft.J{{"process_object_type": "INSTANCE", "process_object_id": 46}}},
	} {
		if code, text := operator.kitData(http.MethodPost, path, body, nil); code != 4100403 {
			t.Errorf("an operator: %s: %s", path, text)
		}
		if code, text := maker.kitData(http.MethodPost, path, body, nil); code != 0 {
			t.Errorf("%s: %s", path, text)
		}
	}

	// Everybody of the business sees it, also after a restart.
	check := func(when string) {
		t.Helper()
		_, text := operator.kitData(http.MethodGet, at, nil, nil)
		for _, part := range []string{`"abs_path":"/etc/nginx"`, `"has_version":true`, `"INSTANCE":1`, `"created_by":"maker"`,
			`"edit_config_template":false`} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %s in %s", when, part, text)
			}
		}
		_, text = operator.kitData(http.MethodPost, "process/process_status/", ft.J{"page": 1, "pagesize": 10, "scope": ft.J{}}, nil)
		if !strings.Contains(text, `"template_name":"nginx"`) {
			t.Errorf("%s: the process does not name its template: %s", when, text)
		}
	}
	check("at first")
	s.Kill(syscall.SIGTERM)
	s.Again()
	s.AwaitReady()
	check("after a restart")

	_, text := (&tenant{API: s.API, t: t}).native(http.MethodGet, "/api/v1/audit?action=config", nil, nil)
	for _, act := range []string{"config:template:add", "config:version:add", "config:bind"} {
		if !strings.Contains(text, act) {
			t.Errorf("the audit has no %s: %.2000s", act, text)
		}
	}
}
