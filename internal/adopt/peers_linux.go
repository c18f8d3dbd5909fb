package adopt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The messages of sock_diag(7) about Unix sockets.
const (
	diagByFamily = 20
	showPeer     = 4
	attrPeer     = 2
	requestBytes = 24
	messageBytes = 16
)

// socketPeers are the other ends of all connected Unix sockets, by inode.
func socketPeers() (map[uint64]uint64, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for sockets: %w", err)
	}
	defer unix.Close(fd)

	// Ask for all of them.
	b := make([]byte, unix.NLMSG_HDRLEN+requestBytes)
	e := binary.NativeEndian
	e.PutUint32(b, uint32(len(b)))
	e.PutUint16(b[4:], diagByFamily)
	e.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[unix.NLMSG_HDRLEN] = unix.AF_UNIX
	e.PutUint32(b[unix.NLMSG_HDRLEN+4:], ^uint32(0)) // in all states
	e.PutUint32(b[unix.NLMSG_HDRLEN+12:], showPeer)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("cannot ask for sockets: %w", err)
	}

	// Read the answers.
	peers := map[uint64]uint64{}
	buf := make([]byte, 256<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("cannot ask for sockets: %w", os.NewSyscallError("recvfrom", err))
		}
		if done, err := readPeers(buf[:n], peers); done || err != nil {
			return peers, err
		}
	}
}

// readPeers reads the messages of one answer. It reports whether it was the last one.
func readPeers(b []byte, peers map[uint64]uint64) (done bool, err error) {
	e := binary.NativeEndian
	for len(b) >= unix.NLMSG_HDRLEN {
		size, kind := int(e.Uint32(b)), e.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return false, errors.New("cannot read the list of sockets")
		}
		switch kind {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			return false, errors.New("the system does not list sockets")
		case diagByFamily:
			notePeer(b[unix.NLMSG_HDRLEN:size], peers)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return false, nil
}

// notePeer reads one message.
func notePeer(m []byte, peers map[uint64]uint64) {
	e := binary.NativeEndian
	if len(m) < messageBytes {
		return
	}
	inode := uint64(e.Uint32(m[4:]))
	for attrs := m[messageBytes:]; len(attrs) >= 4; {
		size, kind := int(e.Uint16(attrs)), e.Uint16(attrs[2:])
		if size < 4 || size > len(attrs) {
			return
		}
		if kind == attrPeer && size >= 8 {
			peers[inode] = uint64(e.Uint32(attrs[4:]))
		}
		attrs = attrs[min((size+3)&^3, len(attrs)):]
	}
}
