//go:build !race && linux

package fleettest

// raceBuild: the program under test is built with the race detector when the tests are.
const raceBuild = false

// Race: whether it is, for figures that the detector changes.
const Race = raceBuild
