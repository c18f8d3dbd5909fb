//go:build !linux

package adopt

// Serve does nothing: there are no keepers on this system.
func Serve() {}
