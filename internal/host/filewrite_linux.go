package host

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// errFileChanged is the error of a replace that found another file than the one that was looked at.
var errFileChanged = errors.New("another program changed the file while it was being replaced; nothing was written")

// Same reports whether the file already is what it must be.
func (f *File) Same(spec *gozzard.FileSpec) bool {
	mode, err := gozzard.ParseFileMode(spec.Mode)
	gid, errGroup := f.group(spec.Group)
	return err == nil && errGroup == nil && f.view.Exists && f.view.SHA256 == spec.SHA256 && f.stat.Gid == gid &&
		f.stat.Mode&0o7777 == mode
}

// Check reports why Replace could not succeed, as far as it can be known before.
func (f *File) Check(spec *gozzard.FileSpec) error {
	_, err := f.group(spec.Group)
	return err
}

// group is the number of a group that the account may give to its files.
func (f *File) group(name string) (uint32, error) {
	if name == "" {
		return f.account.gid, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("group %s: no such group on this host", name)
	}
	gid, err := strconv.ParseUint(g.Gid, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("group %s has no numeric id: %w", name, err)
	}
	if f.account.uid != 0 && uint32(gid) != f.account.gid && !slices.Contains(f.account.groups, uint32(gid)) {
		return 0, fmt.Errorf("group %s: account %s is not a member of it", name, f.account.name)
	}
	return uint32(gid), nil
}

// tempName is the name of the new file until it takes its place. The mark is that of the operation, so that a later run of
// the agent finds what an interrupted one left.
func tempName(mark string) string { return ".gozzard-" + mark + ".tmp" }

// Replace writes a new file beside the old one, makes it durable, and puts it into its place. At any moment the path leads
// to the whole old file or to the whole new one.
func (f *File) Replace(spec *gozzard.FileSpec, content []byte, mark string) error {
	mode, err := gozzard.ParseFileMode(spec.Mode)
	if err != nil {
		return err
	}
	gid, err := f.group(spec.Group)
	if err != nil {
		return err
	}

	return asAccount(f.cred, func() error {
		err := f.fill(content, tempName(mark), mode, gid)
		if err == nil {
			err = f.rename(tempName(mark))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("cannot write %s: %w", f.path, err), f.remove(tempName(mark)))
		}
		if err := unix.Fsync(int(f.folder.Fd())); err != nil {
			return fmt.Errorf("cannot make %s durable: %w", f.path, err)
		}
		return nil
	})
}

// fill makes the new file.
func (f *File) fill(content []byte, temp string, mode, gid uint32) error {
	fd, err := unix.Openat(int(f.folder.Fd()), temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temp)
	defer file.Close()

	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := unix.Fchown(fd, -1, int(gid)); err != nil {
		return fmt.Errorf("cannot set its group: %w", err)
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return fmt.Errorf("cannot set its mode: %w", err)
	}
	return file.Sync()
}

// rename puts the new file into its place, if what is there is what was looked at.
func (f *File) rename(temp string) error {
	var now unix.Stat_t
	err := unix.Fstatat(int(f.folder.Fd()), path.Base(f.path), &now, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT) && !f.view.Exists:
	case err != nil && !errors.Is(err, unix.ENOENT):
		return err
	case err != nil || !f.view.Exists || now.Ino != f.stat.Ino || now.Dev != f.stat.Dev || now.Mtim != f.stat.Mtim ||
		now.Ctim != f.stat.Ctim || now.Size != f.stat.Size:
		return errFileChanged
	}
	return unix.Renameat(int(f.folder.Fd()), temp, int(f.folder.Fd()), path.Base(f.path))
}

// Clear removes what an interrupted Replace of a mark left.
func (f *File) Clear(mark string) error {
	return asAccount(f.cred, func() error { return f.remove(tempName(mark)) })
}

func (f *File) remove(name string) error {
	if err := unix.Unlinkat(int(f.folder.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
