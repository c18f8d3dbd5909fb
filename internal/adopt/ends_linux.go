package adopt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Ends are the descriptors of a supervisor that lead to a process.
type Ends struct {
	Output []*os.File // what the process prints arrives here
	Other  []*os.File // other ways between them, such as standard input and the channel of Node.js
}

// Close closes all of them.
func (e *Ends) Close() {
	for _, f := range append(e.Output, e.Other...) {
		_ = f.Close() // nothing was written
	}
}

// link is a descriptor of a process that is a pipe or a socket.
type link struct {
	fd    int
	kind  string // pipe or socket
	inode uint64
	reads bool // it is open for reading
}

var isLink = regexp.MustCompile(`^(pipe|socket):\[([0-9]+)\]$`)

// links lists the pipes and sockets of a process.
func links(pid int) ([]link, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot look at the open files of pid %d: %w", pid, err)
	}
	var all []link
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(folder, e.Name()))
		m := isLink.FindStringSubmatch(target)
		fd, numberErr := strconv.Atoi(e.Name())
		if err != nil || m == nil || numberErr != nil {
			continue // closed meanwhile, or another kind of file
		}
		inode, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil {
			continue
		}
		all = append(all, link{fd: fd, kind: m[1], inode: inode, reads: opensForReading(pid, fd)})
	}
	return all, nil
}

// opensForReading reports whether a descriptor is open for reading.
func opensForReading(pid, fd int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(value), 8, 64)
			return err == nil && flags&unix.O_ACCMODE != unix.O_WRONLY
		}
	}
	return false
}

// Take takes copies of the descriptors of a supervisor that lead to a process. The supervisor does not notice it. It needs
// the rights to debug the supervisor: those of root, or of the same account where the system allows that.
func Take(supervisor, pid int) (_ Ends, err error) {
	theirs, err := links(supervisor)
	if err != nil {
		return Ends{}, err
	}
	own, err := links(pid)
	if err != nil {
		return Ends{}, err
	}
	peers, err := socketPeers()
	if err != nil {
		return Ends{}, err
	}
	handle, err := unix.PidfdOpen(supervisor, 0)
	if err != nil {
		return Ends{}, fmt.Errorf("cannot hold pid %d: %w", supervisor, err)
	}
	defer unix.Close(handle)

	var ends Ends
	defer func() {
		if err != nil {
			ends.Close()
		}
	}()
	for _, t := range theirs {
		at, output := leadsTo(t, own, peers)
		if !at {
			continue
		}
		fd, err := unix.PidfdGetfd(handle, t.fd, 0)
		if err != nil {
			return Ends{}, fmt.Errorf("cannot take descriptor %d of pid %d, which the output of pid %d needs: %w; run this as root", t.fd,
				supervisor, pid, err)
		}
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "end")
		if output {
			ends.Output = append(ends.Output, f)
		} else {
			ends.Other = append(ends.Other, f)
		}
	}
	return ends, nil
}

// leadsTo reports whether a descriptor of the supervisor is the other end of one of the process, and whether the process
// prints to it.
func leadsTo(t link, own []link, peers map[uint64]uint64) (at, output bool) {
	for _, o := range own {
		same := t.kind == "pipe" && o.kind == "pipe" && o.inode == t.inode && t.reads != o.reads
		paired := t.kind == "socket" && o.kind == "socket" && peers[o.inode] == t.inode && t.inode != 0
		if same || paired {
			at = true
			output = output || (o.fd == 1 || o.fd == 2) && t.reads
		}
	}
	return at, output
}

// Parent is the parent of a process, and its own start time.
func Parent(pid int) (parent int, start uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot look at pid %d: %w", pid, err)
	}
	_, rest, ok := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, 0, fmt.Errorf("cannot read the state of pid %d", pid)
	}
	parent, err = strconv.Atoi(fields[1])
	start, startErr := strconv.ParseUint(fields[19], 10, 64)
	return parent, start, errors.Join(err, startErr)
}

// Children lists the processes of a parent.
func Children(parent int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var all []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, _, err := Parent(pid); err == nil && p == parent {
			all = append(all, pid)
		}
	}
	return all, nil
}

// CommandLine is the command line of a process, in one line.
func CommandLine(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// Names are the names that a process runs as: of its program, and as it calls itself. They are none if it has ended.
func Names(pid int) (all []string) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	program, err := os.Readlink(filepath.Join(folder, "exe"))
	own, ownErr := os.ReadFile(filepath.Join(folder, "comm"))
	if err != nil || ownErr != nil {
		return nil
	}
	all = append(all, filepath.Base(strings.TrimSuffix(program, " (deleted)")), strings.TrimSpace(string(own)))
	words := strings.Fields(CommandLine(pid))
	for _, word := range words[:min(2, len(words))] { // a script is the second one
		all = append(all, filepath.Base(strings.TrimSuffix(word, ":")))
	}
	return all
}

// Unit is the service of systemd that a process belongs to, or "".
func Unit(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if _, missing := os.Stat("/run/systemd/system"); err != nil || missing != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		for part := range strings.SplitSeq(strings.TrimSpace(line), "/") {
			if strings.HasSuffix(part, ".service") && !strings.HasPrefix(part, "user@") {
				return part
			}
		}
	}
	return ""
}

// Kill kills exactly the process that began at a time.
func Kill(pid int, start uint64) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot hold pid %d: %w", pid, err)
	}
	defer unix.Close(handle)
	if _, now, err := Parent(pid); err != nil || now != start {
		return fmt.Errorf("pid %d is another process now", pid)
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot end pid %d: %w", pid, err)
	}

	// Wait for its end.
	for tries := range 3 {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, killPatience)
		switch {
		case n > 0:
			return nil
		case err == nil || !errors.Is(err, unix.EINTR) || tries == 2:
			return fmt.Errorf("pid %d does not end", pid)
		}
	}
	return nil
}

const killPatience = 10_000 // milliseconds
