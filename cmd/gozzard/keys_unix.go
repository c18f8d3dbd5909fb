//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// keyboard is a terminal that hands over every key at once, without showing it. Ctrl-C stays a signal.
type keyboard struct {
	fd     int
	before *unix.Termios
}

// openKeyboard changes the terminal on stdin, nil if there is none. Close sets it back.
func openKeyboard() *keyboard {
	fd := int(os.Stdin.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil
	}

	mode := *before
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 0, 1 // a read ends after a tenth of a second
	if unix.IoctlSetTermios(fd, setTermios, &mode) != nil {
		return nil
	}
	return &keyboard{fd: fd, before: before}
}

func (k *keyboard) close() {
	_ = unix.IoctlSetTermios(k.fd, setTermios, k.before) // the terminal may be gone
}

// read waits a tenth of a second for a key.
func (k *keyboard) read() (key byte, pressed bool) {
	var b [1]byte
	n, err := unix.Read(k.fd, b[:])
	return b[0], err == nil && n == 1
}
