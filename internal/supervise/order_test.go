package supervise_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

func named(name string) gozzard.Key { return gozzard.Key{Namespace: game.Namespace, Name: name} }

func afterThose(names ...string) []byte {
	return definition(func(s *gozzard.Spec) { s.After, s.Control.Version = names, "" })
}

// began is when the newest process of a key began, as the order of process numbers.
func (r *rig) pid(name string) int32 {
	st, _ := r.s.Status(named(name))
	return st.PID
}

// TestOrderOfStarts starts two processes at once, the later one first. It waits until the start check of the other has
// passed.
func TestOrderOfStarts(t *testing.T) {
	bubble(t, func(r *rig) {
		web := r.apply(gozzard.ActionStart, named("web"), afterThose("redis"))
		r.after(time.Second)
		if n := r.machine.Starts(named("web")); n != 0 {
			t.Fatal("it did not wait")
		}
		redis := r.apply(gozzard.ActionStart, named("redis"), afterThose())
		r.after(4 * time.Second)
		if n := r.machine.Starts(named("web")); n != 0 {
			t.Fatal("it did not wait for the start check")
		}
		if out := <-redis; out.Code != gozzard.CodeOK {
			t.Fatal(out)
		}
		if out := <-web; out.Code != gozzard.CodeOK {
			t.Fatal(out)
		}
	})
}

// TestOrderGivesUp checks the verdict of a start that waits in vain.
func TestOrderGivesUp(t *testing.T) {
	bubble(t, func(r *rig) {
		began := time.Now()
		out := <-r.apply(gozzard.ActionStart, named("web"), afterThose("redis"))
		if out.Code != gozzard.CodeCheckFailed || out.Hosted ||
			out.Message != "not started: it comes after redis, which is not registered on this host" {
			t.Errorf("%+v", out)
		}
		<-r.apply(gozzard.ActionRegister, named("redis"), afterThose())
		out = <-r.apply(gozzard.ActionStart, named("web"), nil)
		if !strings.HasSuffix(out.Message, "which does not run") || time.Since(began) > 15*time.Second {
			t.Errorf("%+v after %v", out, time.Since(began))
		}
		if n := r.machine.Starts(named("web")); n != 0 {
			t.Error("it was started")
		}
	})
}

// TestOrderAfterAReboot checks that supervised processes come up in their order without a request.
func TestOrderAfterAReboot(t *testing.T) {
	bubble(t, func(r *rig) {
		<-r.apply(gozzard.ActionStart, named("db"), afterThose())
		<-r.apply(gozzard.ActionStart, named("app"), afterThose("db"))
		<-r.apply(gozzard.ActionStart, named("web"), afterThose("app", "db"))
		r.down()
		r.machine.Reboot()
		r.up()
		r.after(3 * time.Second)
		if r.machine.Starts(named("app")) != 1 || r.machine.Starts(named("web")) != 1 {
			t.Error("it did not wait after a reboot")
		}
		if st, _ := r.s.Status(named("web")); !strings.Contains(st.Message, "waits for app, which does not run") {
			t.Errorf("%+v", st)
		}
		r.after(30 * time.Second)
		if db, app, web := r.pid("db"), r.pid("app"), r.pid("web"); !(0 < db && db < app && app < web) {
			t.Errorf("pids %d %d %d", db, app, web)
		}
	})
}

// TestOrderOfStops stops several: the last one ends first. A stop of one alone does not stop or await another.
func TestOrderOfStops(t *testing.T) {
	bubble(t, func(r *rig) {
		slow := definition(func(s *gozzard.Spec) { s.After, s.Control.Stop = []string{"db"}, "sleep 3s" })
		<-r.apply(gozzard.ActionStart, named("db"), afterThose())
		<-r.apply(gozzard.ActionStart, named("app"), slow)
		db := r.apply(gozzard.ActionStop, named("db"), nil)
		r.after(100 * time.Millisecond) // the other stop comes a moment later
		app := r.apply(gozzard.ActionStop, named("app"), nil)
		r.after(2 * time.Second)
		if r.pid("db") < 0 {
			t.Error("the first one ended before the last one")
		}
		<-app
		<-db
		if r.pid("db") > 0 || r.pid("app") > 0 {
			t.Error("something runs")
		}

		<-r.apply(gozzard.ActionStart, named("db"), nil)
		<-r.apply(gozzard.ActionStart, named("app"), nil)
		began := time.Now()
		if out := <-r.apply(gozzard.ActionStop, named("db"), nil); out.Code != gozzard.CodeOK ||
			time.Since(began) > 2*time.Second || r.pid("app") < 0 {
			t.Errorf("%+v after %v", out, time.Since(began))
		}
	})
}

// TestOrderOfOneShots checks that a process that may end is no obstacle after it has ended well.
func TestOrderOfOneShots(t *testing.T) {
	bubble(t, func(r *rig) {
		once := definition(func(s *gozzard.Spec) { s.Policy.Kind, s.Control.Start = gozzard.KindOneShot, "exit-after 1s 0" })
		if out := <-r.apply(gozzard.ActionStart, named("migrate"), once); out.Code != gozzard.CodeOK {
			t.Fatal(out)
		}
		r.after(5 * time.Second)
		if out := <-r.apply(gozzard.ActionStart, named("app"), afterThose("migrate")); out.Code != gozzard.CodeOK {
			t.Fatal(out)
		}
	})
}

// TestCircle checks that a definition that would make a circle is rejected, and that the old one stays.
func TestCircle(t *testing.T) {
	bubble(t, func(r *rig) {
		<-r.apply(gozzard.ActionRegister, named("a"), afterThose("b"))
		<-r.apply(gozzard.ActionRegister, named("b"), afterThose("c"))
		out := <-r.apply(gozzard.ActionUpdate, named("c"), afterThose("x", "a"))
		if out.Code != gozzard.CodeRefused || !strings.Contains(out.Message, "after: c after a after b after c would be a circle") {
			t.Errorf("%+v", out)
		}
		if out := <-r.apply(gozzard.ActionUpdate, named("c"), afterThose()); out.Code != gozzard.CodeOK {
			t.Errorf("%+v", out)
		}

		// Without b there is no circle any more.
		<-r.apply(gozzard.ActionUnregister, named("b"), nil)
		if out := <-r.apply(gozzard.ActionUpdate, named("c"), afterThose("a")); out.Code != gozzard.CodeOK {
			t.Errorf("%+v", out)
		}
	})
}

// TestTwoHalvesOfACircle registers both halves of a circle at the same time, many times. One of them is rejected.
func TestTwoHalvesOfACircle(t *testing.T) {
	bubble(t, func(r *rig) {
		for range 50 {
			x := r.apply(gozzard.ActionUpdate, named("x"), afterThose("y"))
			y := r.apply(gozzard.ActionUpdate, named("y"), afterThose("x"))
			if a, b := <-x, <-y; (a.Code == gozzard.CodeOK) == (b.Code == gozzard.CodeOK) {
				t.Fatalf("%+v %+v", a, b)
			}
			<-r.apply(gozzard.ActionUnregister, named("x"), nil)
			<-r.apply(gozzard.ActionUnregister, named("y"), nil)
		}
	})
}
