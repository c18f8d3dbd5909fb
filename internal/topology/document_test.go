package topology_test

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

var update = flag.Bool("update", false, "write the golden files")

var sameAddrs = cmpopts.EquateComparable(netip.Addr{})

// sample is the document of the manual.
const sample = `biz: 2
name: 蓝鲸
clouds: [{id: 0, name: default area}]
sets:
  - {id: 5, name: 管控平台, env: 3, modules: [
      {id: 21, name: gse_agent, service_template_id: 26, instances: [
        {id: 5, name: 127.0.0.1_gse_agent, host: {ip: 127.0.0.1, cloud: 0}, processes: [
          {id: 46, name: gse_agent, func_name: gse_agent, template_id: 26, proc_num: 1, priority: 1, user: root,
           work_path: /usr/local/gse, pid_file: /var/run/gse_agent.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh,
           restart_cmd: ./restart.sh, reload_cmd: ./reload.sh, face_stop_cmd: ./kill.sh, timeout: 60,
           start_check_secs: 5}]}]}]}
config_templates: [{id: 2, name: MySQL配置, file_name: mysql.ini, abs_path: /etc, owner: root, group: root,
                    mode: "0644", bind: {templates: [26]}}]
`

func sampled() *topology.Business {
	return &topology.Business{
		ID: 2, Name: "蓝鲸", Clouds: []topology.Cloud{{ID: 0, Name: "default area"}},
		Sets: []topology.Set{{ID: 5, Name: "管控平台", Env: topology.EnvFormal, Modules: []topology.Module{{
			ID: 21, Name: "gse_agent", ServiceTemplate: 26, Instances: []topology.ServiceInstance{{
				ID: 5, Name: "127.0.0.1_gse_agent", Host: topology.Host{IP: netip.MustParseAddr("127.0.0.1")},
				Processes: []topology.Process{{
					ID: 46, Name: "gse_agent", FuncName: "gse_agent", Template: 26, Num: 1, Priority: 1, User: "root",
					WorkPath: "/usr/local/gse", PIDFile: "/var/run/gse_agent.pid",
					Start: "./start.sh", Stop: "./stop.sh", Restart: "./restart.sh", Reload: "./reload.sh",
					ForceStop: "./kill.sh", Timeout: 60, StartCheckSecs: 5,
				}},
			}},
		}}}},
		Templates: []topology.ConfigTemplate{{
			ID: 2, Name: "MySQL配置", FileName: "mysql.ini", Path: "/etc", Owner: "root", Group: "root", Mode: "0644",
			Templates: []int{26},
		}},
	}
}

func TestSample(t *testing.T) {
	b, err := topology.Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampled(), b, sameAddrs); diff != "" {
		t.Error(diff)
	}
}

func TestFormat(t *testing.T) {
	b := sampled()
	b.Sets[0].Modules[0].Instances[0].Processes[0].Start =
		"cd ${bk_set_name} && ./start.sh \"a: b\"\n# twice\t\r\x01\u202e"
	b.Sets[0].Modules[0].Instances[0].Host.IPv6 = netip.MustParseAddr("fe80::1")
	b.Sets[0].Modules[0].Instances[0].Host.Agent = "0123456789"
	b.Clouds = append(b.Clouds, topology.Cloud{ID: 3})
	doc, err := topology.Format(b)
	if err != nil {
		t.Fatal(err)
	}

	golden := filepath.Join("testdata", "format.yaml")

	if *update {
		if err := os.WriteFile(golden, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(doc)); diff != "" {
		t.Error(diff)
	}

	again, err := topology.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, again, sameAddrs); diff != "" {
		t.Error(diff)
	}
}

// TestFormatRefuses: Format rejects what Parse would reject.
func TestFormatRefuses(t *testing.T) {
	b := sampled()
	b.Sets[0].Env = 9
	if _, err := topology.Format(b); gozzard.KindOf(err) != gozzard.ErrInvalid {
		t.Errorf("got %v", err)
	}
}

func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind != gozzard.ErrInvalid {
		t.Fatalf("got %v", err)
	}
	var list []string
	for _, f := range e.Faults {
		list = append(list, f.String())
	}
	return list
}

// TestFaults reads documents with many faults: every fault is listed with its line, in the order of the document.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "faults", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			doc, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			b, err := topology.Parse(doc)
			if b != nil {
				t.Error("half a business was read")
			}

			got := strings.Join(faultsOf(t, err), "\n") + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"

			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}

			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestManyFaults: the list of faults has a limit.
func TestManyFaults(t *testing.T) {
	list := faultsOf(t, func() error {
		_, err := topology.Parse([]byte("biz: 1\nname: x\nclouds: [" + strings.Repeat("{id: -1},\n", 5000) + "]\n"))
		return err
	}())
	// Each of the 5000 has a wrong id, and all but the first have an id that is used already.
	if len(list) != 1001 || list[1000] != "and 8999 more" {
		t.Errorf("%d faults, the last is %q", len(list), list[len(list)-1])
	}
}

func TestJSON(t *testing.T) {
	b, err := topology.Parse([]byte(`{"biz": 2, "name": "x", "sets": [{"id": 1, "name": "s", "env": 1,
		"modules": null}], "clouds": []}`))
	if err != nil {
		t.Fatal(err)
	}

	want := &topology.Business{ID: 2, Name: "x", Sets: []topology.Set{{ID: 1, Name: "s", Env: topology.EnvTest}}}
	if diff := cmp.Diff(want, b, sameAddrs); diff != "" {
		t.Error(diff)
	}

	list := faultsOf(t, func() error {
		_, err := topology.Parse([]byte("{\"biz\": 2,\n \"name\": \"x\"\n \"sets\": []}"))
		return err
	}())

	if len(list) != 1 || !strings.HasPrefix(list[0], "line 3: expected a comma") {
		t.Errorf("got %q", list)
	}
}

// TestSorted: the order of a document does not matter.
func TestSorted(t *testing.T) {
	b, err := topology.Parse([]byte(`
biz: 1
name: x
clouds: [{id: 2, name: b}, {id: 0, name: a}]
sets:
- {id: 2, name: t, env: 1}
- id: 1
  name: s
  env: 1
  modules:
  - {id: 8, name: n}
  - id: 7
    name: m
    instances:
    - {id: 4, name: j, host: {ip: 10.0.0.2}}
    - id: 3
      name: i
      host: {ip: 10.0.0.1}
      processes: [{id: 6, name: b}, {id: 5, name: a}]
config_templates:
- {id: 2, name: u, file_name: f, abs_path: /etc, mode: 644, bind: {templates: [3, 1], processes: [6, 5]}}
- {id: 1, name: t, file_name: f, abs_path: /etc/}
`))
	if err != nil {
		t.Fatal(err)
	}

	again := *b
	again.Sort()

	if diff := cmp.Diff(&again, b, sameAddrs); diff != "" {
		t.Error(diff)
	}
	if b.Sets[0].ID != 1 || b.Sets[0].Modules[0].Instances[0].Processes[0].ID != 5 ||
		b.Templates[1].Processes[0] != 5 || b.Clouds[0].ID != 0 {
		t.Errorf("not sorted: %+v", b)
	}
}
