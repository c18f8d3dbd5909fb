//go:build !linux

// Command topology measures questions about businesses beside the same questions to PostgreSQL, which it starts. It
// needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "topology: needs Linux, where it starts PostgreSQL")
	os.Exit(1)
}
