//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestDocumentedExamples sends the requests of the callers' documentation, verbatim except for host and credentials,
// against a real process. The answers must have the documented shape field by field. testdata has the documented sample
// answers, with a missing comma added.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1, "--cloud", "1")
	fx := ft.NewDaemon(t, t.TempDir(), "gzseed")
	hosts := `[{"ip": "127.0.0.1", "bk_cloud_id": 1, "bk_supplier_id": 2}]`

	call := func(name, body string) json.RawMessage {
		t.Helper()
		var b ft.J
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			t.Fatal(err)
		}
		ans := d.Call(name, b)
		if !ans.Result || ans.Code != 0 || ans.Message != "success" {
			t.Fatalf("%s: %s", name, ans.Raw)
		}
		return ans.Data
	}

	spec, _ := json.Marshal(fx.Spec(nil))
	call("register_proc_info",
		fmt.Sprintf(`{"meta":{"namespace":"gse","name":"proc-test","labels":{"proc_name":"proc-test"}},"hosts":%s,"spec":%s}`, hosts, spec))
	var op struct {
		TaskID string `json:"task_id"`
	}
	data := call("operate_proc",
		`{"meta": {"namespace": "gse", "name": "proc-test", "labels": {"proc_name": "proc-test"}}, "op_type": 0, "hosts": `+hosts+`}`)
	sameShape(t, "003", data)

	if err := json.Unmarshal(data, &op); err != nil {
		t.Fatal(err)
	}
	if e := d.Await(op.TaskID)["1:2:127.0.0.1:gse:proc-test"]; e.Code != 0 || e.Msg != "success" {
		t.Fatalf("%+v", e)
	}

	asked := `{"meta": {"namespace": "gse", "name": "proc-test", "labels": {"procname": "proc-test"}}, "hosts": ` +
		hosts + `}`
	sameShape(t, "000", call("get_proc_status", asked))
	sameShape(t, "001", call("sync_proc_status", `{"meta": {"namespace": "gse"}, "page": {"start": 0, "limit": 1000}}`))
	var st struct {
		Infos []ft.Info `json:"proc_infos"`
	}
	if err := json.Unmarshal(call("get_proc_status", asked), &st); err != nil {
		t.Fatal(err)
	}
	if i := st.Infos[0]; i.PID != fx.PID() || i.Flag != 1 || i.Status != 1 || i.Host.Supplier != 2 ||
		i.Host.Cloud != 1 || i.Meta.Labels["proc_name"] != "proc-test" {
		t.Fatalf("%+v", i)
	}
}

// sameShape compares an answer's data with a documented sample: it has every documented field with the documented type.
func sameShape(t *testing.T, sample string, data json.RawMessage) {
	t.Helper()
	b, err := os.ReadFile("testdata/seed-" + sample + ".json")
	if err != nil {
		t.Fatal(err)
	}

	var doc struct{ Data any }
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}

	var got any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}

	want, have := shape("", doc.Data), shape("", got)
	for _, w := range want {
		if !slices.Contains(have, w) {
			t.Errorf("%s: the answer has no %s; it has %v", sample, w, have)
		}
	}
}

// shape lists paths with their JSON types.
func shape(path string, v any) []string {
	var out []string

	switch x := v.(type) {
	case map[string]any:
		out = append(out, path+" object")
		for k, e := range x {
			out = append(out, shape(path+"."+k, e)...)
		}
	case []any:
		out = append(out, path+" array")
		for _, e := range x {
			out = append(out, shape(path+"[]", e)...)
		}
	default:
		out = append(out, fmt.Sprintf("%s %T", path, x))
	}

	sort.Strings(out)
	return slices.Compact(out)
}
