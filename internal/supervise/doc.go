// Package supervise starts, stops, watches and restarts the processes of one host.
//
// Each process has an actor: a queue of events and operations, and a state that only the actor's goroutine changes.
// All decisions are pure functions in decide.go; the machine is behind the interface Host. A process that is
// supervised (the code says hosted) and not running is started without a request: that is called a pull-up.
package supervise
