//go:build !linux

package adopt

// Serve does nothing: there are no keepers on this system.
func Serve() {}

// GivenUp finds nothing: there is no systemd on this system.
func GivenUp() (services, back []string) { return nil, nil }
