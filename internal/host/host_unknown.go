//go:build unix && !linux && !darwin

package host

import (
	"fmt"
	"runtime"
	"time"
)

func bootID() (string, error) { return "", fmt.Errorf("%s is not supported", runtime.GOOS) }

func lookup(int) (info, error) {
	return info{}, fmt.Errorf("processes cannot be looked up on %s", runtime.GOOS)
}

func startTime(uint64) time.Time { return time.Time{} }
