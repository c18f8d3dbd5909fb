//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// simHost is a host of `gozzard sim`.
func simHost(n int) ft.J {
	return ft.J{"ip": "127.1.1." + strconv.Itoa(n), "bk_cloud_id": 0}
}

// definition is a definition that BlueKing's API accepts.
func definition(name string) ft.J {
	return ft.J{"identity": ft.J{"proc_name": name, "setup_path": "/opt", "pid_path": "/opt/" + name + ".pid", "user": "root"},
		"control": ft.J{"start_cmd": "./start", "stop_cmd": "./stop", "restart_cmd": "./restart", "reload_cmd": "./reload",
			"kill_cmd": "./kill"}}
}

// native operates n processes of a host through our own API.
func (c *appCaller) native(action string, n, confirm int) (int, string) {
	body := ft.J{"namespace": "gse", "names": names("p", n), "hosts": []ft.J{{"cloud": 0, "ip": "127.1.1.1"}}}
	method, path := http.MethodDelete, "/api/v1/processes"
	if action != "unregister" {
		method, path = http.MethodPost, "/api/v1/operations"
		body["action"] = action
	}
	if confirm > 0 {
		body["confirm"] = confirm
	}
	return c.send(method, path, body)
}

// gse operates n processes of a host through BlueKing's API.
func (c *appCaller) gse(op, n int) (int, string) {
	var items []ft.J
	for _, name := range names("p", n) {
		items = append(items, ft.J{"meta": ft.J{"namespace": "gse", "name": name}, "op_type": op,
			"hosts": []ft.J{simHost(1)}, "spec": definition(name)})
	}
	return c.esb("operate_proc_multi", ft.J{"proc_operate_req": items})
}

// TestTD12QuotaOverAllDoors: what ends, interrupts or leaves processes has one quota per hour, for an app and for a user.
// Small steps, the other door, another action, another user or app and a restart of the server do not get around it.
func TestTD12QuotaOverAllDoors(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t, "--destructive-quota=60")
	s.StartSim(t, 1)
	ft.Until(t, 60*1e9, func() string { return "the host does not come" }, func() bool {
		_, body := s.Get(t, "/api/v1/hosts")
		return strings.Contains(body, `"online":true`)
	})
	shop, other := s.operator("shop").as("ann"), s.operator("other").as("bea")
	if code, body := shop.gse(0, 5); code != 0 { // what is not registered has no account that the app may use
		t.Fatalf("start: %s", body)
	}

	// Spend the quota in small steps, by both doors and all actions.
	for i, action := range []string{"stop", "kill", "restart", "reload", "unhost", "unregister"} {
		if status, body := shop.native(action, 5, 0); status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", action, status, body)
		}
		op := []int{1, 9, 7, 8, 4, 1}[i]
		if code, body := shop.gse(op, 5); code != 0 {
			t.Fatalf("operation %d: %s", op, body)
		}
	}

	above := func(when string) {
		t.Helper()
		for _, action := range []string{"stop", "kill", "restart", "reload", "unhost", "unregister"} {
			status, body := shop.native(action, 5, 0)
			if status != http.StatusBadRequest || !strings.Contains(body, "repeat it with confirm 5") {
				t.Errorf("%s: %s above the quota: %d %s", when, action, status, body)
			}
		}
		for _, op := range []int{1, 9, 7, 8, 4} {
			if code, body := shop.gse(op, 5); code != 1306429 || !strings.Contains(body, "60 an hour") {
				t.Errorf("%s: operation %d above the quota: %s", when, op, body)
			}
		}
		if code, body := shop.as("another").gse(9, 5); code != 1306429 {
			t.Errorf("%s: another user of the app: %s", when, body)
		}
		if code, body := other.as("ann").gse(9, 5); code != 0 { // a claimed name takes nothing from another app
			t.Errorf("%s: the name in another app: %s", when, body)
		}
	}
	above("at once")

	// Other callers and other actions are not limited, and the number can be confirmed where the API has that.
	if code, body := other.gse(9, 5); code != 0 {
		t.Errorf("another app and user: %s", body)
	}
	if status, body := shop.native("start", 5, 0); status != http.StatusAccepted {
		t.Errorf("start: %d %s", status, body)
	}
	if status, body := shop.native("kill", 5, 4); status != http.StatusBadRequest {
		t.Errorf("a wrong number confirmed: %d %s", status, body)
	}
	if status, body := shop.native("kill", 5, 5); status != http.StatusAccepted {
		t.Errorf("confirmed: %d %s", status, body)
	}

	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	above("after a restart")
}

