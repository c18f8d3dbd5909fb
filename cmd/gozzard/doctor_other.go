//go:build !linux && !windows

package main

import "github.com/gozzard/gozzard/internal/host"

// examine finds that no agent runs on this system.
func examine(string, host.Privileges) []finding {
	return []finding{{findFail, "system", host.Supported().Error()}}
}
