package topology_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

var naming = topology.Naming{SetName: "管控 平台", ModuleName: "web", Alias: "java", Local: 2, Inst: 14}

func TestDefine(t *testing.T) {
	p := &topology.Process{
		Name: "java", FuncName: "java8", User: "app", WorkPath: "/data/${local_inst_id}",
		PIDFile: "/data/${inst_id_0}/x.pid", Start: "./s ${inst_id}",
		Stop: "./t", Restart: "./r", Reload: "./l", ForceStop: "./k ${FuncID}", Timeout: 30, StartCheckSecs: 9,
	}
	policy := gozzard.DefaultPolicy()
	policy.OpTimeout, policy.StartCheckSecs = 30, 9
	want := &gozzard.Spec{
		Identity: gozzard.Identity{ProcName: "java8", SetupPath: "/data/2", PIDPath: "/data/13/x.pid", User: "app"},
		Control:  gozzard.Control{Start: "./s 14", Stop: "./t", Restart: "./r", Reload: "./l", Kill: "./k java"},
		Policy:   policy,
	}
	if diff := cmp.Diff(want, topology.Define(p, naming)); diff != "" {
		t.Error(diff)
	}

	plain := topology.Define(&topology.Process{Name: "java"}, naming)
	if plain.Identity.ProcName != "java" || plain.Policy != gozzard.DefaultPolicy() || plain.Policy.OpTimeout != 60 ||
		plain.Policy.StartCheckSecs != 5 {
		t.Errorf("defaults are %+v", plain)
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"${inst_id}":         "14",
		"${inst_id_0}":       "13",
		"${local_inst_id}":   "2",
		"${local_inst_id0}":  "1",
		"${bk_set_name}":     "管控 平台",
		"${bk_module_name}":  "web",
		"${bk_process_name}": "java",
		"${InstID}":          "14",
		"${InstID0}":         "13",
		"${LocalInstID}":     "2",
		"${LocalInstID0}":    "1",
		"${SetName}":         "管控 平台",
		"${ModuleName}":      "web",
		"${FuncID}":          "java",

		"":                              "",
		"$inst_id {inst_id} $":          "$inst_id {inst_id} $",
		"${ inst_id }":                  "14",
		"${inst_id}${InstID}x${FuncID}": "1414xjava",
		"${INST_ID} ${inst_id0} ${}":    "${INST_ID} ${inst_id0} ${}",
		"${inst_id + 1}":                "${inst_id + 1}",
		"${__import__('os')}":           "${__import__('os')}",
		"${a${inst_id}}":                "${a14}",
		"${inst_id":                     "${inst_id",
		"$${inst_id}":                   "$14",
		"${JAVA_HOME:-/usr}/bin/java":   "${JAVA_HOME:-/usr}/bin/java",
	} {
		if got := topology.Define(&topology.Process{Start: text}, naming).Control.Start; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}

	// Placeholders inside of values are not replaced.
	odd := naming
	odd.SetName = "${inst_id}"
	if got := topology.Define(&topology.Process{Start: "${SetName}"}, odd).Control.Start; got != "${inst_id}" {
		t.Errorf("a value was evaluated: %q", got)
	}
}

// TestNamesTime: a text that is made to be slow takes linear time.
func TestNamesTime(t *testing.T) {
	text := strings.Repeat("${", 1<<20) + "}"
	begin := time.Now()
	if got := topology.Define(&topology.Process{Start: text}, naming).Control.Start; got != text {
		t.Error("changed")
	}
	if spent := time.Since(begin); spent > 10*time.Second {
		t.Errorf("took %v", spent)
	}
}

// TestMissing is the table of section 4.3 of the contract.
func TestMissing(t *testing.T) {
	three := []string{"work_path", "pid_file", "user"}
	for action, want := range map[gozzard.Action][]string{
		gozzard.ActionStart:      append([]string{"start_cmd"}, three...),
		gozzard.ActionStop:       append([]string{"stop_cmd"}, three...),
		gozzard.ActionRestart:    append([]string{"restart_cmd"}, three...),
		gozzard.ActionReload:     append([]string{"reload_cmd"}, three...),
		gozzard.ActionKill:       append([]string{"face_stop_cmd"}, three...),
		gozzard.ActionHost:       append([]string{"start_cmd"}, three...),
		gozzard.ActionUnhost:     nil,
		gozzard.ActionQuery:      nil,
		gozzard.ActionUnregister: nil,
	} {
		if diff := cmp.Diff(want, topology.Missing(&topology.Process{Name: "java"}, action)); diff != "" {
			t.Errorf("%s: %s", action, diff)
		}
	}

	whole := &sampled().Sets[0].Modules[0].Instances[0].Processes[0]
	for action := gozzard.ActionNone; action <= gozzard.ActionUnregister; action++ {
		if got := topology.Missing(whole, action); got != nil {
			t.Errorf("%s: %v", action, got)
		}
	}

	part := *whole
	part.PIDFile = ""
	if got := topology.Missing(&part, gozzard.ActionReload); !cmp.Equal(got, []string{"pid_file"}) {
		t.Errorf("got %v", got)
	}
}
