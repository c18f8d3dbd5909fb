package control_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// TestPlaceOf: the place of a process is found by its host and name, and a new document changes it.
func TestPlaceOf(t *testing.T) {
	r := newRig(t)
	_, start := r.plane.PlacesChanged(0)
	r.mustApply(business(process(46, "java", 2), process(48, "java", 1)))

	at := func(ip string, agent gozzard.AgentID, name string) topology.Place {
		ref := gozzard.HostRef{Agent: agent, Addrs: []gozzard.HostAddr{{IP: netip.MustParseAddr(ip)}}}
		return r.plane.PlaceOf(ref, gozzard.Key{Namespace: topology.Namespace(2), Name: name})
	}
	want := topology.Place{Biz: 2, Name: "蓝鲸", Set: "管控平台", Module: "gse"}
	for _, test := range []struct {
		ip, name string
		want     topology.Place
	}{
		{"127.0.0.1", "java_1", want}, {"127.0.0.1", "java_2", want}, {"127.0.0.2", "java_1", want},
		{"127.0.0.2", "java_2", topology.Place{}}, {"127.0.0.3", "java_1", topology.Place{}},
		{"127.0.0.1", "java_0", topology.Place{}}, {"127.0.0.1", "java_01", topology.Place{}},
		{"127.0.0.1", "java_+1", topology.Place{}}, {"127.0.0.1", "java", topology.Place{}},
		{"127.0.0.1", "java_", topology.Place{}}, {"127.0.0.1", "_1", topology.Place{}},
		{"127.0.0.1", "java_99999999999999999999", topology.Place{}}, {"127.0.0.1", "other_1", topology.Place{}},
	} {
		if got := at(test.ip, "unknown", test.name); got != test.want {
			t.Errorf("%s on %s is in %+v, want %+v", test.name, test.ip, got, test.want)
		}
	}

	spaces, next := r.plane.PlacesChanged(start)
	if !slices.Equal(spaces, []string{topology.Namespace(2)}) || next <= start {
		t.Errorf("changed: %v, generation %d after %d", spaces, next, start)
	}
	if spaces, again := r.plane.PlacesChanged(next); len(spaces) > 0 || again != next {
		t.Errorf("changed again: %v, generation %d after %d", spaces, again, next)
	}

	renamed := business(process(46, "java", 2), process(48, "java", 1))
	renamed.Sets[0].Modules[0].Name = "renamed"
	r.mustApply(renamed)
	if got := at("127.0.0.1", "unknown", "java_1"); got.Module != "renamed" {
		t.Errorf("the module is %q after it was renamed", got.Module)
	}
	if spaces, _ := r.plane.PlacesChanged(next); len(spaces) != 1 {
		t.Errorf("changed after the second document: %v", spaces)
	}
}

// TestTasksAfter: viewers get news of exactly the tasks that they may read.
func TestTasksAfter(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	admin := gozzard.Caller{App: "app", User: "admin", Rights: gozzard.Everything()}
	foreign := gozzard.Caller{App: "else", User: "admin", Rights: gozzard.Everything()}
	narrow := gozzard.Caller{App: "app", User: "narrow", Rights: &gozzard.Rights{Grants: []gozzard.Grant{
		{Role: gozzard.RoleViewer, Namespaces: []string{"mine"}, Hosts: gozzard.HostsAny}}}}
	start := r.plane.LastTaskChange()
	mine := r.operateAs(admin, gozzard.ActionStart, "mine", "a", me)
	hidden := r.operateAs(admin, gozzard.ActionStart, "foreign", "b", other)

	// follow asks until all of these tasks came.
	follow := func(c gozzard.Caller, want ...gozzard.TaskID) {
		t.Helper()
		after, seen := start, map[gozzard.TaskID]bool{}
		r.until("the news of tasks", func() bool {
			list, next, _, err := r.plane.TasksAfter(t.Context(), c, after)
			if err != nil {
				t.Fatal(err)
			}
			after = next
			for i := range list {
				seen[list[i].Task.ID] = true
			}
			return after >= r.plane.LastTaskChange()
		})
		for _, id := range want {
			if !seen[id] {
				t.Errorf("%s/%s got no news of task %s", c.App, c.User, id)
			}
			delete(seen, id)
		}
		if len(seen) > 0 {
			t.Errorf("%s/%s got news of other tasks: %v", c.App, c.User, seen)
		}
	}
	follow(admin, mine.ID, hidden.ID)
	follow(narrow, mine.ID)
	follow(foreign)

	// A verdict is news, with its counts.
	start = r.plane.LastTaskChange()
	r.report(me, 1, done(r.op(me, 1, mine), gozzard.CodeOK))
	r.until("the verdict", func() bool { return r.plane.LastTaskChange() > start })
	r.until("the counts", func() bool {
		list, _, _, err := r.plane.TasksAfter(t.Context(), narrow, start)
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && list[0].Counts.Done == 1 && list[0].Counts.Running == 0
	})
}
