//go:build !linux

// Command scale measures several servers with many agents. It reads CPU times from /proc and needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "scale: needs Linux, for the CPU times in /proc")
	os.Exit(1)
}
