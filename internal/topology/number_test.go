package topology_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/topology"
)

// run is one process on a host of a module.
type run struct {
	module, host int
	alias        string
	process, num int
}

// businessOf makes a business with one service instance for each run.
func businessOf(runs ...run) *topology.Business {
	modules := map[int]*topology.Module{}
	for _, r := range runs {
		m := modules[r.module]
		if m == nil {
			m = &topology.Module{ID: r.module, Name: fmt.Sprintf("m%d", r.module)}
			modules[r.module] = m
		}
		m.Instances = append(m.Instances, topology.ServiceInstance{
			ID: 1000 + r.process, Name: fmt.Sprintf("i%d", r.process),
			Host:      topology.Host{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(r.host)})},
			Processes: []topology.Process{{ID: r.process, Name: r.alias, Num: r.num}},
		})
	}

	set := topology.Set{ID: 1, Name: "s", Env: topology.EnvFormal}
	for _, m := range modules {
		set.Modules = append(set.Modules, *m)
	}

	b := &topology.Business{ID: 2, Name: "b", Sets: []topology.Set{set}}
	b.Sort()
	return b
}

// written writes numbers as the contract does: ".1: 1→1,2→2".
func written(b *topology.Business, numbers []topology.Numbers) string {
	hosts := map[int]netip.Addr{}
	for _, m := range b.Sets[0].Modules {
		for _, s := range m.Instances {
			for _, p := range s.Processes {
				hosts[p.ID] = s.Host.IP
			}
		}
	}

	var lines []string
	for _, n := range numbers {
		line := fmt.Sprintf(".%d:", hosts[n.Process].As4()[3])
		for local := 1; local <= n.Count; local++ {
			line += fmt.Sprintf(" %d→%d", local, n.Inst(local))
		}
		lines = append(lines, line)
	}

	return strings.Join(lines, "; ")
}

type step struct {
	name string
	runs []run
	want string
}

func follow(t *testing.T, steps []step) {
	t.Helper()
	var numbers []topology.Numbers
	for _, s := range steps {
		b := businessOf(s.runs...)
		next, err := topology.Number(numbers, b)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := written(b, next); got != s.want {
			t.Fatalf("%s:\n got %s\nwant %s", s.name, got, s.want)
		}
		again, err := topology.Number(next, b)
		if err != nil || !slices.Equal(again, next) {
			t.Fatalf("%s: not stable: %v, %v", s.name, again, err)
		}
		numbers = next
	}
}

// TestTrace is the table of section 7 of the contract, step by step.
func TestTrace(t *testing.T) {
	java := func(host, num int) run { return run{21, host, "java", host, num} }
	follow(t, []step{
		{"hosts .1 and .2, num 1,1", []run{java(1, 1), java(2, 1)}, ".1: 1→1; .2: 1→2"},
		{".1 num → 3", []run{java(1, 3), java(2, 1)}, ".1: 1→1 2→2 3→3; .2: 1→4"},
		{".2 num → 2", []run{java(1, 3), java(2, 2)}, ".1: 1→1 2→2 3→3; .2: 1→4 2→5"},
		{"new host .3 num 1", []run{java(1, 3), java(2, 2), java(3, 1)}, ".1: 1→1 2→2 3→3; .2: 1→4 2→5; .3: 1→13"},
		{".2 num → 1", []run{java(1, 3), java(2, 1), java(3, 1)}, ".1: 1→1 2→2 3→3; .2: 1→4; .3: 1→13"},
		{"remove .1", []run{java(2, 1), java(3, 1)}, ".2: 1→1; .3: 1→2"},
	})
}

