//go:build !linux

package host

// EnterCgroup does nothing: this system has no cgroups.
func EnterCgroup(string) error { return nil }
