//go:build !unix

package selfupdate

import "os"

// InPlace is false: a program cannot take over its process on this system, and a running program cannot be replaced.
const InPlace = false

func lockFile(*os.File, bool) error { return nil }
