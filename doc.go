// Package gozzard is the domain of the fleet process manager: what a process, an operation and a verdict are, and how
// the delivery protocol decides. It uses the standard library only, starts no goroutine and declares no interface.
package gozzard
