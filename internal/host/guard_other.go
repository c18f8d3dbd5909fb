//go:build !linux

package host

// ServeGuard does nothing on this system: agents have no guard here.
func ServeGuard() {}
