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
	p.at(0, "")
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
				if pid, ok := digits(name); ok {
					dst = append(dst, pid)
				}
			}
		}
	}
}

// Stat reads /proc/<pid>/stat. Processes that are gone give ErrGone.
func (p *Pass) Stat(pid int) (Stat, error) {
	p.at(pid, "stat")
	fd, err := p.open(0)
	if err != nil {
		return Stat{}, gone(err)
	}
	n, err := unix.Read(fd, p.line[:]) // the kernel makes the whole line in one go
	_ = unix.Close(fd)
	if err != nil {
		return Stat{}, gone(err)
	}
	return ParseStat(p.line[:n])
}

// CountFDs counts the open descriptors of a process. Kernels since 6.2 tell it as the size of the folder; for older
// ones the entries are counted.
func (p *Pass) CountFDs(pid int) (int, error) {
	p.at(pid, "fd")
	var st unix.Statx_t
	if err := p.stat(unix.AT_FDCWD, 0, &st); err == nil && st.Size > 0 {
		return int(st.Size), nil
	}
	return p.FDs(pid, 0, nil)
}

// FDs appends up to limit regular files and sockets that a process holds to *into, and counts all its descriptors.
// No file is opened and no other machine is asked: what a network file system knows of a file's size without asking
// is enough here, and a dead server must not stop a sample.
func (p *Pass) FDs(pid, limit int, into *[]FD) (int, error) {
	p.at(pid, "fd")
	dir, err := p.open(unix.O_DIRECTORY)
	if err != nil {
		return 0, gone(err)
	}

	defer unix.Close(dir)
	total, looked := 0, 0
	for {
		n, err := p.entries(dir)
		if err != nil {
			return total, gone(err)
		}
		if n == 0 {
			return total, nil
		}
		for rest := p.dents[:n]; len(rest) > 0; {
			var name []byte
			name, rest = entry(rest)
			if _, ok := digits(name); !ok {
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

// fd looks at one descriptor. Whether it is open for writing is what the kernel shows as the permission of the link
// itself: that costs one call where the flags in fdinfo cost three.
func (p *Pass) fd(dir int, name []byte) (FD, bool) {
	p.path = append(append(p.path[:0], name...), 0)
	var st unix.Statx_t
	if err := p.stat(dir, unix.AT_STATX_DONT_SYNC, &st); err != nil {
		return FD{}, false // closed meanwhile, or not ours to look at
	}

	fd := FD{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		fd.Socket = true
		return fd, true
	case unix.S_IFREG:
		fd.Size = int64(min(st.Size, st.Blocks*512))
		if st.Blocks == 0 { // some file systems do not count blocks, or not yet
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

// open opens the path in the buffer: the wrapper of the library would copy it to the heap every time.
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
		unix.STATX_TYPE|unix.STATX_MODE|unix.STATX_INO|unix.STATX_SIZE|unix.STATX_BLOCKS, uintptr(unsafe.Pointer(st)),
		0)
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS:
		return p.oldStat(dir, flags, st)
	}
	return errno
}

// oldStat is for Linux before 4.11.
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

// entry takes the first record off the answer of getdents64: inode and offset (8 bytes each), length (2), type (1)
// and the name.
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

// gone turns the errors by which the kernel says that a process is gone into ErrGone. The others are small numbers
// and cost nothing either.
func gone(err error) error {
	if err == unix.ENOENT || err == unix.ESRCH {
		return ErrGone
	}
	return err
}
