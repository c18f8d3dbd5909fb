//go:build !linux && !windows

package main

import (
	"runtime"

	"github.com/gozzard/gozzard/internal/host"
)

// examine looks at this host.
func examine(_ string, own host.Standing) []finding {
	return []finding{{findWarn, "mode", "user, as " + own.Account + ": commands run as this account only"},
		{findWarn, "system",
			runtime.GOOS + " has no cgroups and no pidfd: processes are found by pid file only, exits are noticed by looking, usage is not measured"}}
}
