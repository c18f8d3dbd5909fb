package cmdb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// answers is a CMDB with one answer for each call, and an error for all requests after a number of them.
type answers struct {
	byCall map[string][]byte
	left   int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/c/compapi/v2/cc/"), "/")
	body := a.byCall[name]
	if a.left--; a.left < 0 {
		body = []byte(`{"result":false,"code":1,"message":"enough"}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)),
		Request: r}, nil
}

// FuzzAnswers: any answer of CMDB becomes a business without faults or an error, never a part of a business.
func FuzzAnswers(f *testing.F) {
	z := fuzztest.New(f)

	text := func(data any) []byte {
		b, err := json.Marshal(map[string]any{"result": true, "code": 0, "message": "", "data": data})
		if err != nil {
			f.Fatal(err)
		}
		return b
	}

	clouds := text(map[string]any{"count": 1, "info": []any{map[string]any{"bk_cloud_id": 0,
		"bk_cloud_name": "default area"}}})
	modules := text([]any{map[string]any{"bk_module_id": 21, "service_template_id": 210}})
	properties := text([]any{map[string]any{"bk_property_id": "zone", "bk_biz_id": 2}, map[string]any{"bk_property_id": "cc", "bk_biz_id": 2}})
	tree := text([]any{map[string]any{"set": map[string]any{"bk_set_id": 10, "zone": "z1", "cc": "\n"},
		"modules": []any{map[string]any{"module": map[string]any{"bk_module_id": 21, "zone": nil},
			"hosts": []any{map[string]any{"bk_host_id": 1, "zone": 1.5, "operator": []any{}}}}}}})
	z.Add(clouds, text(map[string]any{"count": 2, "info": []any{row(1), row(2)}}), modules, properties, tree)
	z.Add(clouds, text(map[string]any{"count": 0, "info": nil}), modules, properties, text(nil))
	z.Add(clouds, []byte(`{"result":true,"code":0,"data":{"info":[]}}`), modules, []byte(`{"result":false,"code":9}`), tree)
	transport := &answers{}
	client, err := cmdb.New(cmdb.Options{URL: "http://cmdb.example.com", App: "a", Secret: "s", User: "u",
		Pause: time.Nanosecond, Parallel: 1, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		f.Fatal(err)
	}

	z.Fuzz(func(t *testing.T, clouds, processes, modules, properties, tree []byte) {
		transport.byCall = map[string][]byte{"search_cloud_area": clouds, "list_process_related_info": processes,
			"find_module_batch": modules, "search_object_attribute": properties, "find_biz_tree_brief_info": tree}
		transport.left = 10
		b, err := client.Read(t.Context(), 2)
		if err != nil {
			var e *gozzard.Error
			if b != nil || !errors.As(err, &e) {
				t.Fatalf("%v, %v", b, err)
			}
			return
		}

		if faults := b.Check(); len(faults) > 0 {
			t.Fatalf("read with faults: %v", faults)
		}
	})
}
