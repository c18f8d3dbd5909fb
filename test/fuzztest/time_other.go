//go:build !linux

package fuzztest

import "time"

var began = time.Now()

// threadTime is the time that went by: what other threads used counts too.
func threadTime() time.Duration { return time.Since(began) }
