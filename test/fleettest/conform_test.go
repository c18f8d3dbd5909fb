//go:build linux

package fleettest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var updateConform = flag.Bool("conform.update", false, "write testdata/conform.txt anew")

// runConform runs gozzard conform and returns its output and its exit code.
func runConform(t *testing.T, d *ft.Dev, args ...string) (out, notes string, code int) {
	t.Helper()
	return runConformAs(t, filepath.Join(d.Data, "dev.json"), args...)
}

// runConformAs does so with a file of credentials.
func runConformAs(t *testing.T, credentials string, args ...string) (out, notes string, code int) {
	t.Helper()
	cmd := exec.Command(ft.Binary(t), append([]string{"conform", "--credentials", credentials}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// ownDeviations is how our own server compares.
const ownDeviations = ", 0 deviate, 0 are absent, 0 got no answer"

// TestConform: our own server agrees with the documented requests, of every route. Requests that only read leave
// nothing behind, and the process of --operate is gone in the end, with its file. The table is compared with a golden one.
func TestConform(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	if out, notes, code := runConform(t, d); code != 0 || !strings.Contains(notes, ownDeviations) {
		t.Fatalf("exit code %d\n%s\n%s", code, out, notes)
	}
	if status, body := d.Get(t, "/api/v1/processes?limit=10"); status != http.StatusOK || strings.Contains(body, `"namespace"`) {
		t.Errorf("after requests that only read: %d %s", status, body)
	}

	folder := t.TempDir()
	out, notes, code := runConform(t, d, "--operate", "--host", "127.0.0.1", "--account", "root", "--folder", folder)
	if code != 0 || !strings.Contains(notes, ownDeviations) {
		t.Fatalf("exit code %d\n%s\n%s", code, out, notes)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
	if _, body := d.Get(t, "/api/v1/processes?limit=10&namespace=conform"); strings.Contains(body, `"conform-`) {
		t.Errorf("a process is left: %s", body)
	}

	golden := filepath.Join("testdata", "conform.txt")
	blanks := regexp.MustCompile(`  +`) // task ids and folders have other lengths in each run
	table := regexp.MustCompile(`GSETASK:[0-9A-Za-z:]+`).ReplaceAllString(blanks.ReplaceAllString(out, "  "), "TASK")
	if *updateConform {
		if err := os.WriteFile(golden, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || table != string(want) {
		t.Errorf("the table differs from %s (-conform.update writes it), %v:\n%s", golden, err, table)
	}
}

// TestConformAtLimits: a server that limits its callers, as it does by default, deviates in nothing. Its limit is low, so that a slow
// machine meets it, too.
func TestConformAtLimits(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartLimitedServer(t, "", "--rate-app=100", "--rate-app-burst=10")
	out, notes, code := runConformAs(t, filepath.Join(s.Data, "credentials.json"), "--deviations")
	if code != 0 || !strings.Contains(notes, ownDeviations) {
		t.Fatalf("exit code %d\n%s\n%s", code, out, notes)
	}
}

// TestConformFindsDeviations: a server that answers a little differently is found out, each time with the place.
func TestConformFindsDeviations(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	for _, tt := range []struct {
		path, old, new string
		status         int
		says           string
	}{
		{"operate_proc_multi", `"task_id":"GSETASK:`, `"task_id":123,"was":"`, 0, "data.task_id: int 123 where string is documented"},
		{"get_agent_status", `"code":0`, `"code":"0"`, 0, `code: string "0" where int=0 is documented`},
		{"get_agent_status", `"result":true`, `"done":true`, 0, "result: missing where bool=true is documented"},
		{"get_proc_operate_result_v2", `"error_code":`, `"error":`, 0, ".error_code: missing where int"},
		{"get_proc_operate_result", `"data":null`, `"data":{}`, 0, "data: object where null is documented"},
		{"sync_proc_status", `"proc_infos":[]`, `"proc_infos":null`, 0, "data.proc_infos: null where array is documented"},
		{"process_status", `"count":0`, `"count":"0"`, 0, `data.count: string "0" where int is documented`},
		{"get_process_group_info", "", "", http.StatusBadGateway, "HTTP: 502 where 200 is documented"},
		{"update_proc_info", "", "", http.StatusNotFound, "absent"},
		{"register_proc_info", `"message":"`, `"message":7,"was":"`, 0, "message: int 7 where string is documented"},
		{"get_agent_info", `{"result"`, `<html>` + "\x1b[2J" + `{"result"`, 0, "where JSON is documented"},
	} {
		front := deviating(t, d.Cred.URL, tt.path, tt.old, tt.new, tt.status)
		out, notes, code := runConform(t, d, "--url", front, "--prefix", "/api/c/compapi/v2/", "--deviations")
		if code != 1 || !strings.Contains(out, tt.says) || strings.Contains(out, "\x1b") {
			t.Errorf("%s with %q for %q: exit code %d\n%s\n%s", tt.path, tt.new, tt.old, code, out, notes)
		}
		for line := range strings.Lines(strings.TrimPrefix(out, "API")) {
			if strings.HasPrefix(line, "gse") && !strings.Contains(line, tt.path) && tt.path != "operate_proc_multi" {
				t.Errorf("%s was changed, and this deviates, too: %s", tt.path, line)
			}
		}
	}

	var report struct {
		Requests []struct{ Result string }
		Counts   map[string]int
	}
	front := deviating(t, d.Cred.URL, "get_agent_status", `"code":0`, `"code":"0"`, 0)
	out, _, code := runConform(t, d, "--url", front, "--api", "gse", "-o", "json")
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || report.Counts["deviates"] != 4 || len(report.Requests) < 40 {
		t.Errorf("exit code %d, %v, %v", code, err, report.Counts)
	}
}

// deviating is a server that answers as another one does, except for one call.
func deviating(t *testing.T, target, path, old, changed string, status int) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(res *http.Response) error {
			if !strings.HasSuffix(strings.TrimRight(res.Request.URL.Path, "/"), "/"+path) {
				return nil
			}
			body, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			if status != 0 {
				res.StatusCode, body = status, []byte(`{"message":"changed"}`)
			}
			body = bytes.ReplaceAll(body, []byte(old), []byte(changed))
			res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			res.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL
}
