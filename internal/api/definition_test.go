package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// fullSpec has a value other than the default in every field.
func fullSpec() *gozzard.Spec {
	return &gozzard.Spec{
		Identity: gozzard.Identity{IndexKey: "i", ProcName: "web", SetupPath: "/opt/web", PIDPath: "/opt/web.pid",
			ConfigPath: "/etc/web", LogPath: "/var/log/web", User: "www"},
		Control: gozzard.Control{Shell: gozzard.ShellSh, Start: "a", Stop: "b", Restart: "c", Reload: "d", Kill: "e",
			Version: "f", Health: "g"},
		Resource: gozzard.Resource{CPU: 50.5, Mem: 20, FD: 7, Disk: 8, Net: 9, Act: gozzard.ActAlert, Samples: 3,
			Enforce: true},
		Policy: gozzard.Policy{Kind: gozzard.KindPeriodic, StartCheckSecs: 0, StopCheckSecs: 2, StartRetries: 3,
			StartInterval: 4, CrontabRule: "* * * * *", OpTimeout: 61, TimeZone: "UTC", Overlap: gozzard.OverlapKill,
			Orphans: gozzard.OrphansWait, HealthInterval: 7, HealthTimeout: 8, HealthThreshold: 9, HealthRestart: true},
		ReportID: 5, ConfigMap: []gozzard.ConfigCheck{{Path: "/etc/a", MD5: "x"}},
	}
}

// A definition that is read and registered again is the same, to the byte.
func TestDefinitionIsReadBack(t *testing.T) {
	s := newServer(t)
	want := fullSpec()
	s.plane.before = gozzard.EncodeSpec(want)

	var page client.DefinitionPage
	s.call(http.MethodGet, "/api/v1/definitions?namespace=shop&name=web&host=a1", "").decode(t, &page)
	if len(page.Definitions) != 1 || page.Count != 1 || page.Next != 0 {
		t.Fatalf("%+v", page)
	}

	d := page.Definitions[0]
	if r := s.call(http.MethodPut, "/api/v1/processes", string(d.Document)); r.code != http.StatusAccepted {
		t.Fatalf("%d %s", r.code, r.body)
	}
	if diff := cmp.Diff(want, s.last(t).Items[0].Spec); diff != "" {
		t.Errorf("(-recorded +registered again):\n%s", diff)
	}
}

// A dry run answers with what would change, and creates no task.
func TestPreview(t *testing.T) {
	s := newServer(t)
	s.plane.before = gozzard.EncodeSpec(fullSpec())
	body := `{"dry_run":true,"namespace":"shop","name":"web","hosts":[{"agent":"a1"}],` +
		`"spec":{"identity":{"proc_name":"web","setup_path":"/opt/web"},"control":{"start_cmd":"new"}}}`

	var p client.Preview
	s.call(http.MethodPut, "/api/v1/processes", body).decode(t, &p)
	fields := strings.Join(p.Processes[0].Fields, "\n")
	for _, want := range []string{`~ command: "a" -> "new"`, `- stop: "b"`, `- schedule: "* * * * *"`} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in\n%s", want, fields)
		}
	}
	if p.Targets != 1 || p.Changed != 1 || p.New+p.Unchanged+p.Rejected != 0 {
		t.Errorf("%+v", p)
	}

	s.plane.before = nil
	p = client.Preview{}
	s.call(http.MethodPut, "/api/v1/processes", body).decode(t, &p)
	if p.New != 1 || p.Processes[0].Definition != "new" {
		t.Errorf("%+v", p)
	}
	for _, req := range []string{`{"action":"stop","dry_run":true,"namespace":"shop","names":["web"],"all":true}`,
		`{"action":"stop","dry_run":true,"namespaces":["shop"],"names":["web"],"all":true}`} {
		p = client.Preview{}
		s.call(http.MethodPost, "/api/v1/operations", req).decode(t, &p)
		if p.Targets == 0 || p.Processes[0].Definition != "" {
			t.Errorf("%+v", p)
		}
	}
	if n := len(s.plane.ops); n != 0 {
		t.Errorf("%d operations", n)
	}
}

// A text that a person types becomes a document and back, and every fault has its line.
func TestParseDefinition(t *testing.T) {
	s := newServer(t)
	parse := func(in client.DefinitionText) (out client.ParsedDefinition) {
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		r := s.call(http.MethodPost, "/api/v1/definitions/parse", string(body))
		if r.code != http.StatusOK {
			t.Fatalf("%d %s", r.code, r.body)
		}
		r.decode(t, &out)
		return out
	}

	// Text to document.
	good := parse(client.DefinitionText{Text: "# mine\nname: web\ncommand: |\n  a\n  b\nhosts:\n  - agent: a1\nnice: 5\n" +
		"umask: '0027'\nlimits: {enforce: true}\n"})
	want := `{"name":"web","command":"a\nb\n","hosts":[{"agent":"a1"}],"nice":5,"umask":"0027","limits":{"enforce":true}}`
	if string(good.Document) != want {
		t.Errorf("document %s", good.Document)
	}

	// Document to text, and the same document again.
	doc := `{"name":"a: b","command":"echo 'x'\n# no comment\n","env":{"A":"true","B":"1.5","C":"- x","D":"","E":"007"},` +
		`"hosts":[{"agent":"a1"}]}`
	text := parse(client.DefinitionText{Document: json.RawMessage(doc)}).Text
	if again := parse(client.DefinitionText{Text: text}); string(again.Document) != doc {
		t.Errorf("text\n%s\nbecomes %s", text, again.Document)
	}

	// Faults have lines.
	bad := parse(client.DefinitionText{Text: "name: web\ncommand: x\nhosts:\n  - agent: a1\nrestart:\n  delay: long\n"})
	if len(bad.Faults) != 1 || bad.Faults[0].Path != "restart.delay" || bad.Faults[0].Line != 6 {
		t.Errorf("%+v", bad.Faults)
	}
	broken := parse(client.DefinitionText{Text: "name: web\n\tcommand: x\n"})
	if len(broken.Faults) != 1 || broken.Faults[0].Line != 2 || broken.Document != nil {
		t.Errorf("%+v", broken)
	}
	if n := len(s.plane.ops); n != 0 {
		t.Errorf("%d operations", n)
	}
}

// The digests that a caller expects reach the control plane; no list and an empty list differ.
func TestExpectedDefinitions(t *testing.T) {
	s := newServer(t)
	for body, want := range map[string][]string{``: nil, `"expect":[],`: {}, `"expect":["d1","d2"],`: {"d1", "d2"}} {
		r := s.call(http.MethodPut, "/api/v1/processes", `{`+body+`"namespace":"shop","name":"web","hosts":[{"agent":"a1"}],"command":"x"}`)
		if r.code != http.StatusAccepted {
			t.Fatalf("%d %s", r.code, r.body)
		}
		if diff := cmp.Diff(want, s.last(t).Expect); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}
