package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// File is a file of the host that is about to be read or replaced. It holds the folder of the file open: what was checked is
// what is used, even if the path leads elsewhere meanwhile. Everything is done with the rights of the account.
type File struct {
	h       *Host
	path    string
	account account
	cred    *syscall.Credential
	folder  *os.File
	make    bool // missing folders
	view    gozzard.FileView
	stat    unix.Stat_t // of the file; zero if there is none
}

// OpenFile opens the folder of a file step by step, follows no link on the way, and reads the file if there is one. With
// folders it makes those that are missing.
func (h *Host) OpenFile(accountName, file string, folders bool) (*File, error) {
	runAs, cred, err := h.actAs(accountName)
	if err != nil {
		return nil, err
	}
	if err := gozzard.ValidateFilePath(file); err != nil {
		return nil, err
	}

	f := &File{h: h, path: file, account: runAs, cred: cred, make: folders}
	err = asAccount(cred, func() error {
		if err := f.openFolder(); err != nil {
			return err
		}
		return f.look()
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	f.nameOwners()
	return f, nil
}

// View is the file as it was when it was opened. Owner and group are names where the host has names for them.
func (f *File) View() gozzard.FileView { return f.view }

// Close releases the folder.
func (f *File) Close() {
	if f.folder != nil {
		f.folder.Close()
		f.folder = nil
	}
}

// openFolder opens the folder of the file. Every folder on the way must belong to root or to the account, and no other
// account may be able to write it: it could replace what follows. A folder that all may write to is accepted on the way
// if its sticky bit protects what belongs to others.
func (f *File) openFolder() error {
	dir, err := openAt(unix.AT_FDCWD, "/")
	if err != nil {
		return err
	}
	defer func() { dir.Close() }()

	way := "/"
	names := strings.Split(strings.TrimPrefix(path.Dir(f.path), "/"), "/")
	for i := -1; i < len(names); i++ {
		if i >= 0 && names[i] != "" {
			way = path.Join(way, names[i])
			next, err := f.enter(dir, names[i])
			if err != nil {
				return f.explain(int(dir.Fd()), names[i], way, err)
			}
			dir.Close()
			dir = next
		}
		if err := f.trustFolder(dir, way, i == len(names)-1); err != nil {
			return err
		}
	}

	// A folder that is open for its path only cannot be synced.
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("folder %s: account %s cannot read it: %w", way, f.account.name, err)
	}
	f.folder = os.NewFile(uintptr(fd), way)
	return nil
}

// enter opens a folder of a folder that is trusted. It makes one that is missing if it may.
func (f *File) enter(dir *os.File, name string) (*os.File, error) {
	next, err := openAt(int(dir.Fd()), name)
	if !f.make || !errors.Is(err, unix.ENOENT) {
		return next, err
	}

	if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("it does not exist and cannot be made: %w", err)
	}
	if fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		_ = unix.Fsync(fd) // the file is durable only with its folder; where the account may not read, the system decides when
		unix.Close(fd)
	}
	return openAt(int(dir.Fd()), name)
}

// openAt opens a folder for its path, without following a link.
func openAt(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// explain says why a folder cannot be opened.
func (f *File) explain(dir int, name, way string, err error) error {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fmt.Errorf("folder %s is a symbolic link: name the file by its real path", way)
	}
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("folder %s does not exist: make it first", way)
	}
	return fmt.Errorf("folder %s: account %s cannot enter it: %w", way, f.account.name, err)
}

func (f *File) trustFolder(dir *os.File, way string, last bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fmt.Errorf("folder %s: %w", way, err)
	}

	open := st.Mode&0o022 != 0
	switch {
	case slices.Contains(f.h.protected(), nodeID{uint64(st.Dev), st.Ino}):
		return fmt.Errorf("folder %s belongs to the agent of this host: no file may be written or read there", way)
	case st.Uid != 0 && st.Uid != f.account.uid:
		return fmt.Errorf("folder %s belongs to uid %d, not to root or to %s, which could replace the file", way, st.Uid,
			f.account.name)
	case open && (last || st.Mode&unix.S_ISVTX == 0):
		return fmt.Errorf("folder %s can be written by others than its owner (mode %04o): they could replace the file; "+
			"run: chmod go-w %s", way, st.Mode&0o7777, way)
	}
	return nil
}

// nodeID identifies a file or folder, whatever its path is.
type nodeID struct{ dev, ino uint64 }

// protected are the folders and files that no operation on files may reach: those that say what the agent is and may do.
func (h *Host) protected() (all []nodeID) {
	for _, p := range h.own {
		var st unix.Stat_t
		if p != "" && unix.Stat(p, &st) == nil {
			all = append(all, nodeID{uint64(st.Dev), st.Ino})
		}
	}
	return all
}

// look reads the file. What is there must be a regular file of the account with one name.
func (f *File) look() error {
	name := path.Base(f.path)
	fd, err := unix.Openat(int(f.folder.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("file %s: %w", f.path, err)
	}
	file := os.NewFile(uintptr(fd), f.path)
	defer file.Close()

	// Reject what is not a plain file of the account.
	if err := unix.Fstat(fd, &f.stat); err != nil {
		return fmt.Errorf("file %s: %w", f.path, err)
	}
	if err := f.trustFile(); err != nil {
		return err
	}

	// Read it.
	in, err := unix.Open(descriptorPath(file), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("file %s: account %s cannot read it: %w", f.path, f.account.name, err)
	}
	r := os.NewFile(uintptr(in), f.path)
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, gozzard.MaxFileBytes+1))
	if err != nil {
		return fmt.Errorf("file %s: %w", f.path, err)
	}
	if len(content) > gozzard.MaxFileBytes {
		return fmt.Errorf("file %s has more than %d bytes: it can be neither read nor replaced", f.path, gozzard.MaxFileBytes)
	}

	f.view = gozzard.FileView{Exists: true, Mode: fmt.Sprintf("%04o", f.stat.Mode&0o7777), Size: int64(len(content)),
		SHA256: gozzard.FileDigest(content), Changed: f.stat.Mtim.Nano() / 1e6, Content: content}
	return nil
}

func (f *File) trustFile() error {
	st := &f.stat
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return fmt.Errorf("file %s is a symbolic link: name the file by its real path, or remove the link", f.path)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is not a regular file", f.path)
	case slices.Contains(f.h.protected(), nodeID{uint64(st.Dev), st.Ino}):
		return fmt.Errorf("file %s belongs to the agent of this host: it may be neither written nor read", f.path)
	case st.Uid != f.account.uid:
		return fmt.Errorf("file %s belongs to uid %d, not to %s: it is not replaced and not read. To hand it over, run on this host as root: "+
			"chown %s %s", f.path, st.Uid, f.account.name, f.account.name, f.path)
	case st.Nlink > 1:
		return fmt.Errorf("file %s has %d names (hard links), one is allowed", f.path, st.Nlink)
	}
	return nil
}

// nameOwners puts names where the host has names. It is not part of look: these files are read with the agent's rights.
func (f *File) nameOwners() {
	if !f.view.Exists {
		return
	}
	f.view.Owner, f.view.Group = strconv.FormatUint(uint64(f.stat.Uid), 10), strconv.FormatUint(uint64(f.stat.Gid), 10)
	if u, err := user.LookupId(f.view.Owner); err == nil {
		f.view.Owner = u.Username
	}
	if g, err := user.LookupGroupId(f.view.Group); err == nil {
		f.view.Group = g.Name
	}
}
