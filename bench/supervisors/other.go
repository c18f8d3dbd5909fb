//go:build !linux

// Command supervisors compares the agent with other process supervisors. It reads /proc and needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "supervisors: needs Linux, for /proc and the peers")
	os.Exit(1)
}
