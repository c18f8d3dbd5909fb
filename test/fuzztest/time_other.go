//go:build !linux

package fuzztest

import "time"

var began = time.Now()

// threadTime is the elapsed time. The work of other threads counts too.
func threadTime() time.Duration { return time.Since(began) }
