package agentsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel for the account at the other end. The answer is about the moment of the connect: an account
// that passes the connection on passes on its own rights.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("cannot examine a connection: %w", err)
	}

	var p peer
	var asked error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); asked != nil {
			return
		}
		p = peer{uid: cred.Uid, gid: cred.Gid, pid: cred.Pid}
		p.groups, asked = peerGroups(int(fd))
	})

	if errors.Is(asked, unix.ENOPROTOOPT) { // before Linux 4.13
		p.groups, asked = databaseGroups(p.uid), nil
	}
	if err := errors.Join(err, asked); err != nil {
		return peer{}, fmt.Errorf("cannot identify the account of a connection: %w", err)
	}
	return p, nil
}

// maxGroups is the kernel's limit.
const maxGroups = 65536

// peerGroups reads the supplementary groups of the peer.
func peerGroups(fd int) ([]uint32, error) {
	for room := 32; ; {
		groups := make([]uint32, room)
		size := uint32(room * 4)
		// x/sys has no call for a list of numbers.
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == unix.ERANGE && room < maxGroups: // size is now the needed size
			room = min(max(int(size/4), 2*room), maxGroups)
		case errno != 0:
			return nil, os.NewSyscallError("getsockopt SO_PEERGROUPS", errno)
		default:
			return slices.Clip(groups[:size/4]), nil
		}
	}
}

// databaseGroups are the groups of an account according to the files of this host. An account that is not in the files
// has none.
func databaseGroups(uid uint32) (groups []uint32) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil
	}

	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}

	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			groups = append(groups, uint32(n))
		}
	}

	return groups
}
