package fuzztest

import "time"

// MaxWork is the bound of time.
func MaxWork() time.Duration {
	work, _ := bounds()
	return work
}

// ThreadTime is the CPU time of this thread.
func ThreadTime() time.Duration { return threadTime() }

// Race tells whether the race detector is on.
const Race = raceBuild
