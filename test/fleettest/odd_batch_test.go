//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// queryItem is one item of operate_proc_multi as GSEKit syncs the states of a business.
func queryItem(name string) ft.J {
	return ft.J{"meta": ft.J{"namespace": "GSEKIT_BIZ_2", "name": name, "labels": ft.J{"bk_process_id": 1}}, "op_type": 2,
		"hosts": []ft.J{ft.Host(1)}, "spec": ft.J{"identity": ft.J{"proc_name": "nginx", "setup_path": "/opt", "pid_path": "/opt/pid",
			"user": "root"}, "control": ft.J{"start_cmd": "./start.sh"}, "resource": ft.J{}, "monitor_policy": ft.J{"auto_type": 1}}}
}

// manyItems are 25 such items.
func manyItems() (items []ft.J) {
	for i := range 25 {
		items = append(items, queryItem(fmt.Sprintf("nginx_%d", i)))
	}
	return items
}

// TestD1OneOddItemOfMany: an item that cannot be accepted gets its own verdict, and the others run. What is wrong with the
// request as a whole still rejects it.
func TestD1OneOddItemOfMany(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	odd := manyItems()
	odd[4]["meta"].(ft.J)["name"] = "nginx:80_1" // the request by which it was found
	for key, e := range d.Await(d.Operate("operate_proc_multi", ft.J{"proc_operate_req": odd})) {
		if e.Code != 0 {
			t.Errorf("%s: %+v", key, e)
		}
	}

	long := strings.Repeat("x", 300)
	batch := func() []ft.J {
		items := manyItems()
		items[4]["meta"].(ft.J)["name"] = long
		items[5]["spec"].(ft.J)["identity"].(ft.J)["proc_name"] = ""
		items[6]["spec"].(ft.J)["monitor_policy"].(ft.J)["op_timeout"] = "20"
		items[7]["op_type"] = 0
		items[7]["spec"].(ft.J)["identity"].(ft.J)["pid_path"] = "relative"
		items[8]["meta"].(ft.J)["labels"] = ft.J{"a:b": "x"}
		items[9]["op_type"] = 1
		delete(items[9]["spec"].(ft.J)["identity"].(ft.J), "user")
		items[10]["meta"].(ft.J)["name"] = " web _1"
		return items
	}
	bad := map[string]string{
		"0:127.0.0.1:GSEKIT_BIZ_2:" + long: "proc_operate_req[4].meta.name: has 300 bytes, at most ",
		"0:127.0.0.1:GSEKIT_BIZ_2:nginx_5": "proc_operate_req[5].spec.identity.proc_name: required",
		"0:127.0.0.1:GSEKIT_BIZ_2:nginx_6": `proc_operate_req[6].spec.monitor_policy.op_timeout: must be a whole number, is the string "20"`,
		"0:127.0.0.1:GSEKIT_BIZ_2:nginx_7": `proc_operate_req[7].spec.identity.pid_path: "relative" is not a clean absolute path`,
		"0:127.0.0.1:GSEKIT_BIZ_2:nginx_8": "proc_operate_req[8].meta.labels.a:b: the label's name",
		"0:127.0.0.1:GSEKIT_BIZ_2: web _1": "proc_operate_req[10].meta.name: ",
	}

	for _, path := range []string{"/api/c/compapi/v2/gse/operate_proc_multi/", "/api/v2/proc/operate_proc_multi"} {
		ans, err := d.TryWith(path, ft.J{"proc_operate_req": batch()}, nil)
		if err != nil || ans.Status != http.StatusOK || !ans.Result {
			t.Fatalf("%s: %v %s", path, err, ans.Raw)
		}
		var task struct {
			ID string `json:"task_id"`
		}
		if err := json.Unmarshal(ans.Data, &task); err != nil {
			t.Fatal(err)
		}

		entries := d.Await(task.ID)
		if len(entries) != 25 {
			t.Fatalf("%d entries", len(entries))
		}
		for key, e := range entries {
			want, isBad := bad[key]
			switch {
			case key == "0:127.0.0.1:GSEKIT_BIZ_2:nginx_9": // a stop without an account: the host has a default
				if e.Code != 829 {
					t.Errorf("%s: %+v", key, e)
				}
			case !isBad && e.Code != 0:
				t.Errorf("%s: %+v", key, e)
			case isBad && (e.Code != 65535 || !strings.HasPrefix(e.Msg, want)):
				t.Errorf("%.60s: %+v, want %s", key, e, want)
			}
			checkQueryContent(t, key, e)
		}
	}

	// Somebody that wants to get a whole batch through with it: these stay faults of the request.
	for what, change := range map[string]func(it ft.J){
		"no hosts":          func(it ft.J) { delete(it, "hosts") },
		"no address":        func(it ft.J) { it["hosts"] = []ft.J{{"ip": "localhost", "bk_cloud_id": 0}} },
		"no name":           func(it ft.J) { delete(it["meta"].(ft.J), "name") },
		"no action":         func(it ft.J) { delete(it, "op_type") },
		"no definition":     func(it ft.J) { delete(it, "spec") },
		"control character": func(it ft.J) { it["meta"].(ft.J)["name"] = "a\x1b[2J" },
		"huge name":         func(it ft.J) { it["meta"].(ft.J)["name"] = strings.Repeat("y", 5000) },
	} {
		items := batch()
		change(items[3])
		if ans := d.Call("operate_proc_multi", ft.J{"proc_operate_req": items}); ans.Code != 1306406 ||
			!strings.Contains(ans.Message, "proc_operate_req[3].") || strings.Contains(ans.Message, "proc_operate_req[5]") {
			t.Errorf("%s: %s", what, ans.Raw)
		}
	}
}

// checkQueryContent checks that the content of a query, or of a control operation, has the form that clients parse.
func checkQueryContent(t *testing.T, key string, e ft.Entry) {
	t.Helper()
	var content struct {
		Process []struct {
			Instance []struct{ PID int }
		}
		Value []struct{ Result string }
	}
	if err := json.Unmarshal([]byte(e.Content), &content); err != nil {
		t.Errorf("%.60s: %v in %s", key, err, e.Content)
		return
	}
	query := len(content.Process) == 1 && len(content.Process[0].Instance) == 1
	control := len(content.Value) == 1 && content.Value[0].Result == e.Msg
	if !query && !control {
		t.Errorf("%.60s: %s", key, e.Content)
	}
}
