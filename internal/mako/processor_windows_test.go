package mako_test

import (
	"testing"
	"time"
)

var began = time.Now()

// processorTime is how long the test program has run: there, the clock is good enough.
func processorTime(*testing.T) time.Duration { return time.Since(began) }
