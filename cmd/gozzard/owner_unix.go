//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

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
