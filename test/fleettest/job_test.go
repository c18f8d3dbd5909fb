//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// jobEntry is one entry of a result as Job returns it: its content is an object.
type jobEntry struct {
	Code    int    `json:"error_code"`
	Msg     string `json:"error_msg"`
	Content struct {
		Value   []struct{ Result string }
		Process []struct {
			Instance []struct {
				PID    int
				IsAuto bool
			}
		}
	}
}

// jobRun sends a request of Job's process API and waits for its result, by GET as its clients do.
func jobRun(t *testing.T, d *ft.Dev, path string, body ft.J) map[string]jobEntry {
	t.Helper()
	ans, err := d.TryWith(path, body, nil)
	if err != nil || !ans.Result || ans.Message != "" {
		t.Fatalf("%s: %v %s", path, err, ans.Raw)
	}

	var task struct {
		ID string `json:"bk_gse_taskid"`
	}
	if err := json.Unmarshal(ans.Data, &task); err != nil {
		t.Fatal(err)
	}

	query := url.Values{"bk_app_code": {d.Cred.AppCode}, "bk_app_secret": {d.Cred.Secret},
		"bk_username": {d.Cred.Username}, "bk_biz_id": {"1"}, "bk_gse_taskid": {task.ID}}
	var poll struct {
		Data struct {
			Status int
			Result map[string]jobEntry
		}
	}
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("in work: %+v", poll) }, func() bool {
		res, err := http.Get(d.Cred.URL + "/api/c/compapi/v2/job/get_proc_result/?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		poll.Data.Result = nil
		err = json.NewDecoder(res.Body).Decode(&poll)
		if err != nil && poll.Data.Status != 115 { // content is "" while an entry is running
			t.Fatal(err)
		}
		return err == nil && poll.Data.Status == 0
	})

	return poll.Data.Result
}

// TestJobScripts sends the documented request of Job's operate_proc to several hosts: start.sh and stop.sh are next to
// the program, which the agent finds by its pid file.
func TestJobScripts(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 3)
	root := t.TempDir()
	var infos []ft.J
	var daemons []*ft.Daemon
	for i := range 3 {
		fx := ft.NewDaemon(t, root, fmt.Sprintf("gzjob%d", i))
		daemons = append(daemons, fx)
		infos = append(infos, ft.J{"setup_path": fx.Dir, "proc_name": fx.Name, "pid_path": fx.PIDFile(),
			"account": fx.User, "cpu_lmt": 50, "mem_lmt": 30,
			"ip_list": []ft.J{{"bk_cloud_id": 0, "ip": fmt.Sprintf("127.0.0.%d", i+1)}}})
	}

	key := func(i int) string { return fmt.Sprintf("%s/%s:0:127.0.0.%d", daemons[i].Dir, daemons[i].Name, i+1) }
	each := func(op int, path string, check func(i int, e jobEntry) bool) {
		t.Helper()
		result := jobRun(t, d, path, ft.J{"bk_biz_id": 1, "op_type": op, "process_infos": infos})
		if len(result) != len(daemons) {
			t.Fatalf("op_type %d: %+v", op, result)
		}
		for i := range daemons {
			if e, ok := result[key(i)]; !ok || !check(i, e) {
				t.Errorf("op_type %d on host %d: %+v", op, i, result)
			}
		}
	}

	running := func(want bool) func(int, jobEntry) bool {
		return func(i int, e jobEntry) bool { return e.Code == 0 && (daemons[i].PID() > 1) == want }
	}

	each(0, "/api/c/compapi/v2/job/operate_proc/", running(true))

	each(2, "/api/c/compapi/v2/jobv3/operate_proc/", func(i int, e jobEntry) bool {
		in := e.Content.Process[0].Instance[0]
		return e.Code == 0 && in.PID == daemons[i].PID() && in.IsAuto
	})

	each(0, "/api/v2/operate_proc", func(_ int, e jobEntry) bool { return e.Code == 828 })
	each(1, "/esb/api/v2/operate_proc", running(false))

	each(1, "/api/job/v2/job-execute/operate_proc/",
		func(_ int, e jobEntry) bool { return e.Code == 829 && e.Content.Value[0].Result == e.Msg })

	for _, info := range infos {
		info["cmd_shell_ext"] = "bat"
	}

	each(1, "/api/c/compapi/v2/job/operate_proc/", func(_ int, e jobEntry) bool {
		return e.Code == 65535 && e.Msg == "cmd_shell_ext bat is for windows, this host has linux"
	})
}
