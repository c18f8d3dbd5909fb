package gozzard_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

func TestSpecEncoding(t *testing.T) {
	spec := &gozzard.Spec{
		Identity:  gozzard.Identity{ProcName: "进程", SetupPath: "/opt/x", User: "root", IndexKey: "<&>"},
		Control:   gozzard.Control{Start: "./start.sh \"a b\" && true"},
		Resource:  gozzard.Resource{CPU: 12.5, FD: 1 << 40},
		Policy:    gozzard.DefaultPolicy(),
		ReportID:  7,
		ConfigMap: []gozzard.ConfigCheck{{Path: "/etc/x", MD5: "00"}},
	}
	b := gozzard.EncodeSpec(spec)
	back, err := gozzard.DecodeSpec(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, spec) {
		t.Errorf("%+v is read back as %+v", spec, back)
	}
	if again := gozzard.EncodeSpec(back); string(again) != string(b) {
		t.Errorf("the bytes are not stable:\n%s\n%s", b, again)
	}
	if _, err := gozzard.DecodeSpec([]byte("{")); err == nil {
		t.Error("half a definition is taken")
	}
}

func TestSpecCommandAndBudget(t *testing.T) {
	spec := &gozzard.Spec{
		Control: gozzard.Control{Start: "start", Stop: "stop", Restart: "restart", Reload: "reload", Kill: "kill",
			Version: "version"},
		Policy: gozzard.Policy{OpTimeout: 60, StartCheckSecs: 5, StopCheckSecs: 7},
	}
	for _, tt := range []struct {
		action  gozzard.Action
		command string
		budget  time.Duration
	}{
		{gozzard.ActionStart, "start", 65 * time.Second},
		{gozzard.ActionStop, "stop", 74 * time.Second},
		{gozzard.ActionKill, "kill", 74 * time.Second},
		{gozzard.ActionRestart, "restart", 65 * time.Second},
		{gozzard.ActionReload, "reload", 60 * time.Second},
		{gozzard.ActionQuery, "", 0},
		{gozzard.ActionUnregister, "", 0},
	} {
		if got := spec.Command(tt.action); got != tt.command {
			t.Errorf("%v runs %q, want %q", tt.action, got, tt.command)
		}
		if got := spec.Budget(tt.action); got != tt.budget {
			t.Errorf("%v may take %v, want %v", tt.action, got, tt.budget)
		}
	}

	spec.Control.Restart = "" // then it is a stop and a start
	if got := spec.Budget(gozzard.ActionRestart); got != 139*time.Second {
		t.Errorf("a restart made of stop and start may take %v", got)
	}
}
