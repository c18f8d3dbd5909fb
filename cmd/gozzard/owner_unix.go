//go:build unix

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ownFile reports whether a file belongs to root or to the caller, and no other account can write it.
func ownFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o022 == 0 &&
		(st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// actAsOwner makes root act as the account that a data folder belongs to, for commands that read or change the folder of
// a server. So what they write belongs to the server, and an account that controls the folder cannot make root touch a
// file elsewhere. It changes nothing for other accounts, for a folder of root and for a folder that does not exist.
func actAsOwner(data string, note io.Writer) error {
	if os.Geteuid() != 0 {
		return nil
	}
	st, err := os.Stat(data)
	if err != nil {
		return nil // the command itself explains it better
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}

	// Give up the groups first: only root can.
	uid, gid := int(owner.Uid), int(owner.Gid)
	if err := syscall.Setgroups([]int{gid}); err != nil {
		return fmt.Errorf("cannot act as the owner of %s (uid %d): %w", data, uid, err)
	}
	if err := syscall.Setgid(gid); err != nil {
		return fmt.Errorf("cannot act as the owner of %s (uid %d): %w", data, uid, err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("cannot act as the owner of %s (uid %d): %w", data, uid, err)
	}

	name := "uid " + strconv.Itoa(uid)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = u.Username
	}
	return checkWrite(fmt.Fprintf(note, "this command runs as %s, the owner of %s\n", name, data))
}
