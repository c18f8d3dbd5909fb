//go:build race && linux

package fleettest

// raceBuild: the program under test is built with the race detector when the tests are.
const raceBuild = true

// Race: whether it is, for figures that the detector changes.
const Race = raceBuild
