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

// A stop or kill that was interrupted after it had ended the process is kept: the process is not started again. One that
// had no effect changes nothing.
func TestInterruptedStopIsKept(t *testing.T) {
	for _, action := range []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill} {
		for _, ended := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := online(t)
				r.do(r.op(gozzard.ActionStart, "ok"))
				time.Sleep(10 * time.Second)
				hang := r.op(action, "")
				hang.Spec = commands(t, "hang")
				r.do(hang)
				time.Sleep(time.Second)
				r.stop()

				if ended {
					r.host.End(key, supervise.Exit{})
				}
				for range 2 {
					r.start()
					r.connect()
					time.Sleep(10 * time.Minute)
					lives, _ := r.a.Lives(1)
					if up := len(r.host.Live(key)) > 0; up == ended || lives[0].Hosted == ended {
						t.Errorf("%s, ended %v: up %v, status %+v", action, ended, up, lives[0].Status)
					}
					r.stop()
				}
			})
		}
	}
}

// commands is a definition whose stop and kill commands are the given one.
func commands(t *testing.T, text string) []byte {
	t.Helper()
	s, err := gozzard.DecodeSpec(spec("ok"))
	if err != nil {
		t.Fatal(err)
	}
	s.Control.Stop, s.Control.Kill = text, text
	return gozzard.EncodeSpec(s)
}
