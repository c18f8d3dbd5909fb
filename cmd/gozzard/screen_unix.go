//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize is the size of the terminal on stdout in columns and lines.
func terminalSize() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return usualWidth, usualHeight
	}
	return int(size.Col), int(size.Row)
}
