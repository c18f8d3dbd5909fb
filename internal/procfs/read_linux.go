package procfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readInto reads the beginning of a file into buf. It does not use os.File, because its poller and finaliser cost more
// than the read itself.
func readInto(path string, buf []byte) ([]byte, error) {
	fd, err := openRetry(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}

	defer unix.Close(fd)

	n := 0
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			break
		}
		n += m
	}

	return buf[:n], nil
}

func openRetry(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func isNoProcess(err error) bool { return errors.Is(err, unix.ESRCH) }
