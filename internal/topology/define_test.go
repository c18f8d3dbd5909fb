package topology_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

var naming = topology.Naming{SetName: "管控 平台", ModuleName: "web", Alias: "java", Local: 2, Inst: 14}

// define makes a definition whose templates can be rendered.
func define(t *testing.T, p *topology.Process, n topology.Naming) *gozzard.Spec {
	t.Helper()
	spec, err := new(topology.Definer).Define(context.Background(), p, n)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

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
	if diff := cmp.Diff(want, define(t, p, naming)); diff != "" {
		t.Error(diff)
	}

	plain := define(t, &topology.Process{Name: "java"}, naming)
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
		"$${inst_id}":                   "$14",
		"date +%s | tee $(hostname)":    "date +%s | tee $(hostname)",

		"./start.sh mk${8000 + LocalInstID}":                          "./start.sh mk8002",
		"${'%03d' % inst_id} ${FuncID.upper()}":                       "014 JAVA",
		"% if local_inst_id == 1:\n./first\n% else:\n./rest\n% endif": "./rest\n",
		"## why\n./start": "./start",
		"./a \\\n b":      "./a  b",
	} {
		if got := define(t, &topology.Process{Start: text}, naming).Control.Start; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}

	// Templates inside of values are not rendered.
	odd := naming
	odd.SetName = "${inst_id}"
	for _, text := range []string{"${SetName}", "${SetName + ''}"} {
		if got := define(t, &topology.Process{Start: text}, odd).Control.Start; got != "${inst_id}" {
			t.Errorf("a value was evaluated: %q", got)
		}
	}
}

// TestUnknownNames: what cannot be rendered is an error with the attribute, the line and the text. It never reaches a shell.
func TestUnknownNames(t *testing.T) {
	for text, says := range map[string]string{
		"./start.sh mk${nope}":        "start_cmd of process 9 cannot be rendered: line 1: ./start.sh mk${nope}: Undefined",
		"${INST_ID} ${inst_id0} ${}":  "Undefined",
		"${__import__('os')}":         "'Undefined' object is not callable",
		"${a${inst_id}}":              "line 1",
		"${inst_id":                   "Expected: ",
		"${JAVA_HOME:-/usr}/bin/java": "line 1: ${JAVA_HOME:-/usr}/bin/java: (SyntaxError)",
		"a\n${1/0}":                   "line 2: ${1/0}: division by zero",
		"${'x' * 10 ** 9}":            "memory",
		"<% while True: pass %>":      "steps",
		"${cc}":                       "Undefined",
		"${chr(0)}":                   "start_cmd of process 9 has a NUL character",
	} {
		_, err := new(topology.Definer).Define(context.Background(), &topology.Process{ID: 9, Start: text}, naming)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}

	// A path is clean when it is rendered, too.
	for _, p := range []topology.Process{{WorkPath: "/data/${'..' + '/etc'}"}, {PIDFile: "${FuncID}/x.pid"},
		{WorkPath: "/data/${'a\\nb'}"}, {WorkPath: "/${'a' * 5000}"}} {
		if _, err := new(topology.Definer).Define(context.Background(), &p, naming); err == nil ||
			!strings.Contains(err.Error(), "clean absolute path") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestTD30TemplatesOfARequest: the templates of one request share a time. Texts with names only are no burden and go on.
func TestTD30TemplatesOfARequest(t *testing.T) {
	var d topology.Definer
	d.Spend(31 * time.Second)
	if _, err := d.Define(context.Background(), &topology.Process{Start: "./a ${1 + 1}"}, naming); err == nil ||
		!strings.Contains(err.Error(), "took more than 30s together") {
		t.Errorf("got %v", err)
	}
	if _, err := d.Define(context.Background(), &topology.Process{Start: "./a ${inst_id}"}, naming); err != nil {
		t.Error(err)
	}
}

// TestNamesTime: a text that is made to be slow ends soon.
func TestNamesTime(t *testing.T) {
	begin := time.Now()
	for _, text := range []string{strings.Repeat("${", 8<<10), strings.Repeat("${inst_id ", 1<<10), strings.Repeat("<%", 8<<10)} {
		if _, err := new(topology.Definer).Define(context.Background(), &topology.Process{Start: text}, naming); err == nil {
			t.Errorf("%.20q was rendered", text)
		}
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
