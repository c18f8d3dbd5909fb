package agentsock

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// folder is the folder of a socket. It is kept open and everything is done through it. So the folder that was checked
// is the folder that is used, and a path may be longer than the 107 bytes of a socket address.
type folder struct{ dir *os.File }

func openFolder(path string) (*folder, error) {
	d, err := os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the socket's folder: %w", err)
	}
	return &folder{d}, nil
}

func (f *folder) at(name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), name) }

func (f *folder) stat() (os.FileInfo, error) { return f.dir.Stat() }

func (f *folder) close() { _ = f.dir.Close() } // nothing was written through it
