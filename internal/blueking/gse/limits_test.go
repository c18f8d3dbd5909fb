package gse_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

func TestLimitsAndHealthAreRead(t *testing.T) {
	h, plane := newDoor(t)
	e := send(t, h, bus+"operate_proc/", operate(`spec={`+id+`,"resource":{"cpu":12.5,"mem":30,"fd":100,"disk":1000000,"net":2000000,"act":"restart","samples":5,"enforce":true},
		"monitor_policy":{"auto_type":0,"crontab_rule":"*/5 * * * *","time_zone":"Asia/Shanghai","overlap":"kill","health_interval":15,"health_timeout":3,"health_threshold":2,"health_restart":true}}`))
	if *e.Code != 0 || len(plane.calls) != 1 {
		t.Fatalf("%d %s", *e.Code, *e.Message)
	}

	spec := plane.calls[0].Items[0].Spec
	want := gozzard.Resource{CPU: 12.5, Mem: 30, FD: 100, Disk: 1000000, Net: 2000000, Act: gozzard.ActRestart,
		Samples: 5, Enforce: true}
	if d := cmp.Diff(want, spec.Resource); d != "" {
		t.Error(d)
	}

	policy := gozzard.DefaultPolicy()
	policy.Kind, policy.CrontabRule, policy.TimeZone, policy.Overlap = gozzard.KindPeriodic, "*/5 * * * *",
		"Asia/Shanghai", gozzard.OverlapKill
	policy.HealthInterval, policy.HealthTimeout, policy.HealthThreshold, policy.HealthRestart = 15, 3, 2, true
	if d := cmp.Diff(policy, spec.Policy); d != "" {
		t.Error(d)
	}
}

func TestLimitsAndHealthAreChecked(t *testing.T) {
	for spec, want := range map[string]string{
		`"resource":{"act":"explode"}`:                            "spec.resource.act: must be one of alert, stop, kill, restart",
		`"resource":{"act":1}`:                                    "spec.resource.act: must be a string",
		`"resource":{"samples":-1}`:                               "spec.resource.samples: must be 0 to 1000",
		`"resource":{"enforce":"yes"}`:                            "spec.resource.enforce: must be",
		`"monitor_policy":{"time_zone":"Mars/Olympus"}`:           "spec.monitor_policy.time_zone",
		`"monitor_policy":{"time_zone":"../etc"}`:                 "spec.monitor_policy.time_zone",
		`"monitor_policy":{"time_zone":"Local"}`:                  "spec.monitor_policy.time_zone",
		`"monitor_policy":{"auto_type":0,"crontab_rule":"* * *"}`: `spec.monitor_policy.crontab_rule: "* * *" is not a crontab rule: it has 3 fields, not 5`,
		`"monitor_policy":{"overlap":"both"}`:                     "spec.monitor_policy.overlap: must be one of skip, kill",
		`"monitor_policy":{"health_interval":86401}`:              "spec.monitor_policy.health_interval: must be 0 to 86400",
		`"monitor_policy":{"health_restart":1}`:                   "spec.monitor_policy.health_restart: must be",
	} {
		h, plane := newDoor(t)
		if e := send(t, h, bus+"operate_proc/", operate(`spec={`+id+`,`+spec+
			`}`)); *e.Code != blueking.CodeArgument || !strings.Contains(*e.Message, want) || len(plane.calls) != 0 {
			t.Errorf("%s: %d %s, want %s", spec, *e.Code, *e.Message, want)
		}
	}
}
