//go:build !linux

// Command topology measures queries about businesses and compares them with the same queries to a PostgreSQL that it
// starts. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "topology: needs Linux, where it starts PostgreSQL")
	os.Exit(1)
}
