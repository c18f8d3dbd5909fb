//go:build linux

// Command prototype is the limit of the measurements: it starts processes, watches them by pidfd and epoll, starts again
// what ended, and reads CPU time, memory and descriptors of each every ten seconds. It does nothing else: no logs, no
// cgroups, no checks, no record of what it does, no other machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sampleEvery = 10 * time.Second
	firstNumber = 100_000_000 // of the supervised program
	listener    = -1          // number of the socket among the watched descriptors
)

type supervisor struct {
	program string
	epoll   int
	socket  int
	procs   []process
	stops   bool // nothing is started again
}

type process struct {
	pid   int
	pidfd int
	args  []string
	ticks int // of its last sample
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "prototype: usage: prototype PROGRAM COUNT SOCKET")
		os.Exit(2)
	}
	n, err := strconv.Atoi(os.Args[2])
	if err != nil || n < 1 || n > 100_000 {
		fmt.Fprintf(os.Stderr, "prototype: COUNT: %q is not a number from 1 to 100000\n", os.Args[2])
		os.Exit(2)
	}
	if err := run(os.Args[1], n, os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "prototype:", err)
		os.Exit(1)
	}
}

func run(program string, n int, path string) (err error) {
	s := &supervisor{program: program, procs: make([]process, n)}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("cannot make epoll: %w", err)
	}
	if err := s.listen(path); err != nil {
		return err
	}

	all := make([]int, n)
	for i := range all {
		all[i] = i
		s.procs[i].args = []string{program, strconv.Itoa(firstNumber + i)}
	}
	if err := s.start(all); err != nil {
		return err
	}
	return s.loop()
}

// start starts processes, with one thread for each processor: a start waits until the program is executed.
func (s *supervisor) start(numbers []int) error {
	workers := min(runtime.NumCPU(), len(numbers))
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(numbers) && errs[w] == nil; i += workers {
				errs[w] = s.startOne(numbers[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *supervisor) startOne(i int) error {
	p := &s.procs[i]
	attr := &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &p.pidfd}}
	pid, err := syscall.ForkExec(s.program, p.args, attr)
	if err != nil {
		return fmt.Errorf("cannot start process %d: %w", i, err)
	}
	p.pid, p.ticks = pid, 0
	return s.watch(p.pidfd, i)
}

func (s *supervisor) watch(fd, number int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)}
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("cannot watch a descriptor: %w", err)
	}
	return nil
}

func (s *supervisor) loop() error {
	events := make([]unix.EpollEvent, 256)
	next := time.Now().Add(sampleEvery)
	var ended []int
	for {
		// Wait for an end, a request, or the next sample.
		n, err := unix.EpollWait(s.epoll, events, max(0, int(time.Until(next).Milliseconds())+1))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("cannot wait: %w", err)
		}

		// Collect what has ended, and start it again.
		ended = ended[:0]
		for _, ev := range events[:max(n, 0)] {
			if ev.Fd == listener {
				s.answer()
				continue
			}
			s.collect(int(ev.Fd))
			ended = append(ended, int(ev.Fd))
		}
		if len(ended) > 0 && !s.stops {
			if err := s.start(ended); err != nil {
				return err
			}
		}

		if !time.Now().Before(next) {
			s.sample()
			next = time.Now().Add(sampleEvery)
		}
	}
}

func (s *supervisor) collect(i int) {
	p := &s.procs[i]
	_, _ = unix.Wait4(p.pid, nil, 0, nil) // it has ended
	_ = unix.Close(p.pidfd)
	p.pid = 0
}

// listen opens the socket for status and stop.
func (s *supervisor) listen(path string) (err error) {
	if s.socket, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("cannot make a socket: %w", err)
	}
	if err := unix.Bind(s.socket, &unix.SockaddrUnix{Name: path}); err != nil {
		return fmt.Errorf("cannot bind the socket: %w", err)
	}
	if err := unix.Listen(s.socket, 8); err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	return s.watch(s.socket, listener)
}

// answer serves one caller: "s" asks for a line for each process, "t" stops all. Errors are those of the caller.
func (s *supervisor) answer() {
	fd, _, err := unix.Accept4(s.socket, unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var b [1]byte
	if _, err := unix.Read(fd, b[:]); err != nil {
		return
	}

	switch b[0] {
	case 's':
		var text []byte
		for i := range s.procs {
			text = fmt.Appendf(text, "%d %d %d\n", i, s.procs[i].pid, s.procs[i].ticks)
		}
		for len(text) > 0 {
			n, err := unix.Write(fd, text)
			if err != nil {
				return
			}
			text = text[n:]
		}
	case 't':
		s.stops = true
		for i := range s.procs {
			if s.procs[i].pid != 0 {
				_ = unix.PidfdSendSignal(s.procs[i].pidfd, unix.SIGTERM, nil, 0) // fails when it has ended
			}
		}
		_, _ = unix.Write(fd, []byte("ok\n"))
	}
}

// sample reads what each process uses.
func (s *supervisor) sample() {
	buf := make([]byte, 1024)
	for i := range s.procs {
		p := &s.procs[i]
		dir := "/proc/" + strconv.Itoa(p.pid)
		fd, err := unix.Open(dir+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended
		}
		n, _ := unix.Read(fd, buf)
		_ = unix.Close(fd)
		p.ticks = n

		var st unix.Stat_t // its size is the number of descriptors
		_ = unix.Stat(dir+"/fd", &st)
	}
}
