package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// fakeCMDB serves the calls that a read needs, with business 2 and one process for each id.
type fakeCMDB struct {
	mu  sync.Mutex
	ids []int
}

func (f *fakeCMDB) set(ids ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = ids
}

func (f *fakeCMDB) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var data any
	list := func(rows []map[string]any) any { return map[string]any{"count": len(rows), "info": rows} }
	switch {
	case !strings.Contains(r.Header.Get("X-Bkapi-Authorization"), `"bk_app_secret":"of-cmdb"`):
		http.Error(w, "who are you", http.StatusForbidden)
		return
	case strings.Contains(r.URL.Path, "search_cloud_area"):
		data = list([]map[string]any{{"bk_cloud_id": 0, "bk_cloud_name": "default area"}})
	case strings.Contains(r.URL.Path, "search_object_attribute"), strings.Contains(r.URL.Path, "find_biz_tree_brief_info"):
		data = []map[string]any{}
	case strings.Contains(r.URL.Path, "find_module_batch"):
		data = []map[string]any{{"bk_module_id": 21, "service_template_id": 26}}
	default:
		rows := []map[string]any{}
		for _, id := range f.ids {
			rows = append(rows, map[string]any{
				"set":              map[string]any{"bk_set_id": 5, "bk_set_name": "管控平台", "bk_set_env": "3"},
				"module":           map[string]any{"bk_module_id": 21, "bk_module_name": "gse"},
				"host":             map[string]any{"bk_cloud_id": 0, "bk_host_innerip": fmt.Sprintf("10.0.0.%d", id)},
				"service_instance": map[string]any{"id": id, "name": fmt.Sprintf("10.0.0.%d_gse", id)},
				"process": map[string]any{"bk_process_id": id, "bk_process_name": "java",
					"bk_func_name": "java", "user": "root"},
			})
		}
		data = list(rows)
	}

	// An error does not matter: a test that has ended does not read the answer.
	_ = json.NewEncoder(w).Encode(map[string]any{"result": true, "code": 0, "message": "", "data": data})
}

// newCMDBServer runs a server that reads businesses from CMDB.
func newCMDBServer(t *testing.T, cmdbURL string, businesses ...int) *Server {
	t.Helper()
	o := testOptions(t, t.TempDir())
	o.CMDB = CMDBOptions{URL: cmdbURL, Credentials: filepath.Join(o.Data, "cmdb.json"), Interval: time.Hour,
		Businesses: businesses}
	writeJSON(t, o.CMDB.Credentials, client.Credentials{AppCode: "gozzard", AppSecret: "of-cmdb", Username: "admin"})
	return running(t, o)
}

// writeJSON writes a file that only its owner may read.
func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// flush calls flush_process as a SaaS does.
func flush(t *testing.T, s *Server, biz int) string {
	t.Helper()
	body := fmt.Sprintf(`{"bk_app_code":"app","bk_app_secret":"secret","bk_username":"me","bk_biz_id":%d}`, biz)
	res, err := http.Post(s.URL()+"/api/c/compapi/v2/gsekit/api/process/flush_process/", "application/json",
		bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}

	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return string(answer)
}

func TestBusinessesFromCMDB(t *testing.T) {
	source := &fakeCMDB{ids: []int{1, 2, 3}}
	srv := httptest.NewServer(source)
	t.Cleanup(srv.Close)
	s := newCMDBServer(t, srv.URL, 2)
	count := func() int {
		sets := s.plane.TopologyTree(everybody, 2, 0)
		if len(sets) != 1 {
			return -1
		}
		return sets[0].Processes
	}

	// without a request
	for end := time.Now().Add(20 * time.Second); count() != 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("business has %d processes", count())
		}
	}

	source.set(1, 3)

	if answer := flush(t, s, 2); !strings.Contains(answer, `"result":true`) || count() != 2 {
		t.Errorf("%d processes after %s", count(), answer)
	}

	heads := s.plane.Businesses(everybody)
	if len(heads) != 1 || heads[0].Source != record.SourceCMDB {
		t.Errorf("%+v", heads)
	}

	srv.Close()

	if answer := flush(t, s, 9); !strings.Contains(answer, `"result":false`) {
		t.Errorf("without CMDB: %s", answer)
	}
}

func TestBusinessesFromDocumentsAreLeftAlone(t *testing.T) {
	source := &fakeCMDB{ids: []int{1, 2, 3}}
	srv := httptest.NewServer(source)
	t.Cleanup(srv.Close)
	s := newCMDBServer(t, srv.URL)
	c, err := client.New(s.URL(), client.Credentials{AppCode: "app", AppSecret: "secret", Username: "me"})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)

	if _, err := c.ApplyTopology(t.Context(), 2, []byte("biz: 2\nname: shop\nsets:\n  - {id: 5, name: front, env: 3}\n"), client.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if answer := flush(t, s, 2); !strings.Contains(answer, `"result":true`) {
		t.Error(answer)
	}
	if heads := s.plane.Businesses(everybody); len(heads) != 1 || heads[0].Source != record.SourceFile ||
		heads[0].Version != 1 {
		t.Errorf("%+v", heads)
	}
}

func TestCMDBFlags(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	writeJSON(t, good, client.Credentials{AppCode: "a", AppSecret: "b", Username: "c"})

	half := filepath.Join(dir, "half.json")
	writeJSON(t, half, client.Credentials{AppCode: "a"})

	for name, c := range map[string]struct {
		cfg  CMDBOptions
		want string
	}{
		"none":           {CMDBOptions{}, ""},
		"no URL":         {CMDBOptions{Credentials: good}, "need --cmdb-url"},
		"no credentials": {CMDBOptions{URL: "https://x", Interval: time.Minute}, "needs --cmdb-credentials"},
		"no file": {CMDBOptions{URL: "https://x", Credentials: filepath.Join(dir, "none"),
			Interval: time.Minute}, "no such file"},
		"half": {CMDBOptions{URL: "https://x", Credentials: half, Interval: time.Minute},
			"needs an app code"},
		"not a URL": {CMDBOptions{URL: "paas", Credentials: good, Interval: time.Minute},
			"is not the address of a CMDB"},
		"no such business": {CMDBOptions{URL: "https://x", Credentials: good, Interval: time.Minute,
			Businesses: []int{2, 0}}, "--cmdb-biz 0"},
		"too often": {CMDBOptions{URL: "https://x", Credentials: good}, "--cmdb-interval"},
		"as it should be": {CMDBOptions{URL: "https://x", Credentials: good, Interval: time.Minute,
			Businesses: []int{2}}, ""},
		"within the fabric": {CMDBOptions{URL: "http://10.0.0.1", Credentials: good, Interval: time.Minute}, ""},
	} {
		_, _, err := c.cfg.open(nil, slog.New(slog.DiscardHandler))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
