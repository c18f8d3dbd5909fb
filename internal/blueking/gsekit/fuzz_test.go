package gsekit_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard/test/fuzztest"
	"github.com/gozzard/gozzard/test/goldentest"
)

// FuzzBody sends bodies to all calls: every answer is an envelope with a number of this API, and nothing is done
// without credentials.
func FuzzBody(f *testing.F) {
	z := fuzztest.New(f)
	paths := []string{
		"/api/2/process/process_status", "/api/2/process/operate_process", "/api/2/job", "/api/2/job/158/job_status",
		"/api/2/job/158/job_task", "/api/2/job/158/retry",
		"/api/2/meta/expression_match", bus + "process/process_status", bus + "job/create_job",
		bus + "job/job_status", bus + "config_template/config_template_list",
		"/api/2/process/flush_process", "/api/2/process/sync_process_status",
		"/api/2/config_template", "/api/2/config_template/1/create_config_version", "/api/2/config_template/config_templates_list",
		"/api/2/config_template/1/bind_template_to_process", "/api/2/config_template/bind_process_to_template",
		"/api/2/config_version/1/clone",
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}

	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var g goldentest.Case
		if err := json.Unmarshal(raw, &g); err != nil {
			f.Fatal(err)
		}
		z.Add(uint8(i), true, []byte(g.Body))
	}

	z.Add(uint8(0), false,
		[]byte(`{"scope":{"bk_set_env":"9","bk_process_ids":[1e9,"x",null,-1]},"page":0,"pagesize":9999,"searches":[""],"fields":["\u0000"]}`))
	z.Add(uint8(0), true,
		[]byte(`{"expression_scope":{"bk_set_env":3,"bk_set_name":"[[a,b]][!9-1]","bk_process_id":"[0:2]"},"page":1,"pagesize":1}`))
	r := newRig(f)
	z.Fuzz(func(t *testing.T, which uint8, known bool, body []byte) {
		r.plane.calls, r.jobs.calls, r.flushed = nil, nil, nil
		req := httptest.NewRequest(http.MethodPost, paths[int(which)%len(paths)], bytes.NewReader(body))

		if known {
			req.Header.Set("X-Bkapi-Authorization", head)
		}

		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		var e envelope
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Result == nil || e.Code == nil ||
			e.Message == nil || e.Data == nil || w.Code != http.StatusOK {
			t.Fatalf("HTTP %d (%v): %.300s", w.Code, err, w.Body)
		}

		if *e.Code != 0 && *e.Code/100000 != 41 || *e.Code == 4100500 || *e.Result != (*e.Code == 0) {
			t.Fatalf("%.300s", w.Body)
		}
		if !known && !bytes.Contains(body, []byte("secret")) && !bytes.Contains(body, []byte(`\u`)) &&
			(*e.Result || len(r.plane.calls)+len(r.jobs.calls)+len(r.flushed) > 0) {
			t.Fatalf("a stranger was served: %.300s", w.Body)
		}
	})
}
