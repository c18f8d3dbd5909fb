package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	keeperTitle = "gozzard-keeper"
	keptLogs    = 0o622 // as the agent makes its logs
)

// Kept is one process of a keeper.
type Kept struct {
	Log  string // the file for what it prints
	Lock string // a keeper that has the process holds this file
	Ends Ends
}

// order is what a keeper gets: numbers of descriptors.
type order struct {
	Log    string `json:"log"`
	Lock   string `json:"lock"`
	Output []int  `json:"output"`
	Other  []int  `json:"other"`
}

// Keep starts a keeper: this program once more, in its own session. It reads what the processes print until they have
// ended, and outlives its caller. Keep returns when the keeper holds everything. Processes that have a keeper are left out.
// place is called with the pid of the keeper before that.
func Keep(list []Kept, place func(pid int) error) error {
	var orders []order
	var files []*os.File
	number := func(all []*os.File) (fds []int) {
		for _, f := range all {
			files = append(files, f)
			fds = append(fds, 3+len(files)) // 3 is the signal that it is ready
		}
		return fds
	}
	for i := range list {
		k := &list[i]
		if len(k.Ends.Output)+len(k.Ends.Other) > 0 {
			orders = append(orders, order{Log: k.Log, Lock: k.Lock, Output: number(k.Ends.Output), Other: number(k.Ends.Other)})
		}
	}
	if len(orders) == 0 {
		return nil
	}
	text, err := json.Marshal(orders)
	if err != nil {
		return fmt.Errorf("cannot start a keeper: %w", err)
	}

	// Start it, and wait until it is ready.
	ready, signal, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start a keeper: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{keeperTitle, string(text)}
	cmd.Dir = "/"
	cmd.ExtraFiles = append([]*os.File{signal}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = signal.Close() // the keeper has its copy
	if err != nil {
		return fmt.Errorf("cannot start a keeper: %w", err)
	}
	if err := place(cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	answer, err := io.ReadAll(ready)
	if err != nil || string(answer) != "ready" {
		return errors.Join(fmt.Errorf("the keeper of the output did not start: %s", answer), err, cmd.Wait())
	}
	return cmd.Process.Release()
}

// Serve must be one of the first calls of the program. If this process was started as a keeper, Serve does that work and
// does not return.
func Serve() {
	if len(os.Args) != 2 || os.Args[0] != keeperTitle {
		return
	}
	signal := os.NewFile(3, "ready")
	unix.CloseOnExec(3)
	k, err := newKeeper([]byte(os.Args[1]))
	if err != nil {
		_, _ = io.WriteString(signal, err.Error()) // the caller may be gone
		os.Exit(1)
	}
	_, _ = io.WriteString(signal, "ready")
	_ = signal.Close()
	k.run()
	os.Exit(0)
}

// keeper reads from descriptors until all have ended.
type keeper struct {
	fds  []unix.PollFd
	logs []*os.File // for each descriptor; nil: what comes is dropped
}

func newKeeper(text []byte) (*keeper, error) {
	var orders []order
	if err := json.Unmarshal(text, &orders); err != nil {
		return nil, fmt.Errorf("cannot read the order: %w", err)
	}
	k := &keeper{}
	for _, o := range orders {
		taken, err := lock(o.Lock)
		if err != nil {
			return nil, err
		}
		if !taken { // another keeper has it
			for _, fd := range append(o.Output, o.Other...) {
				_ = unix.Close(fd)
			}
			continue
		}
		log, err := OpenLog(o.Log)
		if err != nil {
			return nil, err
		}
		for _, fd := range o.Output {
			k.add(fd, log)
		}
		for _, fd := range o.Other {
			k.add(fd, nil)
		}
	}
	return k, nil
}

func (k *keeper) add(fd int, log *os.File) {
	unix.CloseOnExec(fd)
	k.fds = append(k.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	k.logs = append(k.logs, log)
}

// lock holds a file until this process ends. It is false if another keeper holds it.
func lock(path string) (bool, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, fmt.Errorf("cannot open %s: %w", path, err)
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = unix.Close(fd)
		return false, nil
	}
	return err == nil, err // the descriptor stays open
}

// OpenLog opens the log of a process as the agent does. The agent empties it when it is too long.
func OpenLog(path string) (*os.File, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}

	// The log belongs to the agent.
	var st unix.Stat_t
	err = unix.Stat(filepath.Dir(folder), &st)
	if err == nil && int(st.Uid) != os.Geteuid() {
		err = errors.Join(os.Chown(folder, int(st.Uid), int(st.Gid)), f.Chown(int(st.Uid), int(st.Gid)))
	}
	if err = errors.Join(err, f.Chmod(keptLogs)); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make the log: %w", err), f.Close())
	}
	return f, nil
}

// run reads until nothing is left to read from. A log that cannot be written loses lines: the process must not wait.
func (k *keeper) run() {
	buf := make([]byte, 64<<10)
	for open := len(k.fds); open > 0; {
		if _, err := unix.Poll(k.fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for i := range k.fds {
			p := &k.fds[i]
			if p.Fd < 0 || p.Revents == 0 {
				continue
			}
			n, err := 0, error(nil)
			if p.Revents&unix.POLLIN != 0 {
				n, err = unix.Read(int(p.Fd), buf)
			}
			switch {
			case n > 0 && k.logs[i] != nil:
				_, _ = k.logs[i].Write(buf[:n]) // a full disk must not stop the process
			case n > 0, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			default: // the other side is closed
				_ = unix.Close(int(p.Fd))
				p.Fd = -1
				open--
			}
		}
	}
}
