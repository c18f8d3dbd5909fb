package specjson_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cron"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The rules of the doors.
var (
	loose    = specjson.Rules{}
	complete = specjson.Rules{Complete: true}
	strict   = specjson.Rules{Strict: true}
)

// readSpec reads {"spec": text} and returns its faults, each as "path: text".
func readSpec(t *testing.T, text string, rules specjson.Rules) (*gozzard.Spec, []string) {
	t.Helper()
	doc, err := strictjson.Parse([]byte(`{"spec":` + text + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var faults strictjson.Faults
	root, err := doc.Root(&faults)
	if err != nil {
		t.Fatal(err)
	}
	spec := specjson.ReadSpec(root.Get("spec"), rules)
	return spec, faultTexts(&faults)
}

func faultTexts(f *strictjson.Faults) []string {
	e, _ := f.Err().(*gozzard.Error)
	if e == nil {
		return nil
	}
	var all []string
	for _, fault := range e.Faults {
		all = append(all, fault.Path+": "+fault.Text)
	}
	return all
}

const fullSpec = `{"identity":{"index_key":"k","proc_name":"web","setup_path":"/opt/web","pid_path":"/run/web.pid","config_path":"/etc/web","log_path":"/var/log/web","user":"www"},
	"control":{"start_cmd":"a","stop_cmd":"b","restart_cmd":"c","reload_cmd":"d","kill_cmd":"e","version_cmd":"f","health_cmd":"g"},
	"resource":{"cpu":1.5,"mem":2,"fd":3,"disk":4,"net":5,"act":"stop","samples":6,"enforce":true},
	"monitor_policy":{"auto_type":0,"start_check_secs":1,"stop_check_secs":2,"start_retries":3,"start_interval":4,"op_timeout":5,"crontab_rule":"@daily","time_zone":"UTC",
		"overlap":"kill","orphans":"wait","health_interval":6,"health_timeout":7,"health_threshold":8,"health_restart":true},
	"warn_report_policy":{"report_id":9},"configmap":[{"path":"/etc/x","md5":"aa"}]}`

func TestSpecIsReadAlikeUnderAllRules(t *testing.T) {
	want := &gozzard.Spec{
		Identity: gozzard.Identity{IndexKey: "k", ProcName: "web", SetupPath: "/opt/web", PIDPath: "/run/web.pid",
			ConfigPath: "/etc/web", LogPath: "/var/log/web", User: "www"},
		Control: gozzard.Control{Start: "a", Stop: "b", Restart: "c", Reload: "d", Kill: "e", Version: "f",
			Health: "g"},
		Resource: gozzard.Resource{CPU: 1.5, Mem: 2, FD: 3, Disk: 4, Net: 5, Act: gozzard.ActStop, Samples: 6,
			Enforce: true},
		Policy: gozzard.Policy{Kind: gozzard.KindPeriodic, StartCheckSecs: 1, StopCheckSecs: 2, StartRetries: 3,
			StartInterval: 4, OpTimeout: 5, CrontabRule: "@daily", TimeZone: "UTC",
			Overlap: gozzard.OverlapKill, Orphans: gozzard.OrphansWait, HealthInterval: 6,
			HealthTimeout: 7, HealthThreshold: 8, HealthRestart: true},
		ReportID: 9, ConfigMap: []gozzard.ConfigCheck{{Path: "/etc/x", MD5: "aa"}},
	}
	for _, rules := range []specjson.Rules{loose, complete, strict, {Complete: true, Strict: true}} {
		got, faults := readSpec(t, fullSpec, rules)
		if d := cmp.Diff(want, got); d != "" || faults != nil {
			t.Errorf("%+v: %v\n%s", rules, faults, d)
		}
	}
}

func TestSpecRules(t *testing.T) {
	// with adds members to a definition whose identity is valid under every rule.
	with := func(members string) string {
		return `{"identity":{"proc_name":"p","setup_path":"/a","pid_path":"/b","user":"u"},` + members + `}`
	}

	identity := func(members string) string { return `{"identity":{` + members + `}}` }
	const wrongZone = `spec.monitor_policy.time_zone: "Mars/Olympus" is not a time zone such as Asia/Shanghai`
	const wrongKind = "spec.monitor_policy.auto_type: must be 0 to 2, is 3"
	const unusedRule = `spec.monitor_policy.crontab_rule: is used only with auto_type 0 (periodic), and `
	const wrongRule = `spec.monitor_policy.crontab_rule: "61 * * * *" is not a crontab rule: minute "61": "61" is not from 0 to 59`
	for _, c := range []struct {
		name, spec              string
		loose, complete, strict string // the faults, one a line
	}{
		{"no object", `[]`, "spec: must be an object, is a list", "spec: must be an object, is a list",
			"spec: must be an object, is a list"},
		{"no identity", `{"control":{}}`, "spec.identity: required", "spec.identity: required",
			"spec.identity: required"},
		{"no user", identity(`"proc_name":"p","setup_path":"/a","pid_path":"/b"`), "", "", ""},
		{"no pid_path", identity(`"proc_name":"p","setup_path":"/a","user":"u"`), "",
			"spec.identity.pid_path: required where a command is run", ""},
		{"no setup_path", identity(`"proc_name":"p","pid_path":"/b","user":"u"`), "",
			"spec.identity.setup_path: required where a command is run", "spec.identity.setup_path: required"},
		{"unclean", identity(`"proc_name":"p","setup_path":"/a/../b","pid_path":"/b","user":"u"`), "",
			`spec.identity.setup_path: "/a/../b" is not a clean absolute path`,
			`spec.identity.setup_path: "/a/../b" is not a clean absolute path`},
		{"path for a name", identity(`"proc_name":"/bin/p","setup_path":"/a","pid_path":"/b","user":"u"`), "", "",
			"spec.identity.proc_name: is the name of a program as its system shows it, not a path"},
		{"unknown part", with(`"contol":{}`), "", "", `spec.contol: unknown, did you mean "control"?`},
		{"unknown member", with(`"configmap":[{"path":"/x","md6":""}]`), "", "",
			`spec.configmap[0].md6: unknown, did you mean "md5"?`},
		{"no path to check", with(`"configmap":[{"md5":""}]`), "", "",
			`spec.configmap[0].path: "" is not a clean absolute path`},
		{"misspelt as in the documents", with(`"monitor_policy":{"crotab_rule":"@daily"}`), "", "",
			`spec.monitor_policy.crotab_rule: unknown, did you mean "crontab_rule"?`},
		{"wrong rule", with(`"monitor_policy":{"auto_type":0,"crontab_rule":"61 * * * *"}`), wrongRule, wrongRule,
			wrongRule},
		{"rule of a process that stays", with(`"monitor_policy":{"auto_type":1,"crontab_rule":"61 * * * *"}`),
			"", "", unusedRule + "auto_type is 1: set auto_type to 0, or remove the rule"},
		{"rule of a one-shot process", with(`"monitor_policy":{"auto_type":2,"crontab_rule":"@daily"}`),
			"", "", unusedRule + "auto_type is 2: set auto_type to 0, or remove the rule"},
		{"rule without a type", with(`"monitor_policy":{"crontab_rule":"@daily"}`),
			"", "", unusedRule + "auto_type is 1: set auto_type to 0, or remove the rule"},
		{"blank rule of a process that stays", with(`"monitor_policy":{"auto_type":1,"crontab_rule":" "}`), "", "", ""},
		{"periodic without a rule", with(`"monitor_policy":{"auto_type":0,"crontab_rule":" "}`), "", "", ""},
		{"wrong zone", with(`"monitor_policy":{"auto_type":0,"crontab_rule":"@daily","time_zone":"Mars/Olympus"}`),
			wrongZone, wrongZone, wrongZone},
		{"both", with(`"monitor_policy":{"auto_type":0,"crontab_rule":"61 * * * *","time_zone":"Mars/Olympus"}`),
			wrongRule + "\n" + wrongZone, wrongRule + "\n" + wrongZone, wrongRule + "\n" + wrongZone},
		{"a kind that is none", with(`"monitor_policy":{"auto_type":3,"crontab_rule":"61 * * * *"}`), wrongKind,
			wrongKind, wrongKind},
	} {
		for rules, want := range map[specjson.Rules]string{loose: c.loose, complete: c.complete, strict: c.strict} {
			if _, faults := readSpec(t, c.spec, rules); strings.Join(faults, "\n") != want {
				t.Errorf("%s under %+v: %q, want %q", c.name, rules, faults, want)
			}
		}
	}

	if _, faults := readSpec(t, with(`"monitor_policy":{"auto_type":0,"crotab_rule":"@never"}`),
		complete); !slices.Equal(faults,
		[]string{`spec.monitor_policy.crotab_rule: "@never" is not a crontab rule: @never is not known`}) {
		t.Errorf("the fault is not where the rule is: %q", faults)
	}
}

func TestSpecBoundsAreTheSameUnderAllRules(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	blank := func(n int) string { return `"` + strings.Repeat(" ", n) + `"` } // another rule needs auto_type 0
	for _, c := range []struct {
		part, name, most, over string // a member with the largest value, and one beyond
	}{
		{"control", "start_cmd", text(16384), text(16385)},
		{"resource", "cpu", "100", "100.5"},
		{"resource", "samples", "1000", "1001"},
		{"monitor_policy", "crontab_rule", blank(cron.MaxRuleBytes), blank(cron.MaxRuleBytes + 1)},
		{"monitor_policy", "op_timeout", "86400", "86401"},
		{"monitor_policy", "start_retries", "100000", "100001"},
		{"monitor_policy", "health_threshold", "1000", "1001"},
		{"warn_report_policy", "report_id", "9007199254740992", "9007199254740993"},
	} {
		for _, rules := range []specjson.Rules{loose, complete, strict} {
			spec := func(value string) string {
				return fmt.Sprintf(`{"identity":{"proc_name":"p","setup_path":"/a","pid_path":"/b","user":"u"},%q:{%q:%s}}`, c.part, c.name, value)
			}
			if _, faults := readSpec(t, spec(c.most), rules); faults != nil {
				t.Errorf("%s.%s under %+v: %.200q", c.part, c.name, rules, faults)
			}
			if _, faults := readSpec(t, spec(c.over), rules); len(faults) != 1 ||
				!strings.HasPrefix(faults[0], "spec."+c.part+"."+c.name+": ") {
				t.Errorf("%s.%s beyond its bound under %+v: %.200q", c.part, c.name, rules, faults)
			}
		}
	}
}

func TestLabels(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                 "",
		`{"a":"","b":46}`:      "",
		`[]`:                   "labels: must be an object, is a list",
		`{"a/b":"x"}`:          "labels.a/b: the label's name '/' may not stand",
		`{"e\u0301":"x"}`:      "is not in Unicode normal form C",
		`{"a":"e\u0301"}`:      `labels.a: "e\u0301" is not in Unicode normal form C`,
		`{"a":"\u202e"}`:       `labels.a: "\u202e" has control or direction characters`,
		`{"a":null}`:           "labels.a: required, is null",
		`{"a":true}`:           "labels.a: must be a string or a number",
		`{"a":"` + long + `"}`: "labels.a: has 257 bytes, at most 256 are allowed",
	} {
		doc, err := strictjson.Parse([]byte(`{"labels":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		var faults strictjson.Faults
		root, err := doc.Root(&faults)
		if err != nil {
			t.Fatal(err)
		}
		labels := specjson.ReadLabels(root.Get("labels"))
		got := strings.Join(faultTexts(&faults), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if text == `{"a":"","b":46}` && !cmp.Equal(labels, map[string]string{"a": "", "b": "46"}) {
			t.Errorf("%v", labels)
		}
	}
}

var long = strings.Repeat("x", gozzard.MaxProcessNameBytes+1)
