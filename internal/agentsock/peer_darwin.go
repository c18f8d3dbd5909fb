package agentsock

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel for the account at the other end. The first of its groups is its primary one.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("cannot examine a connection: %w", err)
	}

	var cred *unix.Xucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		cred, asked = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if err := errors.Join(err, asked); err != nil {
		return peer{}, fmt.Errorf("cannot identify the account of a connection: %w", err)
	}

	n := int(cred.Ngroups)
	if n < 1 || n > len(cred.Groups) {
		return peer{}, fmt.Errorf("cannot identify the account of a connection: it has %d groups", n)
	}
	return peer{uid: cred.Uid, gid: cred.Groups[0], groups: cred.Groups[:n]}, nil
}
