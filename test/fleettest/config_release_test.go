//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// configJob is what job_status answers about a job on configuration files.
type configJob struct {
	Info struct {
		Status string `json:"status"`
	} `json:"job_info"`
	Tasks []configTaskInfo `json:"job_tasks"`
}

type configTaskInfo struct {
	Process int    `json:"bk_process_id"`
	Status  string `json:"status"`
	Code    int    `json:"err_code"`
	Extra   struct {
		Reason string `json:"failed_reason"`
	} `json:"extra_data"`
}

// codes are the codes of the tasks by process.
func (j *configJob) codes() map[int]int {
	out := map[int]int{}
	for _, t := range j.Tasks {
		out[t.Process] = t.Code
	}
	return out
}

// runConfig creates a job as the atom of bk-sops does and waits for its end.
func (c *tenant) runConfig(action string, template int64) configJob {
	c.t.Helper()
	var made struct {
		ID int64 `json:"job_id"`
	}
	body := ft.J{"job_object": "configfile", "job_action": action,
		"expression_scope": ft.J{"bk_set_env": "3", "bk_set_name": "*", "bk_module_name": "*", "service_instance_name": "*",
			"bk_process_name": "nginx", "bk_process_id": "*"},
		"extra_data": ft.J{"config_template_ids": []int64{template}}}
	if code, text := c.kitData(http.MethodPost, "job/", body, &made); code != 0 || made.ID == 0 {
		c.t.Fatalf("%s: %s", action, text)
	}
	var job configJob
	ft.Until(c.t, time.Minute, func() string { return fmt.Sprintf("job %d: %+v", made.ID, job) }, func() bool {
		job = configJob{}
		c.kitData(http.MethodPost, fmt.Sprintf("job/%d/job_status/", made.ID), ft.J{}, &job)
		return job.Info.Status == "succeeded" || job.Info.Status == "failed"
	})
	return job
}

