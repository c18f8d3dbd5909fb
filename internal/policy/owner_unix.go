//go:build unix

package policy

import (
	"io/fs"
	"os"
	"syscall"
)

// hasModes says that the mode of a file shows which accounts may write it.
const hasModes = true

// ownerOf returns the owner of a file.
func ownerOf(fi fs.FileInfo) (uid uint32, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// currentUID is the account of this program.
func currentUID() uint32 { return uint32(os.Geteuid()) }
