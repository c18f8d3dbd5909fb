package topology_test

import (
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/topology"
)

var flat = topology.Flat{Names: specjson.FlatNames(), Read: specjson.ReadProcess}

const flatHead = `biz: 2
name: shop
sets:
  - id: 1
    name: s
    env: 3
    modules:
      - id: 2
        name: m
        instances:
          - id: 3
            name: i
            host: {cloud: 0, ip: 10.0.0.1}
            processes:
`

// oneProcess reads a business with one process that has the given keys.
func oneProcess(t *testing.T, keys string) (*topology.Business, *topology.Process, []gozzard.Fault) {
	t.Helper()
	text := flatHead + "              - id: 4\n                name: web\n"
	for line := range strings.Lines(keys) {
		text += "                " + line
	}
	b, err := topology.Parse([]byte(text), flat)
	if err != nil {
		var e *gozzard.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		return nil, nil, e.Faults
	}
	return b, &b.Sets[0].Modules[0].Instances[0].Processes[0], nil
}

// TestFlatKeysOfABusiness reads flat keys, writes them again, and makes the definition of an instance.
func TestFlatKeysOfABusiness(t *testing.T) {
	b, p, faults := oneProcess(t, `command: [/opt/web/web, --id, "${inst_id}"]
folder: /opt/web
pid_file: /opt/web/web.pid
user: www
stop: ./stop.sh
env: {MODE: prod, ID: "${inst_id}", N: 5, TEXT: 'a "b" <c>'}
umask: "0027"
memory: 512M
after: [redis_1]
restart: {policy: on-failure, max: 3}
instances: 2
`)
	if faults != nil {
		t.Fatal(faults)
	}
	want := gozzard.Spec{Policy: gozzard.DefaultPolicy(), After: []string{"redis_1"}}
	want.Identity = gozzard.Identity{ProcName: "web", SetupPath: "/opt/web", PIDPath: "/opt/web/web.pid", User: "www"}
	want.Control = gozzard.Control{Start: "exec /opt/web/web --id '7'", Stop: "./stop.sh"}
	want.Resource.MemB = 512 << 20
	want.Policy.Restart, want.Policy.RestartMax = gozzard.RestartOnFailure, 3
	want.Exec = gozzard.Exec{Umask: "0027", Env: map[string]string{"MODE": "prod", "ID": "7", "N": "5",
		"TEXT": `a "b" <c>`, "INSTANCE": "2"}}
	n := topology.Naming{Alias: "web", Local: 2, Inst: 7}
	if d := gocmp.Diff(&want, define(t, p, n)); d != "" {
		t.Error(d)
	}
	if p.Count() != 2 || p.FuncName != "web" {
		t.Errorf("%+v", p)
	}

	text, err := topology.Format(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := topology.Parse(text, flat)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if d := gocmp.Diff(b, again, sameAddrs); d != "" {
		t.Errorf("%s\n%s", d, text)
	}

	// A change of a flat key is a change.
	changed, err := topology.Parse([]byte(strings.Replace(string(text), `"512M"`, `"1G"`, 1)), flat)
	if err != nil {
		t.Fatal(err)
	}
	_, plan := topology.Compare(b, nil, changed, nil)
	if len(plan.Changed) != 1 || strings.Join(plan.Changed[0].Fields, " ") != `memory: "512M" -> "1G"` {
		t.Errorf("%+v", plan)
	}
}

func TestFlatFaultsOfABusiness(t *testing.T) {
	for keys, want := range map[string]string{
		"command: a\nstart_cmd: b\n":  "line 17: sets[0].modules[0].instances[0].processes[0].command: is given twice: start_cmd is another name of it",
		"command: a\nmemory: lots\n":  "line 18: sets[0].modules[0].instances[0].processes[0].memory: must be a size such as 512M",
		"health:\n  htp: x\n":         `line 18: sets[0].modules[0].instances[0].processes[0].health.htp: unknown, did you mean "http"?`,
		"memroy: 512M\n":              `line 17: sets[0].modules[0].instances[0].processes[0].memroy: unknown, did you mean "memory"?`,
		"instances: 2\nproc_num: 2\n": "instances: is given twice: proc_num is another name of it",
	} {
		_, _, faults := oneProcess(t, keys)
		if len(faults) != 1 || !strings.Contains(faults[0].String(), want) {
			t.Errorf("%q\n got %v\nwant %s", keys, faults, want)
		}
	}
}

// TestOldBusinessIsDefinedAsBefore checks that the definition of a process without flat keys has its old bytes.
func TestOldBusinessIsDefinedAsBefore(t *testing.T) {
	_, p, faults := oneProcess(t, "start_cmd: ./a\nwork_path: /w\npid_file: /p\nuser: u\nproc_num: 2\n")
	if faults != nil {
		t.Fatal(faults)
	}
	const want = `{"identity":{"proc_name":"web","setup_path":"/w","pid_path":"/p","user":"u"},"control":{"start_cmd":"./a"},` +
		`"resource":{},"policy":{"kind":1,"start_check_secs":5,"stop_check_secs":5,"start_retries":4,"start_interval":10,` +
		`"op_timeout":60}}`
	if got := string(gozzard.EncodeSpec(define(t, p, topology.Naming{Alias: "web", Local: 1, Inst: 1}))); got != want {
		t.Error(got)
	}
}
