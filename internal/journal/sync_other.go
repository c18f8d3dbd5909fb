//go:build !linux

package journal

import (
	"errors"
	"os"
)

// fdatasync calls Sync, which flushes the file and the drive if the system has a call for that.
func fdatasync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return writeZeros(f, size) }

// allocateAhead cannot be done here: the reserve is all that the journal has.
func allocateAhead(*os.File, int64, int64) error { return errors.ErrUnsupported }
