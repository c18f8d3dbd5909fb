package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// heldRecords counts the records of the journal that say which process belongs to a definition.
func (r *rig) heldRecords() (records int, version byte) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, "journal"))
	if err != nil {
		r.t.Fatal(err)
	}
	return bytes.Count(data, []byte(`"held":{`)), data[8]
}

// The identity of a process is in the journal, and an agent that starts again uses it: a second process of the same
// name does not take its place.
func TestIdentityOutlivesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.do(r.op(gozzard.ActionStart, "ok"))
		time.Sleep(10 * time.Second)
		first := r.host.Live(key)
		if n, _ := r.heldRecords(); n == 0 || len(first) != 1 {
			t.Fatalf("%d records, live %v", n, first)
		}

		r.stop()
		r.host.Launch(key)
		r.start()
		r.connect()
		if lives, _ := r.a.Lives(1); int(lives[0].PID) != first[0].PID {
			t.Errorf("pid %d, was %v", lives[0].PID, first)
		}
		r.stop()
	})
}

// A program on trial writes nothing that the previous program could not read. When the server has opened a session, it
// writes what had to wait.
func TestIdentityWaitsForTheEndOfATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.do(r.op(gozzard.ActionStart, "ok"))
		time.Sleep(10 * time.Second)
		r.stop()
		r.makeOld()

		r.o.Trial, r.mute = true, true
		r.start()
		r.connect()
		r.host.End(key, supervise.Exit{})
		time.Sleep(10 * time.Second)
		if n, version := r.heldRecords(); n != 0 || version != 2 || len(r.host.Live(key)) != 1 {
			t.Errorf("on trial: %d records, version %d, live %v", n, version, r.host.Live(key))
		}

		r.mu.Lock()
		r.mute = false
		r.mu.Unlock()
		time.Sleep(time.Minute)
		if n, version := r.heldRecords(); n == 0 || version != journal.FormatVersion {
			t.Errorf("after the trial: %d records, version %d", n, version)
		}
		r.stop()
	})
}

// makeOld gives the journal the form of version 2, which has no identities.
func (r *rig) makeOld() {
	r.t.Helper()
	check := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}

	// Leave out the identities.
	j, records, err := journal.Open(r.dir, journal.Options{NoSync: true})
	check(err)
	var old []journal.Entry
	for _, rec := range records {
		if !bytes.Contains(rec.Body, []byte(`"held":{`)) {
			old = append(old, journal.Entry{Type: rec.Type, Body: rec.Body})
		}
	}
	check(j.Compact(old))
	check(j.Close())

	// Write the version.
	golden, err := os.ReadFile("../journal/testdata/v2.journal")
	check(err)
	path := filepath.Join(r.dir, "journal")
	data, err := os.ReadFile(path)
	check(err)
	copy(data, golden[:16])
	check(os.WriteFile(path, data, 0o600))
}
