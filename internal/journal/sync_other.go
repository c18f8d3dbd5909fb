//go:build !linux

package journal

import "os"

// fdatasync: Sync of the library is a full flush of file and drive where the system has one.
func fdatasync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
