// Package gozzard holds the words and the pure rules of the fleet process manager: what a process, an operation and
// a verdict are, and which decisions the delivery protocol takes. It uses the standard library only, starts no
// goroutine and declares no interface.
package gozzard
