package fuzztest

import "time"

// MaxWork is the time limit.
func MaxWork() time.Duration {
	work, _ := bounds()
	return work
}

// ThreadTime is the CPU time of this thread.
func ThreadTime() time.Duration { return threadTime() }

// Race is whether the race detector is on.
const Race = raceBuild
