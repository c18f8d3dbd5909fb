package agentsock

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxFolder leaves room for the file names within the 103 bytes of a socket address.
const maxFolder = 70

// folder is the folder of a socket.
type folder struct{ path string }

func openFolder(path string) (*folder, error) {
	if len(path) > maxFolder {
		return nil, fmt.Errorf("the path %s is too long for a socket on this system, at most %d bytes are possible: "+
			"give another --socket", path, maxFolder)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot open the socket's folder: %w", err)
	}
	return &folder{path}, nil
}

func (f *folder) at(name string) string { return filepath.Join(f.path, name) }

func (f *folder) stat() (os.FileInfo, error) { return os.Stat(f.path) }

func (f *folder) close() {}
