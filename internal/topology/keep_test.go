package topology_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/topology"
)

// withServices is a business with service instances in one module.
func withServices(procs ...topology.ServiceInstance) *topology.Business {
	b := &topology.Business{ID: 2, Name: "b", Clouds: []topology.Cloud{{ID: 0, Name: "default"}}}
	b.Sets = []topology.Set{{ID: 5, Name: "s", Env: topology.EnvFormal, Modules: []topology.Module{{ID: 21, Name: "m", Instances: procs}}}}
	return b
}

func on(service int, ip string, procs ...topology.Process) topology.ServiceInstance {
	return topology.ServiceInstance{ID: service, Name: fmt.Sprint("i", service), Host: topology.Host{IP: netip.MustParseAddr(ip)}, Processes: procs}
}

func proc(id int, name string) topology.Process { return topology.Process{ID: id, Name: name} }

// shown lists the processes of a business with their hosts.
func shown(b *topology.Business) (list []string) {
	for _, s := range b.Sets {
		for _, m := range s.Modules {
			for _, i := range m.Instances {
				for _, p := range i.Processes {
					list = append(list, fmt.Sprintf("%d %s on %s", p.ID, p.Name, i.Host.IP))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

func TestKeepProcesses(t *testing.T) {
	const one, two = "10.0.0.1", "10.0.0.2"
	old := func() *topology.Business {
		return withServices(on(1, one, proc(41, "web"), proc(42, "db")), on(2, two, proc(43, "web")))
	}
	for name, c := range map[string]struct {
		now  *topology.Business
		want []string
		left int
	}{
		"renamed": {withServices(on(1, one, proc(41, "web2"), proc(42, "db")), on(2, two, proc(43, "web"))),
			[]string{"41 web on 10.0.0.1", "42 db on 10.0.0.1", "43 web on 10.0.0.2"}, 1},
		"gone": {withServices(on(1, one, proc(42, "db"))), []string{"41 web on 10.0.0.1", "42 db on 10.0.0.1"}, 1},
		"its service instance is gone": {withServices(on(3, one, proc(44, "new"))),
			[]string{"41 web on 10.0.0.1", "44 new on 10.0.0.1"}, 1},
		"everything is gone": {&topology.Business{ID: 2, Name: "b"}, []string{"41 web on 10.0.0.1"}, 1},
		"its name is taken": {withServices(on(1, one, proc(42, "db")), on(3, one, proc(40, "web"))),
			[]string{"41 web on 10.0.0.1", "42 db on 10.0.0.1"}, 2},
		"on another host": {withServices(on(1, two, proc(41, "web"), proc(42, "db"), proc(45, "extra"))),
			[]string{"41 web on 10.0.0.1", "42 db on 10.0.0.1"}, 2},
		"in another service instance": {withServices(on(1, one, proc(42, "db")), on(3, two, proc(41, "web"))),
			[]string{"41 web on 10.0.0.1", "42 db on 10.0.0.1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			left := c.now.KeepProcesses(old(), map[int]bool{41: true})
			if got := shown(c.now); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if len(left) != c.left || !strings.HasPrefix(left[0], "process 41 stays as it was") {
				t.Errorf("left %q", left)
			}
			if faults := c.now.Check(); len(faults) > 0 {
				t.Errorf("%v", faults)
			}
		})
	}
}

func TestDropClashes(t *testing.T) {
	b := withServices(on(1, "10.0.0.1", proc(50, "web")), on(2, "10.0.0.1", proc(41, "web"), proc(42, "db")), on(3, "10.0.0.2", proc(43, "web")))
	left := b.DropClashes(nil)
	want := []string{"41 web on 10.0.0.1", "42 db on 10.0.0.1", "43 web on 10.0.0.2"}
	if got := shown(b); !slices.Equal(got, want) || len(left) != 1 || !strings.HasPrefix(left[0], "process 50 is left out: ") {
		t.Errorf("%q, left %q", got, left)
	}
	if left := b.DropClashes(nil); left != nil {
		t.Errorf("a second time: %q", left)
	}
}

func TestAddLeft(t *testing.T) {
	b := &topology.Business{}
	for range 2 {
		for i := range 2000 {
			b.AddLeft(fmt.Sprint("line ", i))
		}
	}
	if n := len(b.Left); n != 1000 || b.Left[998] != "line 998" || !strings.HasPrefix(b.Left[999], "more than this") {
		t.Errorf("%d lines, the last is %q", n, b.Left[n-1])
	}
}

// TestAliasInCommands: an alias that a shell could obey is not put into commands and paths.
func TestAliasInCommands(t *testing.T) {
	for alias, safe := range map[string]bool{"web": true, "进程（1）": true, "two words": true, "$(reboot)": false, "a/../b": false, "a&b": false, "it's": false} {
		for _, p := range []topology.Process{{ID: 1, Name: alias, Start: "./start.sh ${bk_process_name}"}, {ID: 1, Name: alias, PIDFile: "/run/${ FuncID }.pid"}} {
			if faults := p.Unusable("s", "m"); (len(faults) == 0) != safe {
				t.Errorf("%q in %q%q: %v", alias, p.Start, p.PIDFile, faults)
			}
			if err := p.CheckAlias(); err != nil {
				t.Errorf("%q: %v", alias, err)
			}
		}
	}
}
