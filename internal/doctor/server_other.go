//go:build !linux

package doctor

import (
	"runtime"
	"time"
)

// checkServerDisk knows the kind of a file system on Linux only.
func checkServerDisk(dir string) []Finding {
	return []Finding{{Warn, "disk", "the file system of " + dir + " is not checked on " + runtime.GOOS +
		": the record must not be on a network file system"}}
}

// checkClock finds a clock that was never set, and nothing else.
func checkClock(now time.Time) Finding {
	if now.Year() < 2025 {
		return Finding{Fail, "clock", "says " + now.UTC().Format(time.RFC3339) + ", which is in the past: set it"}
	}
	return Finding{OK, "clock", now.UTC().Format(time.RFC3339)}
}
