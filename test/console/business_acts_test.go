//go:build linux

package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// cmdbFlags are the flags of a server that reads businesses from a CMDB when it is asked to. Each has one process.
func cmdbFlags(t *testing.T) []string {
	t.Helper()
	type rows []map[string]any
	cmdb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var data any
		switch {
		case strings.Contains(r.URL.Path, "search_cloud_area"):
			data = map[string]any{"count": 1, "info": rows{{"bk_cloud_id": 0, "bk_cloud_name": "default"}}}
		case strings.Contains(r.URL.Path, "search_object_attribute"), strings.Contains(r.URL.Path, "find_biz_tree_brief_info"):
			data = rows{}
		case strings.Contains(r.URL.Path, "find_module_batch"):
			data = rows{{"bk_module_id": 91, "service_template_id": 0}}
		default:
			data = map[string]any{"count": 1, "info": rows{{
				"set":              map[string]any{"bk_set_id": 90, "bk_set_name": "of-cmdb", "bk_set_env": "3"},
				"module":           map[string]any{"bk_module_id": 91, "bk_module_name": "web"},
				"host":             map[string]any{"bk_cloud_id": 0, "bk_host_innerip": "127.0.0.1"},
				"service_instance": map[string]any{"id": 92, "name": "127.0.0.1_web"},
				"process": map[string]any{"bk_process_id": 93, "bk_process_name": "java", "bk_func_name": "java",
					"user": "root"},
			}}}
		}

		// An error does not matter: the reader of the answer reports it.
		_ = json.NewEncoder(w).Encode(map[string]any{"result": true, "code": 0, "message": "", "data": data})
	}))
	t.Cleanup(cmdb.Close)

	cred := filepath.Join(t.TempDir(), "cmdb.json")
	text := `{"bk_app_code": "a", "bk_app_secret": "s", "bk_username": "u"}`
	if err := os.WriteFile(cred, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--cmdb-url", cmdb.URL, "--cmdb-credentials", cred}
}

// applyFile chooses a file with a document on the open page.
func applyFile(t *testing.T, p *console.Page, doc string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "business.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o644); err != nil {
		t.Fatal(err)
	}
	p.ChooseFile(file)
}

// pruneByFile: a file that drops a supervised instance is only applied with the choice to unregister it. The process of it
// keeps running.
func pruneByFile(t *testing.T, f *console.Fleet, p *console.Page, doc string) {
	t.Helper()
	pid := int(f.Process(t, "nginx_2").PID)
	applyFile(t, p, strings.Replace(doc, "proc_num: 2", "proc_num: 1", 1))
	p.WaitText("1 of the instances to be removed is supervised")
	p.Until("the button waits for the choice", `[...document.querySelectorAll("button")].some((b) =>
		b.innerText === "Apply this plan" && b.disabled)`)
	p.Accessible()
	p.Click("checkbox", "Unregister them too; they keep running without supervision")
	p.Click("button", "Apply this plan")
	p.WaitText("Applied: business 2 is at version 4.")
	p.Wait("link", "Removed processes are being unregistered")
	p.Accessible()

	eventually(t, "nginx_2 is unregistered, and nginx_1 is not", func() bool {
		list := definitions(t, f, "nginx_*")
		return len(list) == 1 && list[0].Name == "nginx_1"
	})
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the process of the unregistered instance: %v", err)
	}
	fleettest.KillPID(t, pid) // no agent would end it
}

// copyDocument: the copied document is that of the server.
func copyDocument(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	catchCopies(p)
	p.Click("button", "复制")
	p.Until("the copy", `window.copied`)
	var copied string
	p.Eval(`window.copied`, &copied)
	want, err := f.Client.Topology(t.Context(), 2)
	if err != nil || copied != string(want) {
		t.Errorf("copied %q, the server has %q: %v", copied, want, err)
	}
}

// takeOver: a file replaces a business from CMDB after a choice, and CMDB does not change it any more.
func takeOver(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	flush := func(source string, version int64) {
		t.Helper()
		answer, err := f.TryWith("/api/c/compapi/v2/gsekit/api/process/flush_process/", fleettest.J{"bk_biz_id": 9}, nil)
		if err != nil || !answer.Result {
			t.Fatalf("cannot read the business: %s %v", answer.Raw, err)
		}
		list, err := f.Client.Businesses(t.Context())
		if err != nil || list.Count != 1 || list.Businesses[0].Source != source || list.Businesses[0].Version != version {
			t.Fatalf("businesses %+v: %v", list, err)
		}
	}
	flush("cmdb", 1)

	p.Go("/console/businesses/9?tab=apply")
	p.Until("the document", `document.querySelector("textarea")?.value.includes("of-cmdb")`)
	applyFile(t, p, "biz: 9\nname: taken\nclouds: [{id: 0, name: default}]\n")
	p.WaitText("source: cmdb -> file")
	p.Click("button", "Apply this plan")
	p.WaitText("set take_over to replace it")
	flush("cmdb", 1)

	p.Click("checkbox", "Take the business over from BlueKing CMDB; CMDB does not change it any more")
	p.WaitNoText("set take_over to replace it")
	p.Accessible()
	p.Click("button", "Apply this plan")
	p.WaitText("Applied: business 9 is at version 2.")
	flush("file", 2)
	tree, err := f.Client.Tree(t.Context(), 9, "")
	if err != nil || tree.Name != "taken" || len(tree.Sets) != 0 {
		t.Errorf("tree %+v: %v", tree, err)
	}
}
