//go:build !race && linux

package fleettest

// raceBuild is whether the tests have the race detector. The program under test is then built with it, too.
const raceBuild = false

// Race is raceBuild, for tests whose figures the detector changes.
const Race = raceBuild
