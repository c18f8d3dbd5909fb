package main

// keyboard has no keys on Windows: Ctrl-C ends a screen there.
type keyboard struct{}

func openKeyboard() *keyboard { return nil }

func (k *keyboard) close() {}

func (k *keyboard) read() (key byte, pressed bool) { return 0, false }
