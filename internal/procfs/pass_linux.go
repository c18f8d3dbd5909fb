package procfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PIDs appends the ids of all processes to dst.
func (p *Pass) PIDs(dst []int) ([]int, error) {
	p.setPath(0, "")
	fd, err := p.open(unix.O_DIRECTORY)
	if err != nil {
		return dst, fmt.Errorf("cannot list processes: %w", err)
	}
	defer unix.Close(fd)

	for {
		n, err := p.entries(fd)
		if err != nil {
			return dst, fmt.Errorf("cannot list processes: %w", err)
		}
		if n == 0 {
			return dst, nil
		}
		for rest := p.dents[:n]; len(rest) > 0; {
			var name []byte
			if name, rest = entry(rest); len(name) > 0 && name[0] != '0' {
				if pid, ok := parseDigits(name); ok {
					dst = append(dst, pid)
				}
			}
		}
	}
}

// Stat reads /proc/<pid>/stat. It returns ErrGone if the process is gone.
func (p *Pass) Stat(pid int) (Stat, error) {
	p.setPath(pid, "stat")
	fd, err := p.open(0)
	if err != nil {
		return Stat{}, goneError(err)
	}

	n, err := unix.Read(fd, p.line[:]) // one read returns the whole line
	_ = unix.Close(fd)
	if err != nil {
		return Stat{}, goneError(err)
	}
	return ParseStat(p.line[:n])
}

// CountFDs counts the open descriptors of a process. Kernels since 6.2 show the number as the size of the folder. For
// older kernels the entries are counted.
func (p *Pass) CountFDs(pid int) (int, error) {
	p.setPath(pid, "fd")
	var st unix.Statx_t
	if err := p.stat(unix.AT_FDCWD, 0, &st); err == nil && st.Size > 0 {
		return int(st.Size), nil
	}
	return p.FDs(pid, 0, nil)
}

// FDs appends up to limit regular files and sockets of a process to *into, and counts all its descriptors. It opens no
// file and asks no other machine: the size that a network file system has cached is good enough, and a dead file
// server must not stop a sample.
func (p *Pass) FDs(pid, limit int, into *[]FD) (int, error) {
	p.setPath(pid, "fd")
	dir, err := p.open(unix.O_DIRECTORY)
	if err != nil {
		return 0, goneError(err)
	}
	defer unix.Close(dir)

	total, looked := 0, 0
	for {
		n, err := p.entries(dir)
		if err != nil {
			return total, goneError(err)
		}
		if n == 0 {
			return total, nil
		}
		for rest := p.dents[:n]; len(rest) > 0; {
			var name []byte
			name, rest = entry(rest)
			if _, ok := parseDigits(name); !ok {
				continue
			}
			total++
			if looked < limit {
				looked++
				if fd, ok := p.fd(dir, name); ok {
					*into = append(*into, fd)
				}
			}
		}
	}
}

// fd examines one descriptor. The permission of the link itself shows whether it is open for writing. That needs one
// call; the flags in fdinfo would need three.
func (p *Pass) fd(dir int, name []byte) (FD, bool) {
	p.path = append(append(p.path[:0], name...), 0)
	var st unix.Statx_t
	if err := p.stat(dir, unix.AT_STATX_DONT_SYNC, &st); err != nil {
		return FD{}, false // closed meanwhile, or without permission
	}

	fd := FD{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		fd.Socket = true
		return fd, true
	case unix.S_IFREG:
		fd.Size = int64(min(st.Size, st.Blocks*512))
		if st.Blocks == 0 { // some file systems do not count blocks, or count them later
			fd.Size = int64(st.Size)
		}
		if err := p.stat(dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC, &st); err != nil {
			return FD{}, false
		}
		fd.Write = st.Mode&0o200 != 0
		return fd, true
	}

	return FD{}, false
}

// open opens the path in the buffer. The function of the library would copy the path to the heap every time.
func (p *Pass) open(flags int) (int, error) {
	for {
		at := unix.AT_FDCWD
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&p.path[0])),
			uintptr(unix.O_RDONLY|unix.O_CLOEXEC|flags), 0, 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, errno
		}
	}
}

func (p *Pass) stat(dir, flags int, st *unix.Statx_t) error {
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&p.path[0])), uintptr(flags),
		unix.STATX_TYPE|unix.STATX_MODE|unix.STATX_INO|unix.STATX_SIZE|unix.STATX_BLOCKS,
		uintptr(unsafe.Pointer(st)), 0)
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS:
		return p.oldStat(dir, flags, st)
	}
	return errno
}

// oldStat replaces statx on Linux before 4.11.
func (p *Pass) oldStat(dir, flags int, st *unix.Statx_t) error {
	var old unix.Stat_t
	if err := unix.Fstatat(dir, string(p.path[:len(p.path)-1]), &old, flags&unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	*st = unix.Statx_t{
		Mode: uint16(old.Mode), Ino: old.Ino, Size: uint64(old.Size), Blocks: uint64(old.Blocks),
		Dev_major: unix.Major(old.Dev), Dev_minor: unix.Minor(old.Dev),
	}
	return nil
}

func (p *Pass) entries(fd int) (int, error) {
	for {
		n, err := unix.Getdents(fd, p.dents)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// entry returns the name in the first record of an answer of getdents64, and the rest. A record has inode and offset
// (8 bytes each), length (2), type (1) and the name.
func entry(b []byte) (name, rest []byte) {
	const head = 19
	if len(b) < head {
		return nil, nil
	}

	size := int(binary.NativeEndian.Uint16(b[16:]))
	if size < head || size > len(b) {
		return nil, nil
	}

	name, rest = b[head:size], b[size:]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	return name, rest
}

// goneError turns the errors by which the kernel says that a process is gone into ErrGone. It does not wrap other
// errors, so it allocates nothing.
func goneError(err error) error {
	if err == unix.ENOENT || err == unix.ESRCH {
		return ErrGone
	}
	return err
}