// TestConfigRelease runs bk-sops' atoms on configuration files against real files on three hosts: generate, release and diff. The
// fourth host does not allow files.
func TestConfigRelease(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	var places []string
	for n := 1; n <= 4; n++ {
		state := t.TempDir()
		rules := filesRules(conf)
		if n == 4 {
			rules = "users: [nobody]\ndeny_uids: \"\"\n"
		}
		if err := os.WriteFile(state+"/policy.yaml", []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		s.StartAgentIn(t, n, state, "")
		places = append(places, fmt.Sprintf(`{id: %d, name: s%[1]d, host: {ip: 127.0.0.%[1]d, cloud: 0}, processes: [{id: 4%[1]d, name: nginx, user: nobody,
        work_path: /data, pid_file: /run/nginx.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh}]}`, n))
	}
	applyTopology(t, s.API, 2, "biz: 2\nname: b\nsets:\n  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: ["+
		strings.Join(places, ", ")+"]}]}\n")
	admin := &tenant{API: s.API, t: t}

	// A template with a version, bound to the four processes.
	var template struct {
		ID int64 `json:"config_template_id"`
	}
	if code, text := admin.kitData(http.MethodPost, "config_template/", ft.J{"template_name": "nginx",
		"file_name": "${bk_host_innerip}.conf", "abs_path": conf, "owner": "nobody", "group": "", "filemode": "0640",
		"line_separator": "LF"}, nil); code == 0 {
		t.Fatalf("a template without a group: %s", text)
	}
	group := "nogroup"
	if code, text := admin.kitData(http.MethodPost, "config_template/", ft.J{"template_name": "nginx",
		"file_name": "${bk_host_innerip}.conf", "abs_path": conf, "owner": "nobody", "group": group, "filemode": "0640",
		"line_separator": "LF"}, &template); code != 0 {
		t.Fatal(text)
	}
	at := fmt.Sprintf("config_template/%d/", template.ID)
	var objects []ft.J
	for n := 1; n <= 4; n++ {
		objects = append(objects, ft.J{"process_object_type": "INSTANCE", "process_object_id": 40 + n})
	}
	version := func(content string) {
		t.Helper()
		if code, text := admin.kitData(http.MethodPost, at+"create_config_version/", ft.J{"description": "d", "content": content, "is_active": true}, nil); code != 0 {
			t.Fatal(text)
		}
	}
	version("listen ${bk_host_innerip};\n")
	if code, text := admin.kitData(http.MethodPost, at+"bind_template_to_process/", ft.J{"process_object_list": objects}, nil); code != 0 {
		t.Fatal(text)
	}

	expect := func(what string, j configJob, want map[int]int) {
		t.Helper()
		if fmt.Sprint(j.codes()) != fmt.Sprint(want) {
			t.Fatalf("%s: %+v, want %v", what, j, want)
		}
	}
	file := func(n int) string { return fmt.Sprintf("%s/127.0.0.%d.conf", conf, n) }
	has := func(n int, want string) {
		t.Helper()
		if got, err := os.ReadFile(file(n)); err != nil || string(got) != want {
			t.Errorf("host %d has %q, %v, want %q", n, got, err, want)
		}
	}

	// Nothing can be released before it is generated.
	expect("release of nothing", admin.runConfig("release", template.ID), map[int]int{41: 4103005, 42: 4103005, 43: 4103005, 44: 4103005})
	expect("generate", admin.runConfig("generate", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 0})
	expect("diff of nothing", admin.runConfig("diff", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 0})
	expect("release", admin.runConfig("release", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 4103004})
	for n := 1; n <= 3; n++ {
		has(n, fmt.Sprintf("listen 127.0.0.%d;\n", n))
	}
	if st, err := os.Stat(file(1)); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", st, err)
	}
	expect("diff", admin.runConfig("diff", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 0})

	// One file is changed by hand, one is removed.
	if err := os.WriteFile(file(1), []byte("by hand\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file(2)); err != nil {
		t.Fatal(err)
	}
	expect("diff of changed files", admin.runConfig("diff", template.ID), map[int]int{41: 4103007, 42: 4103006, 43: 0, 44: 0})
	var newest struct {
		Snapshot struct {
			Content string `json:"content"`
		} `json:"snapshot"`
		Released struct {
			Content string `json:"content"`
		} `json:"released_config"`
	}
	path := fmt.Sprintf("config_instance/latest_config_instance/?config_template_id=%d&bk_process_id=41", template.ID)
	if code, text := admin.kitData(http.MethodGet, path, nil, &newest); code != 0 || newest.Snapshot.Content != "by hand\n" ||
		newest.Released.Content != "listen 127.0.0.1;\n" {
		t.Errorf("%s", text)
	}

	// A new version is generated and released over it.
	version("listen ${bk_host_innerip}:8080;\n")
	expect("generate again", admin.runConfig("generate", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 0})
	expect("release again", admin.runConfig("release", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 4103004})
	for n := 1; n <= 3; n++ {
		has(n, fmt.Sprintf("listen 127.0.0.%d:8080;\n", n))
	}

	// A change that nobody has been shown is not replaced, and the task says how to go on. A file that is gone is written again.
	byHand := func(text string) {
		t.Helper()
		if err := os.WriteFile(file(1), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	byHand("by hand again\n")
	if err := os.Remove(file(2)); err != nil {
		t.Fatal(err)
	}
	job := admin.runConfig("release", template.ID)
	expect("release over a change", job, map[int]int{41: 4103004, 42: 0, 43: 0, 44: 4103004})
	if i := slices.IndexFunc(job.Tasks, func(x configTaskInfo) bool { return x.Process == 41 }); !strings.Contains(job.Tasks[i].Extra.Reason, file(1)) ||
		!strings.Contains(job.Tasks[i].Extra.Reason, "gozzard config release --force") {
		t.Errorf("the task says %q", job.Tasks[i].Extra.Reason)
	}
	has(1, "by hand again\n")
	has(2, "listen 127.0.0.2:8080;\n")

	// A comparison shows it, and a release accepts what was shown, and nothing that came after it.
	expect("diff of it", admin.runConfig("diff", template.ID), map[int]int{41: 4103007, 42: 0, 43: 0, 44: 0})
	byHand("after the comparison\n")
	expect("release over a later change", admin.runConfig("release", template.ID), map[int]int{41: 4103004, 42: 0, 43: 0, 44: 4103004})
	has(1, "after the comparison\n")
	expect("diff of that", admin.runConfig("diff", template.ID), map[int]int{41: 4103007, 42: 0, 43: 0, 44: 0})
	expect("release after it was shown", admin.runConfig("release", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 4103004})
	has(1, "listen 127.0.0.1:8080;\n")

	// Other ends of lines are no change by hand.
	if code, text := admin.kitData(http.MethodPatch, at, ft.J{"line_separator": "CRLF"}, nil); code != 0 {
		t.Fatal(text)
	}
	expect("release with other lines", admin.runConfig("release", template.ID), map[int]int{41: 0, 42: 0, 43: 0, 44: 4103004})
	has(1, "listen 127.0.0.1:8080;\r\n")

	previewsOfHosts(t, s)

	// A viewer of the business neither releases nor compares.
	viewer := newTenant(t, s, "viewer", ft.J{"role": "viewer", "businesses": []int{2}})
	for _, action := range []string{"generate", "release", "diff"} {
		code, text := viewer.kitData(http.MethodPost, "config_template/"+action+"_config/", ft.J{"scope": ft.J{"bk_set_env": "3"}}, nil)
		if code != 4100403 {
			t.Errorf("%s as a viewer: %s", action, text)
		}
	}
}

// previewsOfHosts has somebody that may see one host of the business try to see the others by previews and renders.
func previewsOfHosts(t *testing.T, s *ft.Server) {
	t.Helper()
	narrow := newTenant(t, s, "narrow", ft.J{"role": "viewer", "businesses": []int{2}, "nets": []string{"127.0.0.1/32"}})
	preview := func(process int, content string) (int, string) {
		return narrow.kitData(http.MethodPost, "config_version/preview/", ft.J{"content": content, "bk_process_id": process}, nil)
	}
	if code, text := preview(41, "${bk_host_innerip}"); code != 0 || !strings.Contains(text, "127.0.0.1") {
		t.Errorf("its own host: %s", text)
	}

	// Neither the process of another host, nor the tree of the business.
	if code, text := preview(42, "${bk_host_innerip}"); code == 0 || strings.Contains(text, "127.0.0.2") {
		t.Errorf("the process of another host: %s", text)
	}
	for _, content := range []string{"${[h.attrib['InnerIP'] for h in cc.findall('.//Host')]}",
		"% for h in this.cc_module.findall('Host'):\n${h.attrib['InnerIP']}\n% endfor\n"} {
		if code, text := preview(41, content); code == 0 || !strings.Contains(text, "only some hosts") || strings.Contains(text, "127.0.0.2") {
			t.Errorf("%s: %s", content, text)
		}
	}
}
