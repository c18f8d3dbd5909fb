package host

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The parts of the socket diagnosis of the kernel that are used here (sock_diag(7)).
const (
	diagByFamily  = 20 // SOCK_DIAG_BY_FAMILY
	diagRequest   = 16 + 56
	diagMessage   = 72 // inet_diag_msg
	diagInode     = 68
	diagTCPInfo   = 2 // INET_DIAG_INFO
	bytesAcked    = 120
	bytesReceived = 128

	// Sockets without a peer have transferred nothing, and sockets that the kernel holds after their end
	// (TIME_WAIT) belong to no process.
	statesWithBytes = 1<<1 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11
)

// tcpBytes fills in, for the inodes that are keys of want, how many bytes these sockets received and sent. One
// request per address family returns all sockets of the machine, which is cheaper than one request per socket.
// Sockets of other network namespaces are not visible.
func tcpBytes(want map[uint64]int64, buf []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return fmt.Errorf("cannot request the list of sockets: %w", os.NewSyscallError("socket", err))
	}
	defer unix.Close(fd)

	patience := unix.Timeval{Sec: 2} // the kernel answers at once; the limit protects a sample from hanging
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return fmt.Errorf("cannot request the list of sockets: %w", os.NewSyscallError("setsockopt", err))
	}

	for i, family := range [...]byte{unix.AF_INET, unix.AF_INET6} {
		if err := dumpTCP(fd, family, uint32(i+1), want, buf); err != nil {
			return err
		}
	}

	return nil
}

// dumpTCP requests the TCP sockets of one address family and reads the answers.
func dumpTCP(fd int, family byte, seq uint32, want map[uint64]int64, buf []byte) error {
	var ask [diagRequest]byte
	binary.NativeEndian.PutUint32(ask[0:], diagRequest)
	binary.NativeEndian.PutUint16(ask[4:], diagByFamily)
	binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(ask[8:], seq)
	ask[16], ask[17], ask[18] = family, unix.IPPROTO_TCP, 1<<(diagTCPInfo-1)
	binary.NativeEndian.PutUint32(ask[20:], statesWithBytes)
	if _, err := unix.Write(fd, ask[:]); err != nil {
		return fmt.Errorf("cannot request the list of sockets: %w", err)
	}

	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read sockets: %w", err)
		}
		done, err := readSockets(buf[:n], seq, want)
		if done || err != nil {
			return err
		}
	}
}

// readSockets reads one answer: a list of messages, each with a header of length, type, flags, number and sender.
func readSockets(b []byte, seq uint32, want map[uint64]int64) (done bool, err error) {
	for len(b) >= 16 {
		size := int(binary.NativeEndian.Uint32(b))
		if size < 16 || size > len(b) {
			return true, fmt.Errorf("cannot read sockets: a message of %d bytes in %d", size, len(b))
		}
		kind, number, body := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]), b[16:size]
		b = b[min(len(b), (size+3)&^3):]
		switch {
		case number != seq: // of an earlier request that was abandoned
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind == unix.NLMSG_ERROR:
			errno := unix.EIO
			if len(body) >= 4 {
				errno = unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			}
			if errno == unix.ENOENT { // no TCP, or none of this family
				return true, nil
			}
			return true, fmt.Errorf("cannot read sockets: %w", errno)
		case kind == diagByFamily:
			readSocket(body, want)
		}
	}
	return false, nil
}

// readSocket reads the counters of one socket.
func readSocket(b []byte, want map[uint64]int64) {
	if len(b) < diagMessage {
		return
	}

	inode := uint64(binary.NativeEndian.Uint32(b[diagInode:]))
	if _, ok := want[inode]; !ok || inode == 0 {
		return
	}

	for b = b[diagMessage:]; len(b) >= 4; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < 4 || size > len(b) {
			return
		}
		if kind == diagTCPInfo && size >= 4+bytesReceived+8 { // kernels before 4.1 do not count
			info := b[4:size]
			want[inode] = int64(binary.NativeEndian.Uint64(info[bytesAcked:]) +
				binary.NativeEndian.Uint64(info[bytesReceived:]))
		}
		b = b[min(len(b), (size+3)&^3):]
	}
}
