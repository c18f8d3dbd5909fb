//go:build linux

package main

import (
	"fmt"
	"time"
)

// The goals of docs/performance.md that this benchmark measures.
const (
	goalSingle      = 300 * time.Microsecond // of the server's CPU for one operation with its two calls
	goalFanOut      = 2.5                    // times the CPU of bare NATS with an acknowledgement
	goalAccept      = 2.0                    // times the bare transaction
	goalAcceptLarge = 300 * time.Millisecond // until a task with largeTargets is accepted
	largeTargets    = 50_000
)

func acceptGoal(targets int) string {
	if targets >= largeTargets {
		return fmt.Sprintf("≤ %.0f×, < %s", goalAccept, span(goalAcceptLarge))
	}
	return fmt.Sprintf("≤ %.0f×", goalAccept)
}

func (b *bench) missSingle(cpu time.Duration) {
	if cpu <= goalSingle {
		return
	}
	b.res.Miss("A single operation takes %s of the server's CPU, %.1f times the goal of %s. Most of it is the record, because task, audit and "+
		"verdict are on disk before their answers, then the two HTTP calls with their checks. `-profiles FOLDER` names the shares.",
		span(cpu), float64(cpu)/float64(goalSingle), span(goalSingle))
}

func (b *bench) missFanOut(times float64) {
	if times <= goalFanOut {
		return
	}
	b.res.Miss("A task on all hosts takes %.2f times the CPU of bare NATS with an acknowledgement, %.0f %% above the goal of %.1f times. What bare "+
		"NATS does not do: rows of every attempt and verdict, signatures, the live index, and the answers to the caller.",
		times, 100*(times/goalFanOut-1), goalFanOut)
}

func (b *bench) missLarge(targets int, accepted, bare, cpu time.Duration) {
	if times := float64(accepted) / max(float64(bare), 1); times > goalAccept {
		b.res.Miss("%d targets are accepted after %.2f times the bare transaction, %.0f %% above the goal of %.0f times. The request is read and "+
			"checked, each target is looked up and gets an id, and the audit is written in the same transaction.", targets, times,
			100*(times/goalAccept-1), goalAccept)
	}
	if targets >= largeTargets && accepted > goalAcceptLarge {
		b.res.Miss("%d targets are accepted after %s, the goal is %s. The same rows in one bare transaction take %s in this run, and the server "+
			"uses %s of CPU until then.", targets, span(accepted), span(goalAcceptLarge), span(bare), span(cpu))
	}
}
