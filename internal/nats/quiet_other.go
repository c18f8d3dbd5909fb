//go:build !linux || race

package nats

// Quiet does nothing here: only on Linux the embedded server's package works in the background before a broker is
// started. It does nothing under the race detector either, because Quiet writes a variable that a goroutine of that
// package reads without a lock.
func Quiet() {}
