package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const pidFileBytes = 32

// readPIDFile reads the pid in a small regular file on a local disk. It is only a hint: the caller checks the
// process.
func readPIDFile(path string) (pid int, written time.Time, reason string) {
	// Reject devices, pipes and shares: on Windows their paths begin with two slashes.
	if !filepath.IsAbs(path) || strings.HasPrefix(filepath.ToSlash(path), "//") {
		return 0, written, fmt.Sprintf("pid file %q is not an absolute path on this machine", path)
	}

	// Reject what is not a small regular file.
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, written, fmt.Sprintf("pid file %s does not exist", path)
	case err != nil:
		return 0, written, fmt.Sprintf("pid file %s cannot be read: %v", path, err)
	case !fi.Mode().IsRegular() || fi.Size() > pidFileBytes:
		return 0, written, fmt.Sprintf("pid file %s is not a small regular file", path)
	}

	// Read the pid.
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, written, fmt.Sprintf("pid file %s cannot be read: %v", path, err)
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 32)
	if err != nil || n < 2 || int(n) == os.Getpid() {
		return 0, written, fmt.Sprintf("pid file %s does not hold a process id", path)
	}
	return int(n), fi.ModTime(), ""
}

// tail reads the end of what a command has printed.
func tail(f *os.File) (string, error) {
	fi, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("cannot read output: %w", err)
	}
	from := max(0, fi.Size()-outputBytes)
	b := make([]byte, fi.Size()-from)
	n, err := f.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cannot read output: %w", err)
	}
	return cleanOutput(b[:n], from > 0), nil
}
