//go:build !linux

// Command firsthour runs on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "firsthour: runs on Linux only")
	os.Exit(1)
}
