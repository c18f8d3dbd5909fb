package agentsock

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who connected; the first of his groups is his own.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("cannot look at a connection: %w", err)
	}

	var cred *unix.Xucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		cred, asked = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL,
			unix.LOCAL_PEERCRED)
	})

	if err := errors.Join(err, asked); err != nil {
		return peer{}, fmt.Errorf("cannot find out who connected: %w", err)
	}

	n := int(cred.Ngroups)
	if n < 1 || n > len(cred.Groups) {
		return peer{}, fmt.Errorf("cannot find out who connected: %d groups", n)
	}

	return peer{uid: cred.Uid, gid: cred.Groups[0], groups: cred.Groups[:n]}, nil
}
