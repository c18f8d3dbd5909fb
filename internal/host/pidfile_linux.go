package host

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

const (
	pidFileBytes = 4 << 10 // PostgreSQL writes seven more lines after the pid
	pidLineBytes = 32
	maxPID       = 4194304 // the kernel's own limit
)

// readPIDFile reads the pid in a file. Where the rights of the agent do not suffice, it uses those of the account
// in the definition.
func (h *Host) readPIDFile(path string, owner *account) (pid int, written time.Time, reason string) {
	if h.mode != gozzard.ModeCap || owner == nil || owner.uid == h.self.uid {
		return h.openPIDFile(path, owner)
	}
	err := asAccount(&syscall.Credential{Uid: owner.uid, Gid: owner.gid, Groups: owner.groups}, func() error {
		pid, written, reason = h.openPIDFile(path, owner)
		return nil
	})
	if err != nil {
		return 0, written, fmt.Sprintf("pid file %s cannot be read as %s: %v", path, owner.name, err)
	}
	return pid, written, reason
}

// openPIDFile opens and reads a pid file. Services write these files, so nothing about them is trusted: a pid file
// must be a small regular file of root, the agent or the account in the definition, and have only one name, because
// a hard link to a file of root would look like a file of root. The file is checked before it is opened for
// reading, since opening a device may have an effect and opening a FIFO blocks. Symbolic links are not followed.
func (h *Host) openPIDFile(path string, owner *account) (pid int, written time.Time, reason string) {
	// Open it without read access.
	if !filepath.IsAbs(path) {
		return 0, written, fmt.Sprintf("pid file %q is not an absolute path", path)
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	h.noteShortage(err)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return 0, written, fmt.Sprintf("pid file %s does not exist", path)
	case err != nil:
		return 0, written, fmt.Sprintf("pid file %s cannot be opened: %v", path, err)
	}
	defer unix.Close(fd)

	// Reject a file that is not trustworthy.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, written, fmt.Sprintf("pid file %s cannot be read: %v", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return 0, written, fmt.Sprintf("pid file %s is a symbolic link", path)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return 0, written, fmt.Sprintf("pid file %s is not a regular file", path)
	case st.Uid != 0 && st.Uid != h.self.uid && (owner == nil || st.Uid != owner.uid):
		return 0, written, fmt.Sprintf("pid file %s belongs to uid %d, not to root or the process's user", path, st.Uid)
	case st.Nlink > 1:
		return 0, written, fmt.Sprintf("pid file %s has %d names, one is allowed", path, st.Nlink)
	case st.Size == 0:
		return 0, written, fmt.Sprintf("pid file %s is empty", path)
	case st.Size > pidFileBytes:
		return 0, written, fmt.Sprintf("pid file %s has %d bytes, at most %d are allowed", path, st.Size, pidFileBytes)
	}

	// Read the pid.
	buf := make([]byte, pidLineBytes)
	n, err := readOpened(fd, buf)
	h.noteShortage(err)
	if err != nil {
		return 0, written, fmt.Sprintf("pid file %s cannot be read: %v", path, err)
	}
	pid, ok := parsePID(buf[:n])
	if !ok || st.Size > pidLineBytes && !bytes.ContainsRune(buf[:n], '\n') {
		return 0, written, fmt.Sprintf("pid file %s does not hold a process id", path)
	}
	return pid, time.Unix(st.Mtim.Unix()), ""
}

// readOpened reads exactly the file behind a descriptor that was opened without read access.
func readOpened(fd int, buf []byte) (int, error) {
	in, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd),
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(in)
	return unix.Read(in, buf)
}

// parsePID accepts a decimal number in the first line, with spaces around it, because some programs pad it. What
// follows in other lines does not count.
func parsePID(b []byte) (int, bool) {
	b, _, _ = bytes.Cut(bytes.TrimLeft(b, " \t\r\n"), []byte("\n"))
	b = bytes.TrimRight(b, " \t\r")
	if len(b) == 0 || len(b) > 7 || b[0] == '0' {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	pid, err := strconv.Atoi(string(b))
	return pid, err == nil && pid >= 2 && pid <= maxPID
}
