package host

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

const (
	cgroup2Magic = 0x63677270
	keptPrefix   = "keep-" // runs that start the process: what they leave running is the process
	oncePrefix   = "once-" // other runs: what they leave running is killed
	clearWait    = 5 * time.Second
)

// cgroups is the part of the cgroup v2 tree that belongs to this agent: <root>/gozzard/<instance>/<hash of
// key>/<run>. Every command has its own group, so that a command that took too long can be cleared alone while the
// process of an earlier start keeps running. No controller is used: on many machines version 1 owns all of them,
// and membership, events and killing need none.
type cgroups struct {
	base   string
	shared bool // the agent itself is in the group above, so that no controller can be handed down from there

	mu    sync.Mutex          // orders making and removing folders
	inUse map[string]bool     // run folders of running commands, which may be empty for a moment
	runs  map[string][]string // names of the run folders by folder of the key, as they were last listed or made

	// The folder of a key stays for a while after its last run: a process that ended is usually started again, and making
	// and removing a group costs the kernel more than anything else in a start.
	idle map[string]time.Time // since when folders of keys have no run
}

// keepIdle is how long the folder of a key stays without a run.
const keepIdle = 20 * time.Second

// runGroup is the group of one command.
type runGroup struct {
	dir   string
	fd    *os.File // for the start; closed after it
	first bool     // the folder of the key was made for it
}

// openCgroups makes the folder of the instance and checks that a program can be started inside. The error says what
// is missing.
func openCgroups(p subtree, instance string) (*cgroups, error) {
	c := &cgroups{base: filepath.Join(p.top, "gozzard", instance), shared: p.shared, inUse: map[string]bool{},
		runs: map[string][]string{}, idle: map[string]time.Time{}}

	// Make the folder.
	err := os.MkdirAll(c.base, 0o755)
	for range 10 {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = os.MkdirAll(c.base, 0o755) // another agent has just removed the folder above, which was empty
	}
	if err != nil {
		return nil, err
	}

	// Check that it can be used.
	if err := c.probe(); err != nil {
		return nil, fmt.Errorf("cannot start a program in a cgroup: %w", err)
	}

	// Remove what an earlier agent left empty.
	c.tidy(0)
	return c, nil
}

// probe starts a shell inside a group: old kernels and strict container profiles show the folder but reject the
// start.
func (c *cgroups) probe() error {
	g, err := c.make("probe", oncePrefix+token())
	if err != nil {
		return err
	}

	cmd := exec.Command(shell, "-c", ":")
	cmd.Env = []string{"PATH=" + defaultPath}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.fd.Fd())}
	err = onOwnThread(func() error { return errors.Join(dropPowers(), cmd.Run()) })

	g.fd.Close()
	c.release(g)
	return err
}

// keyFolder hashes the key, so that names of any script and length become a valid and neutral folder name.
func keyFolder(k gozzard.Key) string {
	sum := sha256.Sum256([]byte(k.Namespace + "\x00" + k.Name))
	return hex.EncodeToString(sum[:16])
}

func token() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// begin makes the group of one command.
func (c *cgroups) begin(k gozzard.Key, name string) (*runGroup, error) {
	g, err := c.make(keyFolder(k), name)
	if err == nil && g.first {
		// For administrators: getfattr -n user.gozzard.key. Kernels before 5.7 do not support it, and nothing depends
		// on it.
		_ = unix.Setxattr(filepath.Dir(g.dir), "user.gozzard.key", []byte(k.String()), 0)
	}
	return g, err
}

func (c *cgroups) make(folder, name string) (*runGroup, error) {
	dir := filepath.Join(c.base, folder, name)
	c.mu.Lock()
	defer c.mu.Unlock()

	err := unix.Mkdir(dir, 0o755)
	first := errors.Is(err, unix.ENOENT)
	if first {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("cannot make cgroup: %w", &os.PathError{Op: "mkdir", Path: dir, Err: err})
	}
	fd, err := retryOpen(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open cgroup: %w", err)
	}
	c.inUse[dir] = true
	c.runs[folder] = append(c.runs[folder], name)
	delete(c.idle, folder)
	return &runGroup{dir: dir, fd: os.NewFile(uintptr(fd), dir), first: first}, nil
}

