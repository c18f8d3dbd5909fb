//go:build !race

package fuzztest

// raceBuild: the race detector is on, which takes time and memory.
const raceBuild = false
