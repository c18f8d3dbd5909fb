package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminalSize is the size of the terminal on stdout in columns and lines.
func terminalSize() (width, height int) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(os.Stdout.Fd()), &info) != nil {
		return usualWidth, usualHeight
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}