// TestTD13RecordOfStrangers: a request of which nothing is permitted is refused as a whole and not recorded. An app that
// may operate gets a result for each unknown host, but cannot fill the record with them.
func TestTD13RecordOfStrangers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t)
	nothing, shop := s.create("nothing"), s.operator("shop")

	hosts := func(n int) []ft.J {
		list := make([]ft.J, n)
		for i := range list {
			list[i] = ft.J{"ip": "10." + strconv.Itoa(i>>16) + "." + strconv.Itoa(i>>8&255) + "." + strconv.Itoa(i&255),
				"bk_cloud_id": 0}
		}
		return list
	}
	request := func(n int) ft.J {
		return ft.J{"meta": ft.J{"namespace": "gse", "name": "x"}, "op_type": 0, "hosts": hosts(n),
			"spec": definition("x")}
	}

	// Nothing is permitted: the record does not grow.
	before := recordSize(t, s.Data)
	for range 5 {
		if code, body := nothing.esb("operate_proc_v2", request(20_000)); code != 1306403 {
			t.Errorf("an app without grants: %.300s", body)
		}
	}
	status, body := nothing.send(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "gse",
		"names": []string{"x"}, "hosts": []ft.J{{"cloud": 0, "ip": "10.0.0.1"}}})
	if status != http.StatusForbidden {
		t.Errorf("the native API: %d %s", status, body)
	}
	if grown := recordSize(t, s.Data) - before; grown > 1<<20 {
		t.Errorf("the record grew by %d KiB", grown>>10)
	}

	// One unknown host has its own result, with the code that clients know.
	code, body := shop.esb("operate_proc_v2", request(1))
	var task struct {
		Data struct {
			TaskID string `json:"task_id"`
		}
	}
	if err := json.Unmarshal([]byte(body), &task); err != nil || code != 0 || task.Data.TaskID == "" {
		t.Fatalf("one unknown host: %s", body)
	}
	if _, body := shop.esb("get_proc_operate_result_v2", ft.J{"task_id": task.Data.TaskID}); !strings.Contains(body,
		"is not in the fleet") {
		t.Errorf("the result of an unknown host: %s", body)
	}

	// Many of them have a quota, in large steps and in small ones.
	for range 2 {
		if code, body := shop.esb("operate_proc_v2", request(20_000)); code != 0 {
			t.Fatalf("within the quota: %.300s", body)
		}
	}
	for _, n := range []int{20_000, 15_000} {
		if code, body := shop.esb("operate_proc_v2", request(n)); code != 1306429 || !strings.Contains(body, "50000 an hour") {
			t.Errorf("%d above the quota: %.300s", n, body)
		}
	}
}

// recordSize is the size of the record and its log, or of all rows of a record in PostgreSQL.
func recordSize(t *testing.T, data string) (sum int64) {
	t.Helper()
	if ft.InPostgres(t) {
		pg, name := ft.DatabaseOf(t, data)
		// The sum over all rows: PostgreSQL compresses large values, and these are all the same.
		out := pg.Exec(name, `SELECT SUM(CAST(CAST((xpath('/row/n/text()', query_to_xml(format(
			'SELECT COALESCE(SUM(octet_length(CAST(t AS TEXT))), 0) AS n FROM %I t', table_name), FALSE, TRUE, '')))[1] AS TEXT) AS BIGINT))
			FROM information_schema.tables WHERE table_schema = current_schema()`)
		if _, err := fmt.Sscan(out, &sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	list, err := filepath.Glob(filepath.Join(data, "*.db*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("there is no record: %v", err)
	}
	for _, path := range list {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// TestKeysOfUsers: an idempotency key belongs to one user of an app. Another user gets neither the task nor its id.
func TestKeysOfUsers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t)
	shop := s.operator("shop")
	ask := func(user, name string) (int, string) {
		status, body := shop.as(user).send(http.MethodPost, "/api/v1/operations", ft.J{"action": "query",
			"namespace": "gse", "names": []string{name}, "hosts": []ft.J{{"cloud": 0, "ip": "10.0.0.1"}}},
			"Idempotency-Key", "nightly")
		var a struct {
			TaskID string `json:"task_id"`
		}
		if status == http.StatusAccepted && json.Unmarshal([]byte(body), &a) != nil {
			t.Fatal(body)
		}
		return status, a.TaskID + body[:0]
	}

	_, first := ask("u1", "x")
	if _, again := ask("u1", "x"); again != first || first == "" {
		t.Errorf("the same user repeats the request: %s, then %s", first, again)
	}
	if _, foreign := ask("u2", "x"); foreign == first {
		t.Errorf("another user gets task %s", first)
	}
	if status, _ := ask("u3", "y"); status != http.StatusAccepted {
		t.Errorf("another request of another user: %d", status)
	}
	if status, _ := ask("u1", "y"); status != http.StatusBadRequest {
		t.Errorf("another request of the same user: %d", status)
	}
}
