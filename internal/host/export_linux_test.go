package host

import "github.com/gozzard/gozzard"

// ForgetPidfd makes a host work as on a kernel without pidfd.
func ForgetPidfd(h *Host) { h.hasPidfd = false }

// Tidy does at once what a host does now and then.
func Tidy(h *Host) { h.tidy() }

// KeyFolder names the cgroup folder of a key.
func KeyFolder(k gozzard.Key) string { return keyFolder(k) }

// ParsePID reads the text of a pid file.
func ParsePID(b []byte) (int, bool) { return parsePID(b) }
