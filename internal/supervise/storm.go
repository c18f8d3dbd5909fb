package supervise

import (
	"context"
	"time"
)

const (
	// start commands of pull-ups at a time: after a reboot all processes of a host want to be started at once
	maxPullUps = 64
	// a command that takes longer waits for something, and does not keep others from starting any more
	slotHold = 2 * time.Second
)

// takeSlot waits until one more pull-up may begin. As long as there is no storm it does not wait. False: an
// operation came in, or ctx ended.
func (a *actor) takeSlot(ctx context.Context) bool {
	for {
		select {
		case a.s.pulls <- struct{}{}:
			a.slot = true
			return true
		case <-a.wake:
			a.drain()
			if a.opWaiting() {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// freeSlot lets the next one begin.
func (a *actor) freeSlot() {
	if a.slot {
		a.slot = false
		<-a.s.pulls
	}
}
