package control_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

// TestTD2: the number of open attempts of an app is limited. Attempts that end make room, and other apps have their own
// limit.
func TestTD2QuotaOfAttempts(t *testing.T) {
	r := newRigQuota(t, 3)
	r.hello(me, 1, journalA)

	operate := func(app string, names ...string) error {
		op := &gozzard.Operation{Caller: caller, Door: "test"}
		op.Caller.App = app
		for _, name := range names {
			op.Items = append(op.Items, gozzard.Item{Action: gozzard.ActionStart,
				Key:  gozzard.Key{Namespace: "ns", Name: name},
				Spec: spec(60), Targets: []gozzard.Target{{Agent: me, ResultKey: name}}})
		}
		_, err := r.plane.Operate(t.Context(), op)
		return err
	}

	limited := func(err error) {
		t.Helper()
		if err == nil || gozzard.KindOf(err) != gozzard.ErrRateLimited {
			t.Fatalf("got %v, want a limit", err)
		}
	}

	if err := operate("a", "p1", "p2"); err != nil {
		t.Fatal(err)
	}

	limited(operate("a", "p3", "p4"))

	if err := operate("a", "p3"); err != nil {
		t.Fatal(err)
	}

	limited(operate("a", "p4"))

	if err := operate("b", "p5", "p6", "p7"); err != nil {
		t.Fatalf("another app: %v", err)
	}

	// After a restart the same attempts count.
	r.stop()
	r.start()
	r.hello(me, 2, journalA)
	limited(operate("a", "p4"))

	// An attempt that ends makes room. An agent repeats the report until it is acknowledged.
	r.until("no room was made", func() bool {
		for _, c := range r.commands(me, gozzard.CommandOperate) {
			for _, op := range c.Ops {
				if op.Key.Name == "p1" && c.Session == 2 {
					r.report(me, 2, done(op, gozzard.CodeOK))
				}
			}
		}
		return operate("a", "p4") == nil
	})

	limited(operate("a", "p8"))
}
