//go:build !unix

package selfupdate

import "os"

// InPlace is false: a program cannot take its own process over here, and one that runs cannot be replaced.
const InPlace = false

func lockFile(*os.File, bool) error { return nil }
