package agentsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/internal/policy"
)

// Supported says whether this system identifies the account at the other end of a socket.
const Supported = true

// dialWait is how long connecting to an existing socket may take.
const dialWait = 5 * time.Second

// socket is a listener and its file.
type socket struct {
	*net.UnixListener
	folder *folder
	path   string
	name   string
	made   fs.FileInfo
	group  *uint32
}

// inPlace reports whether the file of the socket is still at its path.
func (s *socket) inPlace() bool {
	fi, err := os.Lstat(s.path)
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || os.SameFile(fi, s.made))
}

// listenAt makes the socket. It makes it in a temporary folder that no other account can enter, and renames it when
// its mode is right. So the socket can never be reached without its protection. An existing file with the name is
// replaced only if it is a socket on which no program listens.
func listenAt(path, group string) (_ *socket, err error) {
	// Find the group that has read access.
	s := &socket{path: path, name: filepath.Base(path)}
	mode := fs.FileMode(0o600)
	if group != "" {
		gid, err := groupID(group)
		if err != nil {
			return nil, err
		}
		s.group, mode = &gid, 0o660
	}

	// Check the folder and the name.
	if s.folder, err = trustedFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.checkFree(path); err != nil {
		return nil, err
	}

	// Make the temporary folder.
	tmp := "." + s.name + ".new"
	if err := s.removeTemp(tmp); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.folder.at(tmp), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the socket %s: %w", path, withoutPath(err))
	}

	defer func() { err = errors.Join(err, s.removeTemp(tmp)) }()

	// Make the socket and rename it.
	if err := s.bind(s.folder.at(tmp+"/s"), mode); err != nil {
		return nil, fmt.Errorf("cannot make the socket %s: %w", path, withoutPath(err))
	}
	if err := os.Rename(s.folder.at(tmp+"/s"), s.folder.at(s.name)); err != nil {
		return nil, fmt.Errorf("cannot make the socket %s: %w", path, withoutPath(err))
	}
	return s, nil
}

// bind makes the socket in the temporary folder and sets its group and mode.
func (s *socket) bind(at string, mode fs.FileMode) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return err
	}

	l.SetUnlinkOnClose(false) // the file is renamed
	s.UnixListener = l

	if s.group != nil {
		if err := os.Lchown(at, -1, int(*s.group)); err != nil {
			return err
		}
	}

	if err := os.Chmod(at, mode); err != nil {
		return err
	}
	s.made, err = os.Lstat(at)
	return err
}

// close ends the socket and removes its file, unless another program has replaced the file.
func (s *socket) close() {
	if s.UnixListener != nil {
		_ = s.UnixListener.Close() // an error means that it is closed already
	}
	if fi, err := os.Lstat(s.folder.at(s.name)); err == nil && s.made != nil && os.SameFile(fi, s.made) {
		_ = os.Remove(s.folder.at(s.name)) // if that fails, the next agent replaces the file
	}
	s.folder.close()
}

// checkFree rejects a path that is in use.
func (s *socket) checkFree(path string) error {
	// Allow a file only if it is a socket.
	fi, err := os.Lstat(s.folder.at(s.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot examine the socket %s: %w", path, withoutPath(err))
	case fi.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket (%s): move it away, or give another --socket", path, fi.Mode())
	}

	// Allow a socket only if no program listens on it.
	c, err := net.DialTimeout("unix", s.folder.at(s.name), dialWait)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find out whether a program listens on %s: %w", path, withoutPath(err))
	}
	defer c.Close()

	pid := ""
	if p, err := peerOf(c.(*net.UnixConn)); err == nil && p.pid > 0 {
		pid = fmt.Sprintf(" (pid %d)", p.pid)
	}
	return fmt.Errorf("another program listens on %s%s: give each agent its own --socket", path, pid)
}

// removeTemp removes what an agent has left that was killed while it made its socket.
func (s *socket) removeTemp(tmp string) error {
	if fi, err := os.Lstat(s.folder.at(tmp + "/s")); err == nil && fi.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(s.folder.at(tmp + "/s")); err != nil {
			return fmt.Errorf("cannot clear %s, which an earlier start left: %w", tmp, withoutPath(err))
		}
	}
	if err := os.Remove(s.folder.at(tmp)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot clear %s, which an earlier start left: %w", tmp, withoutPath(err))
	}
	return nil
}

// trustedFolder opens a folder in which only root and this account can make and rename files.
func trustedFolder(path string) (*folder, error) {
	// Check the path.
	if err := policy.TrustOwnWay.Check(path); err != nil {
		return nil, fmt.Errorf("cannot use the socket's folder: %w", err)
	}

	// Open the folder.
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}

	// Reject a folder that others can write, even with the sticky bit: another account could use the name first.
	fi, err := f.stat()
	if err == nil && fi.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("it is writable by others (mode %04o); use one that only root or the agent's account may "+
			"write, such as /run/gozzard", fi.Mode().Perm())
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("cannot use the socket's folder %s: %w", path, err)
	}
	return f, nil
}

// groupID finds a group by its name, or else by its number.
func groupID(name string) (uint32, error) {
	id := name
	g, err := user.LookupGroup(name)
	if err == nil {
		id = g.Gid
	}

	n, bad := strconv.ParseUint(id, 10, 32)
	switch {
	case bad == nil:
		return uint32(n), nil
	case err == nil:
		err = bad
	}

	return 0, fmt.Errorf("cannot find the group of --socket-group: %w", err)
}

// withoutPath removes the path from an error. The path leads through a descriptor of this process and means nothing to
// people.
func withoutPath(err error) error {
	var op *net.OpError
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &op):
		return op.Err
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

func ownUID() uint32 { return uint32(os.Geteuid()) }

// dial connects to the socket of an agent.
func dial(ctx context.Context, path string) (net.Conn, error) {
	f, err := openFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer f.close()

	d := net.Dialer{Timeout: dialWait}
	return d.DialContext(ctx, "unix", f.at(filepath.Base(path)))
}
