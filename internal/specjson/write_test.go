package specjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// roundTrip writes a definition and reads it again.
func roundTrip(t *testing.T, s *gozzard.Spec) map[string]any {
	t.Helper()
	doc := specjson.Map(specjson.Write(s))
	b, err := json.Marshal(specjson.Object(specjson.Write(s)))
	if err != nil {
		t.Fatal(err)
	}
	again, faults := readDocument(t, string(b))
	if d := cmp.Diff(s, again.Spec); d != "" || faults != nil {
		t.Errorf("%s\n%v\n%s", b, faults, d)
	}
	return doc
}

// TestWriteReadsBack writes what documents of both forms mean, and reads it again.
func TestWriteReadsBack(t *testing.T) {
	flat, _ := readDocument(t, fullDocument)
	roundTrip(t, flat.Spec)
	nested, _ := readSpec(t, fullSpec, strict)
	roundTrip(t, nested)
	old, _ := readSpec(t, `{"identity":{"proc_name":"p","setup_path":"/a"},"control":{"start_cmd":"x"},
		"resource":{"mem":5,"mem_bytes":7,"cpu":3,"cpu_cores":1},
		"monitor_policy":{"auto_type":0,"crontab_rule":" ","stop_check_secs":5,"overlap":"kill"}}`, strict)
	roundTrip(t, old)
}

// TestEveryKeyIsWritten reads the example of each key and looks for the key in what is written.
func TestEveryKeyIsWritten(t *testing.T) {
	for _, k := range specjson.Keys() {
		outer, inner, isPart := strings.Cut(k.Name, ".")
		switch outer {
		case "namespace", "name", "labels", "hosts", "all", "when_offline", "wait_seconds", "spec", "instances", "folder":
			continue // of the document around the definition; a folder has an example of its own below
		}
		text := k.Name + ": " + k.Example + "\n"
		if isPart {
			text = outer + ":\n  " + inner + ": " + k.Example + "\n"
		}
		if outer == "time_zone" || outer == "overlap" {
			text += "schedule: '@daily'\n"
		}
		if outer != "command" {
			text += "command: ./web\n"
		}
		d, faults := readDocument(t, text)
		if faults != nil {
			t.Fatal(text, faults)
		}
		doc := roundTrip(t, d.Spec)
		part, _ := doc[outer].(map[string]any)
		if _, written := part[inner]; doc[outer] == nil || isPart && !written {
			t.Errorf("%s is not written: %v", k.Name, doc)
		}
	}
}

// FuzzDefinition: for any JSON document there are faults, or a definition that is the same after it was written and read
// again. The schema accepts what the program accepts.
func FuzzDefinition(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range []string{`{"command":["a","b c"],"env":{"A":"1"},"memory":"512M","health":"http://127.0.0.1/"}`,
		`{"command":"./a","restart":{"policy":"on-failure","max":3},"rlimits":{"nofile":[1,"unlimited"]},"instances":3}`,
		`{"command":"./a","schedule":"@daily","time_zone":"UTC","logs":{"size":"1M"},"umask":"0027","after":["b"]}`,
		`{"spec":` + fullSpec + `}`, `{"cpu":"50%","spec":{"control":{"start_cmd":"x"}}}`, `{"stop_timeout":"1h30m"}`} {
		z.Add([]byte(s))
	}
	var schema map[string]any
	if err := json.Unmarshal(specjson.Schema(), &schema); err != nil {
		f.Fatal(err)
	}
	z.Fuzz(func(t *testing.T, text []byte) {
		d, faults, ok := tryDocument(text)
		if !ok || faults > 0 {
			return
		}
		if doc, ok := namedDocument(text); ok {
			if why := refuses(schema, doc, ""); why != "" && !strings.Contains(why, ": unknown ") {
				t.Fatalf("%s: the program accepts it, and the schema does not: %s", text, why)
			}
		}
		b, err := json.Marshal(specjson.Map(specjson.Write(d.Spec)))
		if err != nil {
			t.Fatal(err)
		}
		again, faults, ok := tryDocument(b)
		if diff := cmp.Diff(d.Spec, again.Spec); !ok || faults > 0 || diff != "" {
			t.Fatalf("%s\n%s\n%d faults\n%s", text, b, faults, diff)
		}
	})
}
