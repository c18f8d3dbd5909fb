//go:build !race

package fuzztest

// raceBuild is whether the race detector is on, which costs time and memory.
const raceBuild = false
