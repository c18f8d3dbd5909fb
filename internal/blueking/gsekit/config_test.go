package gsekit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/record"
)

// configCall is one request in a row of them, and its answer.
type configCall struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Answer json.RawMessage `json:"answer"`
}

// replay sends the requests of a golden file one after the other and compares the answers. With -update it writes them.
func replay(t *testing.T, h http.Handler, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var calls []configCall
	if err := json.Unmarshal(raw, &calls); err != nil {
		t.Fatal(err)
	}

	update := flag.Lookup("update").Value.String() == "true"
	for i := range calls {
		c := &calls[i]
		req := httptest.NewRequest(c.Method, "/api/2/"+c.Path, bytes.NewReader(c.Body))
		req.Header.Set("X-Bkapi-Authorization", head)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		answer := costTime.ReplaceAll(w.Body.Bytes(), []byte(`"cost_time":0`))
		var got map[string]any
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatalf("%d: %s %s: %v in %s", i, c.Method, c.Path, err, answer)
		}
		delete(got, "request_id")
		if update {
			if c.Answer, err = json.Marshal(got); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var want map[string]any
		if err := json.Unmarshal(c.Answer, &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d: %s %s %s (-want +got):\n%s", i, c.Method, c.Path, c.Body, d)
		}
	}

	if update {
		b, err := json.MarshalIndent(calls, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConfigCalls has the life of templates, versions and bindings, beside templates in the topology document.
func TestConfigCalls(t *testing.T) {
	replay(t, newRig(t), "testdata/config/templates.json")
}

// TestChoices has the calls by which GSEKit's pages let people choose a scope.
func TestChoices(t *testing.T) {
	r := newRig(t)
	replay(t, r, "testdata/config/choices.json")

	// The time in the answer is the present one.
	var user struct {
		Name  string  `json:"username"`
		Time  float64 `json:"timestamp"`
		Super bool    `json:"is_superuser"`
	}
	e := r.do(t, http.MethodGet, "/api/2/meta/get_user_info", "")
	if err := json.Unmarshal(e.Data, &user); err != nil || user.Name != "admin" || user.Time == 0 || !user.Super {
		t.Errorf("%v: %s", err, e.Data)
	}
}

// TestConfigRights: a caller without the right to configure reads and changes nothing; one without the business sees nothing.
func TestConfigRights(t *testing.T) {
	r := newRig(t)
	made := r.post(t, "/api/2/config_template", `{"template_name":"nginx","file_name":"a","abs_path":"/x","owner":"root",`+
		`"group":"root","filemode":"0644","line_separator":"LF"}`)
	var template struct {
		ID int64 `json:"config_template_id"`
	}
	if err := json.Unmarshal(made.Data, &template); err != nil || template.ID == 0 {
		t.Fatalf("%s, %v", made.Data, err)
	}
	at := fmt.Sprintf("/api/2/config_template/%d", template.ID)
	r.post(t, at+"/create_config_version", `{"description":"d","content":"x"}`)

	operator := []gozzard.Grant{{Role: gozzard.RoleOperator, Businesses: []int{2}, Hosts: gozzard.HostsAssigned, Accounts: []string{"*"}}}
	some := []gozzard.Grant{{Role: gozzard.RoleOperator, Businesses: []int{2}, Hosts: gozzard.HostsAssigned, Clouds: []int{1}, Accounts: []string{"*"},
		Actions: gozzard.Actions{gozzard.ActionConfigure}}}
	foreign := []gozzard.Grant{{Role: gozzard.RoleAdmin, Businesses: []int{3}, Hosts: gozzard.HostsAssigned, Accounts: []string{"*"}}}
	for name, grants := range map[string][]gozzard.Grant{"operator": operator, "some hosts": some, "foreign": foreign} {
		book, err := auth.New(auth.Config{Apps: []auth.App{{Code: "bk_sops", Secrets: []auth.Digest{auth.Hash("secret")},
			AssertsUsers: true, Grants: grants}}})
		if err != nil {
			t.Fatal(err)
		}
		c := &rig{Handler: gsekit.New(gsekit.Options{Plane: r.plane, Jobs: r.jobs, Configs: r.configs, Auth: book})}
		for path, body := range map[string]string{
			"POST /api/2/config_template": `{"template_name":"other","file_name":"a","abs_path":"/x","owner":"root","group":"root",` +
				`"filemode":"0644","line_separator":"LF"}`,
			"PATCH " + at: `{"owner":"me"}`, "DELETE " + at: ``,
			"POST " + at + "/create_config_version":    `{"description":"d","content":"x"}`,
			"PUT /api/2/config_version/1":              `{"description":"d","content":"x","is_draft":false,"is_active":true}`,
			"POST /api/2/config_version/1/clone":       `{"description":"d"}`,
			"POST " + at + "/bind_template_to_process": `{"process_object_list":[]}`,
			"POST /api/2/config_template/bind_process_to_template": `{"process_object_type":"INSTANCE","process_object_id":48,` +
				`"config_template_id_list":[]}`,
		} {
			method, path, _ := strings.Cut(path, " ")
			if e := c.do(t, method, path, body); *e.Code != 4100403 || !strings.Contains(*e.Message, "configure") {
				t.Errorf("%s: %s %s: %d %s", name, method, path, *e.Code, *e.Message)
			}
		}
		reads := map[string]int{at: 4101001, at + "/list_version": 4101001, at + "/list_binding_relationship": 4101001,
			"/api/2/config_version/1": 4101002}
		for path, hidden := range reads {
			want := 0
			if name == "foreign" {
				want = hidden
			}
			if e := c.do(t, http.MethodGet, path, ""); *e.Code != want {
				t.Errorf("%s: %s: %d %s, want %d", name, path, *e.Code, *e.Message, want)
			}
		}
	}
}

// TestConfigLimits: what is too large is rejected with what is allowed, and nothing of it is recorded.
func TestConfigLimits(t *testing.T) {
	r := newRig(t)
	field := func(name, value string) string {
		m := map[string]string{"template_name": "n", "file_name": "f", "abs_path": "/x", "owner": "o", "group": "g",
			"filemode": "0644", "line_separator": "LF"}
		m[name] = value
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, length := range map[string]int{"template_name": 513, "file_name": 513, "abs_path": 4097, "owner": 257, "group": 257,
		"filemode": 257, "line_separator": 257} {
		if e := r.post(t, "/api/2/config_template", field(name, strings.Repeat("x", length))); *e.Code != 4100001 ||
			!strings.Contains(*e.Message, "bytes") {
			t.Errorf("%s of %d bytes: %d %s", name, length, *e.Code, *e.Message)
		}
	}
	for _, name := range []string{"template_name", "abs_path", "owner"} {
		if e := r.post(t, "/api/2/config_template", field(name, "a\x00b")); *e.Code != 4100001 ||
			!strings.HasSuffix(*e.Message, "("+name+"): 1.不允许是用空字符串。 ") {
			t.Errorf("%s with NUL: %d %s", name, *e.Code, *e.Message)
		}
	}
	if e := r.post(t, "/api/99/config_template", field("owner", "o")); *e.Code == 0 {
		t.Errorf("a template of a business that does not exist: %s", e.Data)
	}
	if list, err := r.configs.Templates(t.Context(), everybody, 2); err != nil || len(list) != 4 {
		t.Fatalf("%d templates, %v: the document has 4", len(list), err)
	}

	// Contents.
	r.post(t, "/api/2/config_template", field("template_name", "taken"))
	list, err := r.configs.Templates(t.Context(), everybody, 2)
	if err != nil || len(list) != 5 {
		t.Fatalf("%d templates, %v", len(list), err)
	}
	at := fmt.Sprintf("/api/2/config_template/%d/create_config_version", list[4].ID)
	body := func(content string) string {
		b, err := json.Marshal(map[string]any{"description": "", "content": content, "is_active": true})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if e := r.post(t, at, body(strings.Repeat("x", record.MaxConfigContent+1))); *e.Code != 4100001 {
		t.Errorf("a large content: %d %s", *e.Code, *e.Message)
	}
	if e := r.post(t, at, body("a\x00")); *e.Code != 4100001 {
		t.Errorf("a content with NUL: %d %s", *e.Code, *e.Message)
	}
	if e := r.post(t, at, body(strings.Repeat("x", record.MaxConfigContent))); *e.Code != 0 {
		t.Errorf("the largest content: %d %s", *e.Code, *e.Message)
	}
}
