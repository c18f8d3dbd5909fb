//go:build !failpoint

package server

import "time"

// testClock is nothing in the program people run; fault tests build with the tag "failpoint".
func testClock() func() time.Time { return nil }
