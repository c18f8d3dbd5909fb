package supervise_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestVictim(t *testing.T) {
	type ms = []supervise.Member

	for _, c := range []struct {
		name    string
		members ms
		weight  int
		want    int
	}{
		{"no member", nil, 0, -1},
		{"most use", ms{{10, 0, true}, {30, 0, true}, {20, 0, true}}, 0, 1},
		{"own limits do not matter for weight 0", ms{{10, 1, true}, {30, 100, true}}, 0, 1},
		{"most of its own limit", ms{{10, 20, true}, {30, 90, true}}, 1, 0},
		{"no limit is the whole machine", ms{{30, 0, true}, {5, 10, true}}, 1, 1},
		{"a higher limit lowers the score", ms{{20, 50, true}, {20, 40, true}}, 1, 1},
		{"the first of equals", ms{{20, 0, true}, {20, 0, true}}, 0, 0},
		{"idle ones are not to blame", ms{{0, 0, true}, {0, 10, true}}, 1, -1},
		{"only hosted ones", ms{{90, 0, false}, {1, 0, true}}, 0, 1},
		{"none is hosted", ms{{90, 0, false}}, 0, -1},
		{"an unknown weight is weight 0", ms{{10, 1, true}, {30, 100, true}}, 7, 1},
	} {
		if got := supervise.Victim(c.members, c.weight); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// poolRig starts processes a, b and c of one namespace with their own limits, and one of another namespace.
func poolRig(t *testing.T, f func(r *rig, keys map[string]gozzard.Key)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.up()
		defer r.down()
		keys := map[string]gozzard.Key{}
		for name, limit := range map[string]float64{"a": 40, "b": 80, "c": 0, "x": 0} {
			key := gozzard.Key{Namespace: "pool", Name: name}
			if name == "x" {
				key.Namespace = "other"
			}
			keys[name] = key
			spec := definition(func(s *gozzard.Spec) {
				s.Resource.Mem = limit
				if name == "c" {
					s.Resource.Act = gozzard.ActStop
				}
			})
			if out := <-r.apply(gozzard.ActionStart, key, spec); out.Code != gozzard.CodeOK {
				t.Fatalf("%+v", out)
			}
			r.machine.SetUsage(key, supervise.Usage{})
		}

		f(r, keys)
	})
}

func TestPoolOverItsLimit(t *testing.T) {
	for _, c := range []struct {
		group   gozzard.Group
		use     map[string]supervise.Usage
		victim  string
		message string
	}{
		{gozzard.Group{MemLimit: 50}, map[string]supervise.Usage{"a": {Mem: 20}, "b": {Mem: 32}, "x": {Mem: 90}}, "b",
			"use 52 % mem of its limit of 50 %"},
		{gozzard.Group{MemLimit: 50, MemWeight: 1}, map[string]supervise.Usage{"a": {Mem: 20}, "b": {Mem: 32}}, "a",
			"use 52 % mem of its limit of 50 %"},
		{gozzard.Group{CPULimit: 50}, map[string]supervise.Usage{"a": {CPU: 20}, "c": {CPU: 32}}, "c",
			"use 52 % cpu of its limit of 50 %"},
		{gozzard.Group{CPULimit: 50, MemLimit: 50}, map[string]supervise.Usage{"a": {CPU: 50, Mem: 39},
			"x": {CPU: 90}}, "", ""},
		{gozzard.Group{}, map[string]supervise.Usage{"c": {CPU: 99, Mem: 99}}, "", ""},
	} {
		poolRig(t, func(r *rig, keys map[string]gozzard.Key) {
			c.group.Namespace, c.group.ID = "pool", "g1"
			r.s.SetGroups([]gozzard.Group{c.group})

			for name, u := range c.use {
				r.machine.SetUsage(keys[name], u)
			}

			r.after(5 * time.Second)

			for _, key := range keys {
				if r.machine.Starts(key) != 1 {
					t.Fatal("acted on a spike")
				}
			}

			r.s.SetGroups([]gozzard.Group{c.group}) // the same again does not begin anew
			r.after(16 * time.Second)

			for _, key := range keys {
				r.machine.SetUsage(key, supervise.Usage{})
			}

			r.after(time.Minute)

			for name, key := range keys {
				want := 1
				st, _ := r.s.Status(key)
				if name == c.victim {
					want = 2
					if !strings.Contains(st.Message, c.message) || !st.Hosted || st.State != gozzard.StateRunning {
						t.Errorf("status of the victim: %#v", st)
					}
				}
				if n := r.machine.Starts(key); n != want {
					t.Errorf("%+v: %d starts of %s", c.group, n, name)
				}
			}

			if c.victim == "c" && r.machine.Commands(keys["c"], gozzard.ActionStop) != 1 {
				t.Error("its own act was not used")
			}

			reported := 0
			for _, e := range r.reported {
				if e.Kind == gozzard.EventGroupLimitExceeded && e.Key == keys[c.victim] {
					reported++
				}
			}

			if reported != len(c.victim) {
				t.Errorf("%+v: %d events", c.group, reported)
			}
		})
	}
}

func TestPoolGoesAway(t *testing.T) {
	poolRig(t, func(r *rig, keys map[string]gozzard.Key) {
		r.s.SetGroups([]gozzard.Group{{Namespace: "pool", ID: "g1", CPULimit: 10}})
		r.machine.SetUsage(keys["a"], supervise.Usage{CPU: 20})
		r.after(5 * time.Second)
		r.s.SetGroups(nil)
		r.after(time.Hour)
		if r.machine.Starts(keys["a"]) != 1 {
			t.Error("a pool that is gone was enforced")
		}
	})
}