// release ends the use of a group by its command. It reports whether the group was empty and is removed.
func (c *cgroups) release(g *runGroup) (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inUse, g.dir)
	if removeTree(g.dir) != nil {
		return false // it has members, which keep running
	}
	folder, name := filepath.Split(g.dir)
	c.forget(filepath.Base(folder), name)
	return true
}

// forget notes that a run folder is removed. The folder of its key stays for a while after the last one. The caller holds
// mu.
func (c *cgroups) forget(folder, run string) {
	left := slices.DeleteFunc(c.runs[folder], func(name string) bool { return name == run })
	if c.runs[folder] = left; len(left) > 0 {
		return
	}
	delete(c.runs, folder)
	c.idle[folder] = time.Now()
}

// removeIdle removes the folder of a key that has had no run for the given time.
func (c *cgroups) removeIdle(folder string, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, idle := c.idle[folder]; len(c.runs[folder]) > 0 || idle && time.Since(since) < after {
		return
	}
	delete(c.idle, folder)
	_ = unix.Rmdir(filepath.Join(c.base, folder)) // fails while there are runs that were not listed
}

// runNames lists the run folders of a key. Only this agent makes them, so the list that it has is right while the number
// of links agrees: every folder below counts as one.
func (c *cgroups) runNames(folder string) []string {
	dir := filepath.Join(c.base, folder)
	c.mu.Lock()
	defer c.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Nlink == 2 {
		delete(c.runs, folder)
		return nil
	}
	if len(c.runs[folder])+2 != int(st.Nlink) {
		c.runs[folder] = folders(dir)
	}
	return slices.Clone(c.runs[folder])
}

// tidy removes groups that have become empty, and folders of keys that have had no run for the given time.
func (c *cgroups) tidy(after time.Duration) {
	keys, _ := os.ReadDir(c.base) // an unreadable folder has nothing to tidy
	for _, k := range keys {
		if !k.IsDir() || c.allInUse(k.Name()) {
			continue
		}
		_ = c.sweep(k.Name()) // what has members stays
		c.removeIdle(k.Name(), after)
	}
}

// allInUse reports whether running commands use all run folders of a key, as far as they are known.
func (c *cgroups) allInUse(folder string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usesAll(folder)
}

// usesAll is allInUse for a caller that holds mu.
func (c *cgroups) usesAll(folder string) bool {
	for _, run := range c.runs[folder] {
		if !c.inUse[filepath.Join(c.base, folder, run)] {
			return false
		}
	}
	return len(c.runs[folder]) > 0
}

// sweep removes the run folders of a key that no running command uses.
func (c *cgroups) sweep(folder string) error {
	names := c.runNames(folder)
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, run := range names {
		p := filepath.Join(c.base, folder, run)
		if c.inUse[p] {
			continue
		}
		if err := removeTree(p); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove cgroup: %w", err))
			continue
		}
		c.forget(folder, run)
	}
	return errors.Join(errs...)
}

