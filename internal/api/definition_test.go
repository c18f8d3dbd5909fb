package api_test

import (
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
