//go:build !linux && !windows

package doctor

import "github.com/gozzard/gozzard/internal/host"

// examine finds that no agent runs on this system.
func examine(string, host.Privileges) []Finding {
	return []Finding{{Fail, "system", host.Supported().Error()}}
}