// members returns the processes of a key. Processes of other commands do not count: a version command that runs
// beside its service has the same name.
func (c *cgroups) members(k gozzard.Key) ([]int, error) {
	dir := filepath.Join(c.base, keyFolder(k))
	var pids []int
	for _, run := range c.runNames(keyFolder(k)) {
		if !strings.HasPrefix(run, keptPrefix) {
			continue
		}
		var err error
		if pids, err = treeProcs(filepath.Join(dir, run), pids); err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// isEmpty reports whether no process that was started for a key is alive.
func (c *cgroups) isEmpty(k gozzard.Key) bool {
	populated, err := isPopulated(filepath.Join(c.base, keyFolder(k)))
	return err == nil && !populated
}

// clear kills all processes of a key and removes its folder.
func (c *cgroups) clear(k gozzard.Key) error {
	dir := filepath.Join(c.base, keyFolder(k))
	if err := killGroup(dir, clearWait); err != nil {
		return err
	}
	return c.sweep(keyFolder(k))
}

// exists reports whether the group of a run exists.
func (c *cgroups) exists(folder, run string) bool {
	_, err := os.Lstat(filepath.Join(c.base, folder, run))
	return !errors.Is(err, fs.ErrNotExist)
}

// hasRuns reports whether a key has a run, or may have one.
func (c *cgroups) hasRuns(folder string) bool {
	var st unix.Stat_t
	err := unix.Stat(filepath.Join(c.base, folder), &st)
	return err == nil && st.Nlink > 2 || err != nil && !errors.Is(err, unix.ENOENT)
}

// close removes empty folders, so that an agent without processes leaves nothing behind.
func (c *cgroups) close() {
	c.tidy(0)
	_ = os.Remove(c.base)
	_ = os.Remove(filepath.Dir(c.base)) // fails while other agents have groups inside
}

// killGroup kills all members of a group and of the groups below it, and waits until none is left. A missing group
// counts as empty.
func killGroup(dir string, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := killMembers(dir); err != nil {
			return fmt.Errorf("cannot kill cgroup: %w", err)
		}
		populated, err := isPopulated(dir)
		if err != nil || !populated {
			return err
		}
		if time.Now().After(deadline) {
			pids, _ := treeProcs(dir, nil)
			return fmt.Errorf("processes %v did not end within %v of being killed", pids, wait)
		}
		time.Sleep(pause)
	}
}

// killMembers uses cgroup.kill, which also reaches members that fork at the same time. Kernels before 5.14 do not
// have it: there the caller repeats the call.
func killMembers(dir string) error {
	err := writeExisting(filepath.Join(dir, "cgroup.kill"), "1")
	if !isAbsent(err) {
		return err
	}

	pids, err := treeProcs(dir, nil)
	if err != nil {
		return err
	}

	for _, pid := range pids {
		if err := killMember(dir, pid); err != nil {
			return fmt.Errorf("pid %d: %w", pid, err)
		}
	}

	return nil
}

// killMember kills a process if it is still a member after its pidfd was opened: the pid alone may belong to
// another process by now.
func killMember(dir string, pid int) error {
	// Hold the process.
	fd, err := openPidfd(pid)
	defer closeFD(fd)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}

	// Leave a process that is not a member any more.
	now, lookErr := treeProcs(dir, nil)
	if lookErr != nil || !slices.Contains(now, pid) {
		return lookErr
	}

	// Kill it. A process that has ended in between is no error.
	if fd < 0 {
		err = unix.Kill(pid, unix.SIGKILL) // Linux before 5.3, or no descriptor is left
	} else {
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func isPopulated(dir string) (bool, error) {
	b, err := readControl(filepath.Join(dir, "cgroup.events"))
	if isAbsent(err) {
		return false, nil
	}
	return bytes.Contains(b, []byte("populated 1")), err
}

// isAbsent: a group removed while its files are open answers ENODEV.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// treeProcs appends the processes of a group and of the groups below it.
func treeProcs(dir string, pids []int) ([]int, error) {
	b, err := readControl(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !isAbsent(err) {
		return pids, fmt.Errorf("cannot read cgroup: %w", err)
	}

	for line := range strings.Lines(string(b)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 { // 0: not in our pid namespace
			pids = append(pids, pid)
		}
	}

	for _, sub := range folders(dir) {
		if pids, err = treeProcs(filepath.Join(dir, sub), pids); err != nil {
			return pids, err
		}
	}

	return pids, nil
}

// removeTree removes an empty group and the empty ones below it.
func removeTree(dir string) error {
	for _, sub := range folders(dir) {
		if err := removeTree(filepath.Join(dir, sub)); err != nil {
			return err
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// folders lists the groups below a group; a group that was just removed has none. Every group below counts as a
// link, so the usual case of none is known without reading the folder with all its control files.
func folders(dir string) []string {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Nlink == 2 {
		return nil
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}

	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}

	return names
}
