package control_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gozzard/gozzard"
)

// occupy uses up a quota of one attempt of an app, and returns how to make room again.
func (r *rig) occupy(app string, session uint64) (release func()) {
	r.t.Helper()
	op := largeOperation(app, "", 1)
	op.Items[0].Key.Namespace = "occupied"
	task, err := r.plane.Operate(r.t.Context(), op)
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		r.report(me, session, done(r.op(me, session, task), gozzard.CodeOK))
		r.verdict(task, "p0", gozzard.AttemptOK, gozzard.CodeOK)
	}
}

// A host that lost its state is restored when the server is not busy any more.
func TestRestoreWaitsForABusyServer(t *testing.T) {
	r := newRigQuota(t, 1)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.forget()

	// It comes back without its state while the app of the server itself has all that it may have.
	r.hello(other, 1, journalB)
	busy := largeOperation("gozzard", "", 1)
	busy.Items[0].Targets[0].Agent = other
	blocking, err := r.plane.Operate(t.Context(), busy)
	if err != nil {
		t.Fatal(err)
	}
	r.hello(me, 2, journalB)
	limited := func() bool { _, ok := r.refused.Load("attempts_in_flight"); return ok }
	r.until("the restore was not rejected", limited)
	if n := len(r.restores()); n != 0 {
		t.Fatalf("%d restored", n)
	}

	r.report(other, 1, done(r.op(other, 1, blocking), gozzard.CodeOK))
	r.restored(1)
}

// A change of a business is recorded while the server is too busy to unregister what left it. The caller learns of both and
// when to try again, and the next prune unregisters it.
func TestPruneWaitsForABusyServer(t *testing.T) {
	r := newRigQuota(t, 1)
	r.hello(me, 1, journalA)
	r.mustApply(business(process(46, "java", 1)))
	mine, left := running("java", 1), running("java", 9)
	mine.Labels = map[string]string{"bk_process_name": "java", "bk_process_id": "46"}
	left.Labels = mine.Labels
	r.statuses(me, 1, mine, left)
	release := r.occupy(caller.App, 1)

	_, err := r.apply(business(process(46, "java", 1)), prune)
	if gozzard.KindOf(err) != gozzard.ErrRateLimited {
		t.Fatalf("while the server is busy: %v", err)
	}
	if e := new(gozzard.Error); !errors.As(err, &e) || e.Message == "" {
		t.Errorf("it says nothing: %v", fmt.Sprint(err))
	}

	release()
	if pruned := r.mustApply(business(process(46, "java", 1)), prune); pruned.Pruned == "" {
		t.Errorf("afterwards: %+v", pruned)
	}
}