// TestRules are the rules and the defects of section 7 of the contract, one by one.
func TestRules(t *testing.T) {
	java := func(host, num int) run { return run{21, host, "java", host, num} }
	for name, steps := range map[string][]step{
		"proc_num 0 is 1": {{"", []run{java(1, 0), java(2, 0)}, ".1: 1→1; .2: 1→2"}},
		"rule 1: another M numbers all again, by process id": {
			{"", []run{java(1, 2), java(2, 2), java(3, 2)}, ".1: 1→1 2→2; .2: 1→3 2→4; .3: 1→5 2→6"},
			{"", []run{java(2, 2), java(3, 4)}, ".2: 1→1 2→2; .3: 1→5 2→6 3→7 4→8"},
			{"", []run{java(2, 1), java(3, 1)}, ".2: 1→1; .3: 1→2"},
		},
		"rule 2: grow and shrink below M keep the host's number": {
			{"", []run{java(1, 3), java(2, 1)}, ".1: 1→1 2→2 3→3; .2: 1→4"},
			{"", []run{java(1, 3), java(2, 3)}, ".1: 1→1 2→2 3→3; .2: 1→4 2→5 3→6"},
			{"", []run{java(1, 1), java(2, 3)}, ".1: 1→1; .2: 1→4 2→5 3→6"},
		},
		"rule 2: several new hosts": {
			{"", []run{java(5, 1), java(6, 1)}, ".5: 1→1; .6: 1→2"},
			{"", []run{java(1, 1), java(5, 1), java(6, 1), java(7, 1)}, ".1: 1→3; .5: 1→1; .6: 1→2; .7: 1→6"},
		},
		"rule 2: numbers of those that left are not given again": {
			{"", []run{java(1, 1), java(2, 1), java(3, 1)}, ".1: 1→1; .2: 1→2; .3: 1→3"},
			{"", []run{java(1, 1), java(4, 1)}, ".1: 1→1; .4: 1→5"},
		},
		"rule 3: a removed process": {
			{"", []run{java(1, 1), java(2, 1)}, ".1: 1→1; .2: 1→2"},
			{"", []run{java(2, 1)}, ".2: 1→2"},
		},
		"defect a: shrink and grow on one host while another keeps M": {
			{"", []run{java(1, 2), java(2, 2)}, ".1: 1→1 2→2; .2: 1→3 2→4"},
			{"", []run{java(1, 2), java(2, 1)}, ".1: 1→1 2→2; .2: 1→3"},
			{"", []run{java(1, 2), java(2, 2)}, ".1: 1→1 2→2; .2: 1→3 2→4"},
		},
		"defect b: a process that moves to another module has its instance at once": {
			{"", []run{java(1, 1), java(2, 1)}, ".1: 1→1; .2: 1→2"},
			{"", []run{java(1, 1), {22, 2, "java", 2, 1}}, ".1: 1→1; .2: 1→1"},
		},
		"an alias rename is a new process": {
			{"", []run{java(1, 1), java(2, 1)}, ".1: 1→1; .2: 1→2"},
			{"", []run{java(1, 1), {21, 2, "jvm", 2, 1}}, ".1: 1→1; .2: 1→1"},
			{"and back again", []run{java(1, 1), java(2, 1)}, ".1: 1→1; .2: 1→3"},
		},
		"aliases and modules do not touch each other": {
			{"", []run{{21, 1, "java", 1, 3}, {21, 1, "nginx", 2, 1}, {22, 2, "java", 3, 1}},
				".1: 1→1 2→2 3→3; .1: 1→1; .2: 1→1"},
			{"", []run{{21, 1, "java", 1, 2}, {21, 1, "nginx", 2, 1}, {22, 2, "java", 3, 1}},
				".1: 1→1 2→2; .1: 1→1; .2: 1→1"},
		},
		"section 8: two processes, three instances": {
			{"", []run{{21, 1, "test_process-1", 1, 1}, {21, 1, "test_process-3", 3, 2}}, ".1: 1→1; .1: 1→1 2→2"},
		},
	} {
		t.Run(name, func(t *testing.T) { follow(t, steps) })
	}
}

// TestClash is defect c: one alias on one host in two modules would be one key. The error names both processes.
func TestClash(t *testing.T) {
	b := businessOf(run{21, 1, "java", 46, 1}, run{22, 1, "java", 47, 1})
	_, err := topology.Number(nil, b)
	if err == nil {
		t.Fatal("numbered")
	}

	for _, part := range []string{`"java"`, "10.0.0.1", "process 46 (s.m21", "process 47 (s.m22"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}

	if faults := b.Check(); len(faults) != 1 || !strings.Contains(faults[0].Text, "process 46") {
		t.Errorf("Check says %v", faults)
	}
}

// TestNumbersRunOut: when host numbers are used up, they start again from 1.
func TestNumbersRunOut(t *testing.T) {
	b := businessOf(run{21, 1, "java", 1, 1}, run{21, 2, "java", 2, 1})
	got, err := topology.Number([]topology.Numbers{{Process: 1, Module: 21, Alias: "java", HostNum: 1<<31 - 1, Per: 1,
		Count: 1}}, b)
	if err != nil {
		t.Fatal(err)
	}

	want := []topology.Numbers{
		{Process: 1, Module: 21, Alias: "java", HostNum: 1, Per: 1, Count: 1},
		{Process: 2, Module: 21, Alias: "java", HostNum: 2, Per: 1, Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
