//go:build !linux && !windows

package doctor

import (
	"runtime"

	"github.com/gozzard/gozzard/internal/host"
)

// examine checks this host.
func examine(_ string, own host.Privileges) []Finding {
	return []Finding{{Warn, "mode", "user, as " + own.Account + ": commands run as this account only"},
		{Warn, "system",
			runtime.GOOS + " has no cgroups and no pidfd: processes are found by pid file only, the agent polls for exits, " +
				"usage is not measured"}}
}
