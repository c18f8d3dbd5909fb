package supervise_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

// slowHost is a machine on which looking for a process takes long.
type slowHost struct {
	*sim.Host
	takes time.Duration
}

func (h *slowHost) Find(q supervise.Query) (supervise.Found, error) {
	f, err := h.Host.Find(q)
	time.Sleep(h.takes)
	return f, err
}

// A look that takes longer than the start check still finds the process: the end of the time alone does not mean that
// the process is not running.
func TestSlowLookIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowHost{}
		r := newRig(t, func(h *sim.Host) supervise.Host {
			slow.Host = h
			return slow
		})

		r.up()
		defer r.down()

		for _, takes := range []time.Duration{0, 900 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
			slow.takes = takes
			r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Policy.StartCheckSecs = 1 }),
				gozzard.CodeOK, true)
			r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		}
	})
}
