//go:build linux

package fleettest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTemplatesSeeAttributesOfCMDB: what people have added in CMDB is in templates of configuration files after a sync, and in the
// list of variables. CMDB is asked with the credentials of the server: always about the business of the request, and not at all
// for a caller that may not see it.
func TestTemplatesSeeAttributesOfCMDB(t *testing.T) {
	t.Parallel() // it mostly waits
	k := startKit(t, ft.CMDBProcess{ID: 41, Alias: "nginx", Set: "s", Module: 21, Service: 5, IP: "127.0.0.1"})
	k.cmdb.SetAdded(map[string]ft.J{"set": {"zone": "管 z1"}, "module": {"tier": 3}, "host": {"rack": nil}})
	k.flush()
	admin := &tenant{API: k.API, t: t}
	ask := func(by *tenant, method, path string, body any, want int, parts ...string) {
		t.Helper()
		var data json.RawMessage
		code, text := by.kitData(method, path, body, &data)
		if code != want {
			t.Errorf("%s: %s", path, text)
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not have %s: %s", path, part, text)
			}
		}
	}

	ask(admin, http.MethodPost, "config_version/preview/", ft.J{"bk_process_id": 41,
		"content": "${zone} ${tier} ${rack} ${this.cc_set.attrib['zone']} ${cc.xpath('//Host/@rack')}"}, 0, "管 z1 3 None 管 z1 ['None']")
	ask(admin, http.MethodGet, "cmdb/biz_global_variables/", nil, 0, `"自定义zone"`, `"自定义tier"`, `"自定义rack"`, `"SetName"`, `"名称(旧)"`, `"HELP"`)
	ask(admin, http.MethodGet, "cmdb/search_object_attribute/?bk_obj_id=host", nil, 0, `"自定义rack"`, `"bk_comment"`)

	// The caller names another business, and credentials that CMDB has nothing to do with.
	before := len(k.cmdb.Reads())
	ask(admin, http.MethodPost, "cmdb/list_process_related_info/", ft.J{"bk_biz_id": 3, "bk_app_secret": "mine",
		"set": ft.J{"bk_set_ids": []int{5}}, "page": ft.J{"start": 0, "limit": 10}}, 0, `"bk_process_name":"nginx"`)
	want := `list_process_related_info {"bk_biz_id":2,"page":{"limit":10,"start":0},"set":{"bk_set_ids":[5]}}`
	if got := k.cmdb.Reads()[before:]; len(got) != 1 || got[0] != want {
		t.Errorf("CMDB was sent %q, want %q", got, want)
	}

	stranger := newTenant(t, k.Server, "stranger", ft.J{"role": "viewer", "businesses": []int{3}})
	before = len(k.cmdb.Reads())
	for _, path := range []string{"cmdb/biz_global_variables/", "cmdb/search_object_attribute/?bk_obj_id=set"} {
		if _, text := stranger.kitData(http.MethodGet, path, nil, nil); strings.Contains(text, "zone") {
			t.Errorf("%s: a stranger sees %s", path, text)
		}
	}
	if _, text := stranger.kitData(http.MethodPost, "cmdb/list_process_related_info/", ft.J{"page": ft.J{"limit": 10}}, nil); strings.Contains(text, "nginx") {
		t.Errorf("a stranger sees %s", text)
	}
	if got := k.cmdb.Reads()[before:]; len(got) > 0 {
		t.Errorf("CMDB was sent %q for a stranger", got)
	}
}
