//go:build linux

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childSource is the supervised program. It is written in C because it must be small and quick to start: its own cost
// is a part of every figure.
//
//go:embed child/child.c
var childSource []byte

// buildChild compiles the supervised program without shared libraries, which would take longer to load.
func buildChild(ctx context.Context, path string) error {
	source := path + ".c"
	if err := os.WriteFile(source, childSource, 0o644); err != nil {
		return fmt.Errorf("cannot write the program to supervise: %w", err)
	}
	cmd := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O2", "-static", "-o", path, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile the program to supervise, which needs a C compiler: %w: %.300s", err, out)
	}
	return nil
}

// place is what a supervised process writes when it begins. The layout is that of child.c.
type place struct {
	pid   atomic.Int64
	began atomic.Int64 // nanoseconds of CLOCK_MONOTONIC
}

const placeBytes = int(unsafe.Sizeof(place{}))

// page is the memory that all supervised processes of a site write into.
type page struct {
	mem    []byte
	places []place
}

// mapPage makes the file beside a program, under the name that the program expects.
func mapPage(program string) (*page, error) {
	f, err := os.OpenFile(program+".page", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("cannot make the page for times: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(int64(maxPlaces * placeBytes)); err != nil {
		return nil, fmt.Errorf("cannot make the page for times: %w", err)
	}

	mem, err := unix.Mmap(int(f.Fd()), 0, maxPlaces*placeBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot map the page for times: %w", err)
	}
	return &page{mem: mem, places: unsafe.Slice((*place)(unsafe.Pointer(&mem[0])), maxPlaces)}, nil
}

func (p *page) close() error {
	p.places = nil
	return unix.Munmap(p.mem)
}

// clear forgets what is written.
func (p *page) clear() {
	for i := range p.places {
		p.places[i].pid.Store(0)
	}
}

// instant is a time of CLOCK_MONOTONIC, which all processes of the machine share.
type instant int64

func clock() instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return instant(ts.Nano())
}

func (t instant) since(began instant) time.Duration { return time.Duration(t - began) }

// ends watches processes through pidfds, which costs no look at the process table. A process that cannot be opened has
// ended.
type ends []int

func watchEnds(list []int) (ends, error) {
	var e ends
	for _, pid := range list {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			e.close()
			return nil, fmt.Errorf("cannot watch process %d: %w", pid, err)
		}
		e = append(e, fd)
	}
	return e, nil
}

func (e ends) close() {
	for _, fd := range e {
		_ = unix.Close(fd) // has nothing to write
	}
}

// await waits until all have ended, one after the other, and reports whether that happened within the limit.
func (e ends) await(ctx context.Context, limit time.Duration) (bool, error) {
	end := time.Now().Add(limit)
	for next := 0; next < len(e); {
		fds := []unix.PollFd{{Fd: int32(e[next]), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("cannot wait for the end of processes: %w", err)
		case n > 0:
			next++
		case ctx.Err() != nil:
			return false, ctx.Err()
		case time.Now().After(end):
			return false, nil
		}
	}
	return true, nil
}

// childPath is where the run has compiled the supervised program.
func (t *tools) childPath() string { return filepath.Join(t.dir, "child") }
