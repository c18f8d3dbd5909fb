// Package soak runs a server and agents with hundreds of odd daemons, lets callers operate them through every door,
// disturbs everything at random, and compares verdicts, effects and the final state. `make test` runs it for 40
// seconds, `make soak` for ten minutes.
package soak
