//go:build !linux

// Command fleet measures what many agents cost a server. It reads CPU times from /proc and needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "fleet: needs Linux, for the CPU times in /proc")
	os.Exit(1)
}
