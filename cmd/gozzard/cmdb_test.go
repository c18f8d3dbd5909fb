package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/signing"
)

// fakeCMDB speaks the calls that a read needs, about business 2 with one process for each id.
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

	// a test that is over listens no more
	_ = json.NewEncoder(w).Encode(map[string]any{"result": true, "code": 0, "message": "", "data": data})
}

// newCMDBNode runs a server that reads business 2 from CMDB.
func newCMDBNode(t *testing.T, cmdbURL string, edit func(*nodeConfig)) *node {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "cmdb.json")
	if err := writePrivateJSON(file, client.Credentials{AppCode: "gozzard", AppSecret: "of-cmdb",
		Username: "admin"}); err != nil {
		t.Fatal(err)
	}

	cfg := nodeConfig{
		Data: dir, Listen: "127.0.0.1:0", JoinSecret: strings.Repeat("x", 32), Log: slog.New(slog.DiscardHandler),
		CMDB: cmdbConfig{url: cmdbURL, credentials: file, interval: time.Hour},
	}
	edit(&cfg)
	var err error
	if cfg.Signer, err = signing.OpenSigner(dir, nil); err != nil {
		t.Fatal(err)
	}

	n, err := newNode(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.devAccounts(t.Context(), "app", "secret"); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.run(ctx) }()

	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	return n
}

// flush calls flush_process as a SaaS does.
func flush(t *testing.T, n *node, biz int) string {
	t.Helper()
	body := fmt.Sprintf(`{"bk_app_code":"app","bk_app_secret":"secret","bk_username":"me","bk_biz_id":%d}`, biz)
	res, err := http.Post(n.URL()+"/api/c/compapi/v2/gsekit/api/process/flush_process/", "application/json",
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
	n := newCMDBNode(t, srv.URL, func(cfg *nodeConfig) { cfg.CMDB.businesses = []int{2} })
	count := func() int {
		sets := n.plane.TopologyTree(everybody, 2, 0)
		if len(sets) != 1 {
			return -1
		}
		return sets[0].Processes
	}

	// without being asked
	for end := time.Now().Add(20 * time.Second); count() != 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("business has %d processes", count())
		}
	}

	source.set(1, 3)

	if answer := flush(t, n, 2); !strings.Contains(answer, `"result":true`) || count() != 2 {
		t.Errorf("%d processes after %s", count(), answer)
	}

	heads := n.plane.Businesses(everybody)
	if len(heads) != 1 || heads[0].Source != record.SourceCMDB {
		t.Errorf("%+v", heads)
	}

	srv.Close()

	if answer := flush(t, n, 9); !strings.Contains(answer, `"result":false`) {
		t.Errorf("without CMDB: %s", answer)
	}
}

func TestBusinessesFromDocumentsAreLeftAlone(t *testing.T) {
	source := &fakeCMDB{ids: []int{1, 2, 3}}
	srv := httptest.NewServer(source)
	t.Cleanup(srv.Close)
	n := newCMDBNode(t, srv.URL, func(*nodeConfig) {})
	c, err := client.New(n.URL(), client.Credentials{AppCode: "app", AppSecret: "secret", Username: "me"})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)

	if _, err := c.ApplyTopology(t.Context(), 2, []byte(twoSets), client.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if answer := flush(t, n, 2); !strings.Contains(answer, `"result":true`) {
		t.Error(answer)
	}
	if heads := n.plane.Businesses(everybody); len(heads) != 1 || heads[0].Source != record.SourceFile ||
		heads[0].Version != 1 {
		t.Errorf("%+v", heads)
	}
}

func TestCMDBFlags(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	if err := writePrivateJSON(good, client.Credentials{AppCode: "a", AppSecret: "b", Username: "c"}); err != nil {
		t.Fatal(err)
	}

	half := filepath.Join(dir, "half.json")
	if err := writePrivateJSON(half, client.Credentials{AppCode: "a"}); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		cfg  cmdbConfig
		want string
	}{
		"none":           {cmdbConfig{}, ""},
		"no URL":         {cmdbConfig{credentials: good}, "need --cmdb-url"},
		"no credentials": {cmdbConfig{url: "https://x", interval: time.Minute}, "needs --cmdb-credentials"},
		"no file": {cmdbConfig{url: "https://x", credentials: filepath.Join(dir, "none"),
			interval: time.Minute}, "no such file"},
		"half": {cmdbConfig{url: "https://x", credentials: half, interval: time.Minute},
			"needs an app code"},
		"not a URL": {cmdbConfig{url: "paas", credentials: good, interval: time.Minute},
			"is not the address of a CMDB"},
		"no such business": {cmdbConfig{url: "https://x", credentials: good, interval: time.Minute,
			businesses: []int{2, 0}}, "--cmdb-biz 0"},
		"too often": {cmdbConfig{url: "https://x", credentials: good}, "--cmdb-interval"},
		"as it should be": {cmdbConfig{url: "https://x", credentials: good, interval: time.Minute,
			businesses: []int{2}}, ""},
		"within the fabric": {cmdbConfig{url: "http://10.0.0.1", credentials: good, interval: time.Minute}, ""},
	} {
		_, err := c.cfg.open(nil, slog.New(slog.DiscardHandler))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
