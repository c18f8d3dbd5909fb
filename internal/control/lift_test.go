package control_test

import (
	"os"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestV11LostRecord: the record is lost while agents have operations on record. The first operation in a
// session has a newer generation than all of them. An agent that makes a number up changes nothing.
func TestV11LostRecord(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	for range 5 {
		task := r.operate(gozzard.ActionReload, 0, me)
		op := r.op(me, 1, task)
		r.newestGen = op.Gen
		r.report(me, 1, done(op, gozzard.CodeOK))
		r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}

	r.stop()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(r.path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	r.forget()
	r.start()
	r.hello(me, 2, journalA)
	if op := r.op(me, 2, r.operate(gozzard.ActionStop, 0, me)); op.Gen != r.newestGen+1 {
		t.Errorf("the host has generation %d on record, the next operation has %d", r.newestGen, op.Gen)
	}

	r.newestGen = 1 << 60
	r.hello(other, 1, journalB)
	if op := r.op(other, 1, r.operate(gozzard.ActionStop, 0, other)); op.Gen > 100 {
		t.Errorf("an agent with an absurd generation brought the counter to %d", op.Gen)
	}
}
