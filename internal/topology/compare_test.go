package topology_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/topology"
)

func planned(t *testing.T, old, new *topology.Business) (topology.Change, []string) {
	t.Helper()
	var oldN []topology.Numbers
	var err error

	if old != nil {
		if oldN, err = topology.Number(nil, old); err != nil {
			t.Fatal(err)
		}
	}

	newN, err := topology.Number(oldN, new)
	if err != nil {
		t.Fatal(err)
	}

	change, plan := topology.Compare(old, oldN, new, newN)
	var lines []string
	for sign, items := range map[string][]topology.Item{"+": plan.Added, "~": plan.Changed, "-": plan.Removed} {
		for _, i := range items {
			lines = append(lines, strings.TrimSpace(sign+" "+i.Kind+" "+i.Name+" "+strings.Join(i.Fields, ", ")))
		}
	}

	return change, lines
}

func TestPlan(t *testing.T) {
	only := func(name string, want string, edit func(b *topology.Business)) {
		t.Helper()
		b := sampled()
		edit(b)
		if _, lines := planned(t, sampled(), b); len(lines) != 1 || lines[0] != want {
			t.Errorf("%s: got %q, want %q", name, lines, want)
		}
	}

	process := func(b *topology.Business) *topology.Process { return &b.Sets[0].Modules[0].Instances[0].Processes[0] }
	const dotted = "管控平台.gse_agent.127.0.0.1_gse_agent.gse_agent"
	only("name", "~ business BlueKing name: 蓝鲸 -> BlueKing", func(b *topology.Business) { b.Name = "BlueKing" })
	only("priority", "~ process "+dotted+" priority: 1 -> 2", func(b *topology.Business) { process(b).Priority = 2 })

	only("command", `~ process `+dotted+` start_cmd: ./start.sh -> "", timeout: 60 -> 0`, func(b *topology.Business) {
		process(b).Start, process(b).Timeout = "", 0
	})

	only("env", "~ set 管控平台 env: 3 -> 1", func(b *topology.Business) { b.Sets[0].Env = 1 })

	only("module", "~ module 管控平台.gse_agent service_template_id: 26 -> 0",
		func(b *topology.Business) { b.Sets[0].Modules[0].ServiceTemplate = 0 })

	only("cloud", "+ cloud second", func(b *topology.Business) {
		b.Clouds = append(b.Clouds, topology.Cloud{ID: 1, Name: "second"})
	})

	only("binding", "~ config template MySQL配置 bind.templates: [26] -> [26 27]", func(b *topology.Business) {
		b.Templates[0].Templates = []int{26, 27}
	})

	only("template", "- config template MySQL配置", func(b *topology.Business) { b.Templates = nil })

	only("agent", `~ service instance 管控平台.gse_agent.127.0.0.1_gse_agent host.agent_id: "" -> a1`,
		func(b *topology.Business) {
			b.Sets[0].Modules[0].Instances[0].Host.Agent = "a1"
		})

	only("process gone", "- process "+dotted,
		func(b *topology.Business) { b.Sets[0].Modules[0].Instances[0].Processes = nil })

	if change, lines := planned(t, sampled(), sampled()); len(lines) != 0 || len(change.PutServices) != 0 {
		t.Errorf("nothing changed: %v", lines)
	}
	if _, lines := planned(t, nil, &topology.Business{ID: 3, Name: "new"}); len(lines) != 1 ||
		lines[0] != "+ business new" {
		t.Errorf("got %q", lines)
	}
}

// TestPlanNumbers: when a process gets more instances, the plan shows which other processes get new numbers.
func TestPlanNumbers(t *testing.T) {
	before := businessOf(run{21, 1, "java", 1, 1}, run{21, 2, "java", 2, 1})
	after := businessOf(run{21, 1, "java", 1, 3}, run{21, 2, "java", 2, 1})
	change, lines := planned(t, before, after)
	if len(lines) != 2 || lines[1] != "~ process s.m21.i2.java inst_id: 2 -> 4" {
		t.Errorf("got %q", lines)
	}

	want := []topology.Numbers{
		{Process: 1, Module: 21, Alias: "java", HostNum: 1, Per: 3, Count: 3},
		{Process: 2, Module: 21, Alias: "java", HostNum: 2, Per: 3, Count: 1},
	}
	if diff := cmp.Diff(want, change.PutNumbers); diff != "" {
		t.Error(diff)
	}
	if len(change.PutServices) != 1 { // only what the document changed is written
		t.Errorf("services: %v", change.PutServices)
	}
}

func TestKeep(t *testing.T) {
	old := businessOf(run{21, 1, "a", 1, 1}, run{21, 1, "b", 2, 1}, run{21, 1, "c", 3, 1})
	old.Templates = []topology.ConfigTemplate{
		{ID: 1, Name: "t", FileName: "f", Path: "/etc", Templates: []int{9}, Processes: []int{1, 2, 3}},
		{ID: 2, Name: "u", FileName: "f", Path: "/etc", Processes: []int{2}},
	}
	b := businessOf(run{21, 1, "a", 1, 1}, run{21, 1, "c", 3, 1})
	b.Name = "business 2"
	b.Sets[0].Modules[0].Instances[1].Processes[0].Template = 9
	b.Keep(old)
	want := []topology.ConfigTemplate{
		{ID: 1, Name: "t", FileName: "f", Path: "/etc", Templates: []int{9}, Processes: []int{1}},
		{ID: 2, Name: "u", FileName: "f", Path: "/etc"},
	}
	if diff := cmp.Diff(want, b.Templates); diff != "" {
		t.Error(diff)
	}
	if faults := b.Check(); len(faults) > 0 || b.Name != "b" {
		t.Errorf("%q has faults: %v", b.Name, faults)
	}
	if len(old.Templates[0].Processes) != 3 {
		t.Error("the old state was changed")
	}
}
