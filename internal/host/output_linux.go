package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The output of commands goes to files, not to pipes. The output of start and restart is the log of the process
// (log_linux.go). Other commands have a separate file: the output of a reload or stop command must not mix with
// that of the running process.
//
// Why not pipes: what a start command leaves running usually inherits its output. With a pipe, the command would
// seem to run as long as its daemon. When no reader is left (the command or the agent ended), the daemon would
// block or be killed by SIGPIPE. A file stays valid, whatever happens to the agent.
//
// The cost is that a talkative daemon could fill a disk. Therefore the files are opened for appending and trimmed
// from the front while the agent runs, by punching holes, which does not move the end for readers and writers.
// Files keep their names (<state>/output/<process>.<run>) while the cgroup of the run has members: an administrator
// can read them, and the agent finds them after a restart. Without cgroups it is unknown when a file is no longer
// used: then it is removed right after it was made, lives as long as it is open, and is not trimmed later.

const (
	outputKept  = 64 << 10 // what a trim leaves at the end
	outputLimit = 1 << 20  // trimmed when it occupies more
)

// outputs are the output files of all commands that have a separate file.
type outputs struct {
	dir   string
	gives bool // files may be assigned to other accounts

	lost atomic.Bool // the output of the newest command is dropped, because no file could be made
}

func openOutputs(stateDir string, gives bool) (*outputs, error) {
	dir := filepath.Join(stateDir, "output")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make folder for output: %w", err)
	}
	return &outputs{dir: dir, gives: gives}, nil
}

// output is the output file of one command: a separate file, or the log of its process.
type output struct {
	path string // "" once removed, and for a log
	file *os.File
	log  *procLog // nil for a separate file
	none bool     // the output is dropped
	from int64    // position in the log where the command began

	want  int    // how much of a separate file is returned: its start is kept when it is trimmed
	start []byte // what is kept; nil: the file has its start
}

// create makes a file that its account may open again through /dev/stdout, but cannot find by its path.
func (o *outputs) create(name string, a account, named bool) (*output, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil { // it may have been deleted with the state folder
		return nil, fmt.Errorf("cannot make folder for output: %w", err)
	}
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
		err = f.Chmod(0o622) // as with logs: other accounts cannot reach its folder
	}
	if err == nil && !named {
		err = out.remove()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make file for output: %w", err), out.remove(), f.Close())
	}

	return out, nil
}

// noOutput is where the output of a command goes that cannot be kept.
func noOutput() (*output, error) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot drop output: %w", err)
	}
	return &output{file: f, none: true}, nil
}

// close closes the file; a log is read by its path.
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

// removeFile ignores a file that is already gone: commands and the sweep both clean up.
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
	if o.none {
		return "", nil
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

// trim keeps a separate file within its limit; logs are rotated by the sweep.
func (o *output) trim() error {
	if o.log != nil || o.none {
		return nil
	}
	if o.want > 0 && o.start == nil {
		if fi, err := o.file.Stat(); err != nil || allocated(fi) <= outputLimit {
			return err
		}
		if err := o.keepStart(); err != nil {
			return err
		}
	}
	return trim(o.file)
}

// trim frees all but the end of a file that occupies too much space.
func trim(f *os.File) error {
	// Leave a file that occupies little.
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Blocks*512 <= outputLimit {
		return nil
	}
	hole := (fi.Size() - outputKept) &^ 4095
	if hole <= 0 { // its account has allocated blocks behind the end
		return freeAll(f)
	}

	// Free its beginning, or everything where the file system has no holes.
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, hole)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.Truncate(0) // safe, because every writer appends
	}
	if err != nil {
		return err
	}

	// Where blocks are left, they are behind the end.
	if fi, err = f.Stat(); err != nil || allocated(fi) <= outputLimit {
		return err
	}
	return freeAll(f)
}

// sweep trims files of runs that still have members, and removes the others.
func (o *outputs) sweep(inUse func(folder, run string) bool) error {
	entries, err := os.ReadDir(o.dir)
	if errors.Is(err, os.ErrNotExist) { // deleted; the next command makes it again
		return nil
	}
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

	return errors.Join(withoutReadOnly(errs)...)
}

// withoutReadOnly removes errors of a read-only file system. The agent reports those once, and a sweep runs often.
func withoutReadOnly(errs []error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, unix.EROFS) })
}
