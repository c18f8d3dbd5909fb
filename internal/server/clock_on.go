//go:build failpoint

package server

import (
	"os"
	"time"
)

// testClock is a clock that is wrong by GOZZARD_CLOCK_OFFSET; nil without it.
func testClock() func() time.Time {
	offset, err := time.ParseDuration(os.Getenv("GOZZARD_CLOCK_OFFSET"))
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Add(offset) }
}
