package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// A11: with a full disk no operation begins, begun operations end with a true verdict, supervision and the session
// continue, and operations work again when there is space.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "mode=0700,size=2m"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}

	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })

	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.dir = filepath.Join(disk, "state")
		r.start()
		r.connect()
		r.set(func() { r.noAcks = true })
		running := r.op(gozzard.ActionStart, "sleep 30s")
		r.do(running)
		filler := filepath.Join(disk, "filler")
		if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); err == nil {
			t.Fatal("the disk is not small")
		}

		bulk := make([]gozzard.Op, 200) // the last page of the file takes some
		for i := range bulk {
			bulk[i] = r.op(gozzard.ActionReload, "")
			bulk[i].Key.Name = "third"
		}

		r.do(bulk...)
		pass(time.Second)
		reg, reload := r.op(gozzard.ActionRegister, "ok"), r.op(gozzard.ActionReload, "")
		reg.Key.Name = "other"
		r.do(reg, reload)
		pass(time.Minute)

		if got := r.last(running.ID); got.Phase != gozzard.PhaseDone || got.Outcome.Code != gozzard.CodeOK {
			t.Errorf("what was begun: said %v", phases(r.said(running.ID)))
		}

		for _, o := range []gozzard.Op{reg, reload} {
			got := r.last(o.ID)
			if got.Phase != gozzard.PhaseNever || got.Outcome.Code != gozzard.CodeRefused ||
				!strings.Contains(got.Outcome.Message, "the disk of the journal on the host is full") {
				t.Errorf("what is new: said %+v", got)
			}
		}

		if n := r.host.Commands(key, gozzard.ActionReload); n != 0 {
			t.Errorf("%d effects without an intent", n)
		}
		if s := r.hello().Session; s != 1 {
			t.Errorf("session %d", s)
		}

		must(t, os.Remove(filler))
		pass(2 * time.Second)
		again := r.op(gozzard.ActionReload, "")
		r.do(again)
		pass(time.Second)

		if got := r.last(again.ID); got.Outcome.Code != gozzard.CodeOK {
			t.Errorf("after room was made: said %v", phases(r.said(again.ID)))
		}
	})
}
