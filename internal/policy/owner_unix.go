//go:build unix

package policy

import (
	"io/fs"
	"os"
	"syscall"
)

// hasModes says that the marks of a file tell who may write it.
const hasModes = true

// ownerOf is whose a file is.
func ownerOf(fi fs.FileInfo) (uid uint32, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// self is whom this program runs as.
func self() uint32 { return uint32(os.Geteuid()) }
