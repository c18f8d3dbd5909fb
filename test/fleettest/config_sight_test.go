//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// peers is a template over the tree of the business.
const peers = "% for h in cc.findall('.//Host'):\npeer ${h.attrib['InnerIP']}\n% endfor\nset ${this.cc_set.attrib['SetName']}\n"

// TestConfigOfSomeHosts: the file of an instance has the same bytes for every caller. A caller that may configure some hosts
// of a business gets the whole of it into stored templates, and by texts of its own nothing of hosts that it may not see.
func TestConfigOfSomeHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newConfigRig(t, 2, idleProcess)
	applyTopology(t, c.s.API, 3, "biz: 3\nname: other\nsets:\n  - {id: 6, name: o, env: 3, modules: [{id: 22, name: web, instances: ["+
		"{id: 9, name: s9, host: {ip: 127.0.0.9, cloud: 0}, processes: [{id: 49, name: nginx, user: nobody, "+idleProcess+"}]}]}]}\n")
	admin := &tenant{API: c.s.API, t: t}
	put := ft.J{"biz": 2, "name": "nginx", "file_name": "${bk_host_innerip}.conf", "folder": c.conf, "owner": "nobody", "group": "nogroup",
		"mode": "0640", "content": peers, "bind": ft.J{"processes": []int{41, 42}}}
	var made client.ConfigApplied
	if code, text := admin.native(http.MethodPut, "/api/v1/config/templates", put, &made); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	work := func(what string) ft.J { return ft.J{"work": what, "templates": []int64{made.Template}} }
	render := func(c *tenant, content any) (int, string, string) {
		body, out := ft.J{"biz": 2, "template": made.Template, "process": 41}, client.ConfigRendered{}
		if content != nil {
			body["content"] = content
		}
		code, text := c.native(http.MethodPost, "/api/v1/config/render", body, &out)
		return code, out.Content, text
	}

	// What an admin gets.
	want := "peer 127.0.0.1\npeer 127.0.0.2\nset s\n"
	job, states := admin.configWork(work("generate"))
	if fmt.Sprint(states) != "map[41:succeeded 42:succeeded]" {
		t.Fatalf("%+v", job.List)
	}
	digest := job.List[0].Files[0].SHA256

	// The same for a caller that may configure one host: rendered, generated and released.
	grant := func(role, net string, more ft.J) ft.J {
		g := ft.J{"role": role, "businesses": []int{2}, "nets": []string{net}}
		for k, v := range more {
			g[k] = v
		}
		return g
	}
	configures := ft.J{"accounts": []string{"nobody"}, "actions": []string{"configure"}}
	narrow := newTenant(t, c.s, "narrow", grant("operator", "127.0.0.1/32", configures))
	if code, got, text := render(narrow, nil); code != http.StatusOK || got != want {
		t.Errorf("render: %d %s", code, text)
	}
	job, states = narrow.configWork(work("generate"))
	if fmt.Sprint(states) != "map[41:succeeded]" || job.List[0].Files[0].SHA256 != digest {
		t.Fatalf("generated: %+v, an admin's has the digest %s", job.List, digest)
	}
	if job, states = narrow.configWork(work("release")); fmt.Sprint(states) != "map[41:succeeded]" {
		t.Fatalf("released: %+v", job.List)
	}
	c.has(1, want)
	if _, err := os.Stat(c.file(2)); err == nil {
		t.Error("the file of a host that the caller may not configure was written")
	}

	// A caller that sees the other host too, and may not configure it.
	half := newTenant(t, c.s, "half", grant("operator", "127.0.0.1/32", configures), grant("viewer", "127.0.0.2/32", nil))
	if job, states = half.configWork(work("generate")); states[41] != "succeeded" || !strings.HasPrefix(states[42], "failed") {
		t.Errorf("generated: %+v", job.List)
	}

	treeByOwnTexts(t, c, narrow, func(content any) (int, string) {
		code, _, text := render(narrow, content)
		return code, text
	})
	viewer := newTenant(t, c.s, "looks", grant("viewer", "127.0.0.1/32", nil))
	if code, _, text := render(viewer, nil); code != http.StatusBadRequest || strings.Contains(text, "127.0.0.2") || !strings.Contains(text, "only some hosts") {
		t.Errorf("render as a viewer: %d %s", code, text)
	}
}

// treeByOwnTexts has a caller that may configure one host try to read the others by texts of its own.
func treeByOwnTexts(t *testing.T, c *configRig, narrow *tenant, render func(content any) (int, string)) {
	t.Helper()
	ways := []string{peers, "${this.cc_module.findall('Host')[1].attrib['InnerIP']}", "${global_variables['cc'].findall('.//Host')}",
		"# Ginclude \"nginx\"\n", "% if len(cc.findall('.//Host')) > 1:\nyes\n% endif\n",
		"<%\ntry:\n    n = len(cc.findall('.//Host'))\nexcept Exception:\n    n = 0\n%>${n}"}
	for _, content := range ways {
		code, text := render(content)
		if code != http.StatusBadRequest || strings.Contains(text, "127.0.0.2") || !strings.Contains(text, "only some hosts") {
			t.Errorf("render of %q: %d %s", content, code, text)
		}
		kit, text := narrow.kitData(http.MethodPost, "config_version/preview/", ft.J{"content": content, "bk_process_id": 41}, nil)
		if kit == 0 || strings.Contains(text, "127.0.0.2") {
			t.Errorf("preview of %q: %s", content, text)
		}
	}
	if code, text := render("${bk_host_innerip} ${bk_set_name}"); code != http.StatusOK || !strings.Contains(text, "127.0.0.1 s") {
		t.Errorf("a text about its own host: %d %s", code, text)
	}

	// Stored texts it cannot change, and other instances it cannot render.
	put := ft.J{"biz": 2, "name": "nginx", "file_name": "x", "folder": c.conf, "owner": "nobody", "group": "nogroup", "content": peers}
	if code, text := narrow.native(http.MethodPut, "/api/v1/config/templates", put, nil); code != http.StatusForbidden {
		t.Errorf("apply: %d %s", code, text)
	}
	body := ft.J{"biz": 2, "work": "generate", "names": []string{"nginx"}, "modules": []int{21}}
	body["expression"] = "*.*.s2.*.*"
	if code, text := narrow.native(http.MethodPost, "/api/v1/config/jobs", body, nil); code < 400 && !strings.Contains(text, `"failed"`) {
		t.Errorf("generate for the other host: %d %s", code, text)
	}
}
