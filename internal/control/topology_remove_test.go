package control_test

import (
	"errors"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// removal makes a request one for the removal of its business.
func removal(q *record.ApplyRequest) { q.Source = record.SourceRemoved }

// at makes a request one against a version.
func at(v int64) func(*record.ApplyRequest) {
	return func(q *record.ApplyRequest) { q.Base = &v }
}

func TestRemoveTopology(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	gone := &topology.Business{ID: 2}
	if _, err := r.apply(gone, removal); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Fatal(err)
	}
	r.mustApply(business(process(46, "java", 2)))

	// A supervised process keeps its business.
	r.statuses(me, 1, running("java", 2))
	_, err := r.apply(gone, removal)
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind != gozzard.ErrConflict || len(e.Faults) != 1 {
		t.Fatalf("%v", err)
	}
	planned := r.mustApply(gone, removal, dryRun)
	if planned.Applied || planned.Hosted != 1 || planned.Version != 1 || len(planned.Plan.Removed) == 0 ||
		planned.Plan.Removed[0].Kind != "business" || planned.Plan.Removed[0].Name != "蓝鲸" {
		t.Fatalf("%+v", planned)
	}
	if _, err := r.apply(gone, removal, at(7)); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatal(err)
	}

	// With Prune it leaves, and with it everything that people can ask for.
	done := r.mustApply(gone, removal, at(1), prune)
	if !done.Applied || done.Version != 2 || done.Pruned == "" {
		t.Fatalf("%+v", done)
	}
	if list := r.plane.Businesses(caller); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	if _, err := r.plane.Business(t.Context(), caller, 2); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Fatal(err)
	}
	if n, _ := r.plane.FindProcesses(caller, topology.Query{Biz: 2}); n != 0 {
		t.Fatalf("%d processes", n)
	}
	if _, err := r.apply(gone, removal); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Fatal(err)
	}
	audit, err := r.store.Audit(t.Context(), 10)
	if err != nil || len(audit) < 2 || audit[1].Act != "topology:remove:2" {
		t.Fatalf("%+v %v", audit, err)
	}

	// It is new when it comes back, and its versions continue.
	if back := r.mustApply(business(process(46, "java", 1)), at(0)); back.Version != 3 || !back.Applied {
		t.Fatalf("%+v", back)
	}
	if list := r.plane.Businesses(caller); len(list) != 1 || list[0].Version != 3 || list[0].Name != "蓝鲸" {
		t.Fatalf("%+v", list)
	}
}

// TestRemoveFromCMDB: CMDB would add its business again, so it is not removed. One that was removed comes back from any
// source.
func TestRemoveFromCMDB(t *testing.T) {
	r := newRig(t)
	r.mustApply(business(process(46, "java", 1)), fromCMDB)
	if _, err := r.apply(&topology.Business{ID: 2}, removal); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatal(err)
	}

	r.mustApply(business(process(46, "java", 1)), takeOver)
	r.mustApply(&topology.Business{ID: 2}, removal)
	if done := r.mustApply(business(process(46, "java", 1)), fromCMDB); !done.Applied || done.Version != 4 {
		t.Fatalf("%+v", done)
	}
}
