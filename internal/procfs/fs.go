//go:build linux

package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrGone says that there is no such process, or that it ended while it was read.
var ErrGone = errors.New("no such process")

// TicksPerSecond is the unit of every time in /proc. For user programs the kernel always uses 100, independent of its
// own clock.
const TicksPerSecond = 100

// FS is a mounted /proc. The zero value is not usable.
type FS struct {
	root string
}

// New returns the view of the /proc that is mounted at root.
func New(root string) FS { return FS{root: root} }

// Stat reads /proc/<pid>/stat.
func (f FS) Stat(pid int) (Stat, error) {
	var buf [1024]byte
	return f.StatInto(pid, buf[:])
}

// StatInto is Stat with the caller's buffer, for passes over all processes. 1 KiB is enough for any stat line.
func (f FS) StatInto(pid int, buf []byte) (Stat, error) {
	b, err := readInto(f.path(pid, "stat"), buf)
	if err != nil {
		return Stat{}, f.fail(pid, err)
	}
	st, err := ParseStat(b)
	if err != nil {
		return Stat{}, fmt.Errorf("cannot read stat of pid %d: %w", pid, err)
	}
	return st, nil
}

// UIDs returns the real and the effective user id of a process.
func (f FS) UIDs(pid int) (realUID, effective uint32, err error) {
	var buf [4096]byte
	b, err := readInto(f.path(pid, "status"), buf[:])
	if err != nil {
		return 0, 0, f.fail(pid, err)
	}
	return parseUIDs(b)
}

func parseUIDs(status []byte) (realUID, effective uint32, err error) {
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		ids := bytes.Fields(rest)
		if len(ids) != 4 {
			break
		}
		r, errR := strconv.ParseUint(string(ids[0]), 10, 32)
		e, errE := strconv.ParseUint(string(ids[1]), 10, 32)
		if errR != nil || errE != nil {
			break
		}
		return uint32(r), uint32(e), nil
	}
	return 0, 0, errors.New("status has no readable Uid line")
}

// Credentials are the account, the groups and the capabilities that a process acts with.
type Credentials struct {
	UIDs       [4]uint32 // real, effective, saved, of files
	GIDs       [4]uint32
	Groups     []uint32
	NoNewPrivs bool

	// Capabilities, one bit each: those in use, those that may be used, and those that a program gets that the
	// process executes.
	Effective, Permitted, Inheritable, Ambient uint64
}

// Credentials reads the credentials of a process.
func (f FS) Credentials(pid int) (Credentials, error) {
	var c Credentials
	b, err := readInto(f.path(pid, "status"), make([]byte, 64<<10)) // a process can have thousands of groups
	if err != nil {
		return c, f.fail(pid, err)
	}

	found := 0
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		ids := strings.Fields(rest)
		switch name {
		case "Uid":
			found += fourIDs(ids, &c.UIDs)
		case "Gid":
			found += fourIDs(ids, &c.GIDs)
		case "Groups":
			found++
			for _, id := range ids {
				n, err := strconv.ParseUint(id, 10, 32)
				if err != nil {
					return c, errors.New("status has no readable Groups line")
				}
				c.Groups = append(c.Groups, uint32(n))
			}
		case "NoNewPrivs":
			c.NoNewPrivs = len(ids) == 1 && ids[0] == "1"
		case "CapEff", "CapPrm", "CapInh", "CapAmb":
			bits, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			if err != nil {
				return c, fmt.Errorf("status has no readable %s line", name)
			}
			*map[string]*uint64{
				"CapEff": &c.Effective, "CapPrm": &c.Permitted, "CapInh": &c.Inheritable, "CapAmb": &c.Ambient,
			}[name] = bits
		}
	}

	if found != 3 {
		return c, errors.New("status has no readable Uid, Gid and Groups lines")
	}
	return c, nil
}

// fourIDs reads a Uid or Gid line and returns 1 if it is good.
func fourIDs(text []string, ids *[4]uint32) int {
	if len(text) != len(ids) {
		return 0
	}
	for i := range ids {
		n, err := strconv.ParseUint(text[i], 10, 32)
		if err != nil {
			return 0
		}
		ids[i] = uint32(n)
	}
	return 1
}

// Args returns the command line of a process, at most limit bytes of it. It is empty for kernel threads and zombies.
func (f FS) Args(pid, limit int) ([]string, error) {
	b, err := readInto(f.path(pid, "cmdline"), make([]byte, limit))
	if err != nil {
		return nil, f.fail(pid, err)
	}
	s := strings.TrimRight(string(b), "\x00")
	if s == "" {
		return nil, nil
	}
	return strings.Split(s, "\x00"), nil
}

// Environ returns the environment that a process was started with, at most limit bytes of it. Only root and the owner of
// the process can read it. A process may have overwritten it.
func (f FS) Environ(pid, limit int) ([]string, error) {
	b, err := readInto(f.path(pid, "environ"), make([]byte, limit))
	if err != nil {
		return nil, f.fail(pid, err)
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"), nil
}

// Exe returns the path of the executable, without the mark that the kernel adds when the file was replaced or removed.
// It cannot be read for kernel threads, and for processes of other accounts only by root.
func (f FS) Exe(pid int) (string, error) {
	p, err := os.Readlink(f.path(pid, "exe"))
	if err != nil {
		return "", f.fail(pid, err)
	}
	return strings.TrimSuffix(p, " (deleted)"), nil
}

// Cgroup returns the cgroup v2 path of a process relative to the root of its hierarchy, or "" if it has none.
func (f FS) Cgroup(pid int) (string, error) {
	var buf [8192]byte
	b, err := readInto(f.path(pid, "cgroup"), buf[:])
	if err != nil {
		return "", f.fail(pid, err)
	}
	for line := range bytes.Lines(b) {
		if p, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			return strings.TrimSuffix(strings.TrimSuffix(string(p), "\n"), " (deleted)"), nil
		}
	}
	return "", nil
}

// FDs counts the open descriptors of a process. Kernels since 6.2 show the number as the size of the folder. For older
// kernels the entries are counted.
func (f FS) FDs(pid int) (int, error) {
	dir := f.path(pid, "fd")
	if fi, err := os.Stat(dir); err == nil && fi.Size() > 0 {
		return int(fi.Size()), nil
	}

	d, err := os.Open(dir)
	if err != nil {
		return 0, f.fail(pid, err)
	}
	defer d.Close()

	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, f.fail(pid, err)
	}
	return len(names), nil
}

// PIDs appends the ids of all processes to dst.
func (f FS) PIDs(dst []int) ([]int, error) {
	d, err := os.Open(f.root)
	if err != nil {
		return dst, fmt.Errorf("cannot list processes: %w", err)
	}
	defer d.Close()

	names, err := d.Readdirnames(-1)
	if err != nil {
		return dst, fmt.Errorf("cannot list processes: %w", err)
	}

	for _, n := range names {
		if n[0] < '1' || n[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(n); err == nil {
			dst = append(dst, pid)
		}
	}

	return dst, nil
}

func (f FS) path(pid int, name string) string {
	return f.root + "/" + strconv.Itoa(pid) + "/" + name
}

// fail turns the errors by which the kernel says that a process is gone into ErrGone.
func (f FS) fail(pid int, err error) error {
	if errors.Is(err, fs.ErrNotExist) || isNoProcess(err) {
		return ErrGone
	}
	return fmt.Errorf("cannot read process %d: %w", pid, err)
}

func (f FS) file(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(f.root, name))
}
