// Package fleettest drives the real program for tests and benchmarks: it builds the program, runs server, agents and
// simulated fleets as separate processes, and calls them as a BlueKing client would.
package fleettest
