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

// Supported says that this system tells who is at the other end of a socket.
const Supported = true

// dialWait is how long a socket that is there may take to be connected to.
const dialWait = 5 * time.Second

// socket is a listener and its name in the file system.
type socket struct {
	*net.UnixListener
	folder *folder
	name   string
	made   fs.FileInfo
	group  *uint32
}

// listenAt makes the socket. It is made in a folder of its own that nobody else can enter, and gets its name when
// its mode is right: there is no moment in which it can be reached and is not protected. What has the name already
// is replaced only when it is a socket on which nobody listens.
func listenAt(path, group string) (_ *socket, err error) {
	s := &socket{name: filepath.Base(path)}
	mode := fs.FileMode(0o600)

	if group != "" {
		gid, err := groupID(group)
		if err != nil {
			return nil, err
		}
		s.group, mode = &gid, 0o660
	}

	if s.folder, err = trustedFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}

	defer func() {
		if err != nil {
			s.close()
		}
	}()

	if err := s.vacant(path); err != nil {
		return nil, err
	}

	nest := "." + s.name + ".new"
	if err := s.clear(nest); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.folder.at(nest), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the socket %s: %w", path, bare(err))
	}

	defer func() { err = errors.Join(err, s.clear(nest)) }()

	if err := s.bind(s.folder.at(nest+"/s"), mode); err != nil {
		return nil, fmt.Errorf("cannot make the socket %s: %w", path, bare(err))
	}
	if err := os.Rename(s.folder.at(nest+"/s"), s.folder.at(s.name)); err != nil {
		return nil, fmt.Errorf("cannot make the socket %s: %w", path, bare(err))
	}

	return s, nil
}

func (s *socket) bind(at string, mode fs.FileMode) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return err
	}

	l.SetUnlinkOnClose(false) // it gets another name
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

// close ends the socket and takes its name away, unless somebody else has it by now.
func (s *socket) close() {
	if s.UnixListener != nil {
		_ = s.UnixListener.Close() // it may be closed already
	}
	if fi, err := os.Lstat(s.folder.at(s.name)); err == nil && s.made != nil && os.SameFile(fi, s.made) {
		_ = os.Remove(s.folder.at(s.name)) // what stays is stale, and replaced by the next agent
	}
	s.folder.close()
}

// vacant refuses a name that is in use.
func (s *socket) vacant(path string) error {
	fi, err := os.Lstat(s.folder.at(s.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot look at the socket %s: %w", path, bare(err))
	case fi.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket (%s): move it away, or give another --socket", path, fi.Mode())
	}

	c, err := net.DialTimeout("unix", s.folder.at(s.name), dialWait)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find out whether somebody listens on %s: %w", path, bare(err))
	}

	defer c.Close()
	who := ""

	if p, err := peerOf(c.(*net.UnixConn)); err == nil && p.pid > 0 {
		who = fmt.Sprintf(" (pid %d)", p.pid)
	}

	return fmt.Errorf("another program listens on %s%s: give each agent a --socket of its own", path, who)
}

// clear takes away what an agent left that was killed while it made its socket.
func (s *socket) clear(nest string) error {
	if fi, err := os.Lstat(s.folder.at(nest + "/s")); err == nil && fi.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(s.folder.at(nest + "/s")); err != nil {
			return fmt.Errorf("cannot clear %s, which an earlier start left: %w", nest, bare(err))
		}
	}
	if err := os.Remove(s.folder.at(nest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot clear %s, which an earlier start left: %w", nest, bare(err))
	}
	return nil
}

// trustedFolder opens a folder in which nobody but root and this account decides what is called what.
func trustedFolder(path string) (*folder, error) {
	if err := policy.TrustOwnWay.Check(path); err != nil {
		return nil, fmt.Errorf("cannot use the socket's folder: %w", err)
	}

	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}

	fi, err := f.stat()
	if err == nil && fi.Mode().Perm()&0o022 != 0 { // a sticky one, too: whoever comes first has the name in it
		err = fmt.Errorf("it is writable by others (mode %04o); use one that only root or the agent's account may write, such as /run/gozzard", fi.Mode().Perm())
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("cannot use the socket's folder %s: %w", path, err)
	}

	return f, nil
}

// groupID finds a group by its name, else by its number.
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

// bare is an error without the path by which a folder that is held open is reached: it means nothing to people.
func bare(err error) error {
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
