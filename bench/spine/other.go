//go:build !linux

// Command spine measures the whole path of an operation and compares it with the bare parts that it consists of. It
// reads CPU times from /proc and needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "spine: needs Linux, for the CPU times in /proc")
	os.Exit(1)
}
