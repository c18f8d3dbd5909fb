//go:build !linux

package doctor

import (
	"runtime"
	"time"
)

// checkServerDisk: what kind of file system it is can only be told on Linux.
func checkServerDisk(dir string) []Finding {
	return []Finding{{Warn, "disk", "whether " + dir + " is on a disk of this machine is not looked at on " +
		runtime.GOOS + ": the record must not be on a network file system"}}
}

// checkClock only sees a clock that was never set.
func checkClock(now time.Time) Finding {
	if now.Year() < 2025 {
		return Finding{Fail, "clock", "says " + now.UTC().Format(time.RFC3339) + ", which is in the past: set it"}
	}
	return Finding{OK, "clock", now.UTC().Format(time.RFC3339)}
}
