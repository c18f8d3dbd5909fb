package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Control files are small files of the kernel: those of cgroups and of /proc. They are read and written without os.File,
// whose poller costs four more calls for each file, and a start uses a dozen of them.

// controlBytes is enough for most control files. Longer ones are read in several steps.
const controlBytes = 4 << 10

// readControl reads a control file to its end.
func readControl(path string) ([]byte, error) {
	fd, err := openControl(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)

	b := make([]byte, 0, 512)
	for {
		if len(b) == cap(b) {
			b = append(b, make([]byte, max(controlBytes, cap(b)))...)[:len(b)]
		}
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return b, &os.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
}

// writeExisting writes to a control file and never creates one.
func writeExisting(path, text string) error {
	fd, err := openControl(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	for {
		n, err := unix.Write(fd, []byte(text))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && n < len(text): // the kernel takes such a text whole or not at all
			err = unix.EIO
		}
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			return &os.PathError{Op: "write", Path: path, Err: err}
		}
		return nil
	}
}

func openControl(path string, flags int) (int, error) {
	fd, err := retryOpen(path, flags, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// retryOpen opens a file that commands do not inherit. A network file system may be interrupted.
func retryOpen(path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
