//go:build !linux

// Command prototype is the limit of the measurements. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "prototype: needs Linux, for pidfds")
	os.Exit(1)
}
