package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// folder is the folder in which a command runs. It is held open: the folder that was checked is the folder that the
// command enters, even if its path changes in between.
type folder struct {
	name string // as the definition has it
	real string
	file *os.File
}

// openFolderOf opens the folder of a command. A script runs in the root folder: the policy decides about its account alone.
func (h *Host) openFolderOf(r supervise.Run, user string, cred *syscall.Credential) (*folder, error) {
	if r.Action != gozzard.ActionScript {
		return h.openFolder(r.Spec.Identity.SetupPath, user, cred)
	}
	f, err := os.Open("/")
	if err != nil {
		return nil, fmt.Errorf("cannot open the root folder: %w", err)
	}
	return &folder{name: "/", real: "/", file: f}, nil
}

// openFolder opens the folder of a command with the rights of its account, so that the account cannot reach a
// folder that it may not enter. Then the policy of the host decides about the real path. Without a setup path the
// folder is the root folder.
func (h *Host) openFolder(path, user string, cred *syscall.Credential) (*folder, error) {
	// Reject a path that is not clean and absolute.
	if path == "" {
		path = "/"
	}
	if clean := filepath.Clean(path); !filepath.IsAbs(path) || clean != path && clean+"/" != path {
		return nil, fmt.Errorf("folder (setup_path) %q: not a clean absolute path", path)
	}

	// Open it with the rights of the account.
	fd := -1
	open := func() (err error) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); { // a network file system may be interrupted
			fd, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		return err
	}
	err := asAccount(cred, open)

	// Explain an error in the words of the definition.
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("folder (setup_path) %s: no such directory", path)
	case errors.Is(err, unix.EACCES) && cred != nil:
		return nil, fmt.Errorf("folder (setup_path) %s: user %s may not enter it", path, user)
	case errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("folder (setup_path) %s: permission denied", path)
	case errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("folder (setup_path) %s: not a directory", path)
	case err != nil:
		return nil, fmt.Errorf("folder (setup_path) %s: %w", path, err)
	}

	// Ask the policy about the real path.
	d := &folder{name: path, file: os.NewFile(uintptr(fd), path)}
	if d.real, err = os.Readlink(d.path()); err == nil && h.permit != nil {
		err = h.permit(user, d.real)
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}

	return d, nil
}

// path leads to the folder in this process, and in a child before it has executed its program.
func (d *folder) path() string { return "/proc/self/fd/" + strconv.Itoa(int(d.file.Fd())) }

// asAccount runs fn with the file access rights of an account, on a thread that ends with it.
func asAccount(cred *syscall.Credential, fn func() error) error {
	if cred == nil {
		return fn()
	}
	return onOwnThread(func() error {
		// These calls change this thread only.
		groups := make([]int, len(cred.Groups))
		for i, g := range cred.Groups {
			groups[i] = int(g)
		}
		if err := unix.Setgroups(groups); err != nil {
			return os.NewSyscallError("setgroups", err)
		}
		if err := unix.Setfsgid(int(cred.Gid)); err != nil {
			return os.NewSyscallError("setfsgid", err)
		}
		if err := unix.Setfsuid(int(cred.Uid)); err != nil { // also drops root's capabilities over files
			return os.NewSyscallError("setfsuid", err)
		}

		// The last call reports no error, so check what it did.
		if now, err := unix.SetfsuidRetUid(-1); err != nil || now != int(cred.Uid) {
			return fmt.Errorf("cannot act as uid %d", cred.Uid)
		}

		return fn()
	})
}
