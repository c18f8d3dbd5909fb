// Package fleettest drives the real program for tests and benchmarks: it builds it, runs server, agents and
// simulated fleets as processes of their own, and calls them as a BlueKing client would.
package fleettest
