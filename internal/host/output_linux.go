package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Output of commands goes to files, not pipes. That of start and restart is the process's log (log_linux.go); the
// others have a file of their own: what a reload or stop command says must not be mixed with what the running
// process prints.
//
// Why not pipes: What a start command leaves behind usually inherits its output: with a pipe a command would seem
// to run as long as its daemon does, and once nobody reads (the command has ended, or the agent) the daemon is
// blocked or killed by SIGPIPE. A file stays valid for ever, whatever becomes of the agent.
//
// The price is that a chatty daemon fills a disk. So the files are appended to and trimmed from the front to a
// bound while the agent lives: by punching holes, which leaves the end where it is for reader and writers. They
// keep their names (<state>/output/<process>.<run>) while the run's cgroup has members: a person can read them, and
// the agent finds them again after its own restart. Without cgroups nobody could tell when such a file is no longer
// used: then it is removed right after it was made, lives as long as it is open, and is not trimmed later.

const (
	outputKept  = 64 << 10 // left at the end by a trim
	outputLimit = 1 << 20  // trimmed when it occupies more
)

type outputs struct {
	dir   string
	gives bool // files may be given to other accounts
}

func openOutputs(stateDir string, gives bool) (*outputs, error) {
	dir := filepath.Join(stateDir, "output")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make folder for output: %w", err)
	}
	return &outputs{dir: dir, gives: gives}, nil
}

// output is the file of one command: its own, or the log of its process.
type output struct {
	path string // "" once removed, and for a log
	file *os.File
	log  *procLog // nil for a file of its own
	from int64    // position in the log where the command began
}

// create makes a file that its user may open again through /dev/stdout, but not find by its path.
func (o *outputs) create(name string, a account, named bool) (*output, error) {
	path := filepath.Join(o.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot make file for output: %w", err)
	}

	out := &output{path: path, file: f}

	switch {
	case int(a.uid) == os.Geteuid():
	case o.gives:
		err = f.Chown(int(a.uid), int(a.gid))
	default:
		err = f.Chmod(0o622) // as with logs: nobody else finds a way to it
	}

	if err == nil && !named {
		err = out.remove()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make file for output: %w", err), out.remove(), f.Close())
	}

	return out, nil
}

// close lets go of the file; a log is read by its path.
func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	f := o.file
	o.file = nil
	return f.Close()
}

func (o *output) remove() error {
	if o.path == "" {
		return nil
	}
	err := removeFile(o.path)
	o.path = ""
	return err
}

// removeFile does not mind that somebody was faster: commands and the sweep both clean up.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// tail reads the last lines of what the command printed.
func (o *output) tail() (string, error) {
	if o.log != nil {
		return o.log.tail(o.from)
	}

	fi, err := o.file.Stat()
	if err != nil {
		return "", err
	}

	from := max(0, fi.Size()-outputBytes)
	b := make([]byte, outputBytes)
	n, err := o.file.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}

	return cleanOutput(b[:n], from > 0), nil
}

// copyTo adds the end of the output to another file.
func (o *output) copyTo(f *os.File) error {
	fi, err := o.file.Stat()
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(o.file, max(0, fi.Size()-outputKept), outputKept))
	return err
}

// trim keeps a file of the command's own within bounds; logs are rotated by and by.
func (o *output) trim() error {
	if o.log != nil {
		return nil
	}
	return trim(o.file)
}

// trim gives back all but the end of a file that occupies too much.
func trim(f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}

	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Blocks*512 <= outputLimit {
		return nil
	}

	hole := (fi.Size() - outputKept) &^ 4095
	if hole <= 0 {
		return nil
	}

	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, hole)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.Truncate(0) // safe, as everybody appends
	}

	return err
}

// sweep trims the files whose run still has members and removes the others.
func (o *outputs) sweep(inUse func(folder, run string) bool) error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return fmt.Errorf("cannot list output files: %w", err)
	}

	var errs []error
	for _, e := range entries {
		path := filepath.Join(o.dir, e.Name())
		folder, run, ok := strings.Cut(e.Name(), ".")
		if !ok || !inUse(folder, run) {
			errs = append(errs, removeFile(path))
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, os.ErrNotExist) { // its command has just ended
			continue
		}
		if err == nil {
			err = errors.Join(trim(f), f.Close())
		}
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}
